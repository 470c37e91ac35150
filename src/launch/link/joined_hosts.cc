#include "launch/link/joined_hosts.h"

#include <algorithm>
#include <utility>

#include "base/parse.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/version.h"
#include "launch/link/join_message.h"
#include "launch/options/options.h"
#include "launch/os/now.h"
#include "net/listener.h"
#include "net/sealed_stream.h"
#include "net/tcp_stream.h"

namespace hvd::launch {
namespace {

constexpr size_t kMostGuests = 4096;
// Shorter than what the supervisor gives a silent agent: that its host has gone is known first.
constexpr Nanoseconds kHostSilence = std::chrono::seconds(8);
constexpr Nanoseconds kNameWait = kHostSilence + std::chrono::seconds(2);
// A host that is asked for an agent dials within 10 s, or says why it cannot.
constexpr Nanoseconds kAgentDialTime = std::chrono::seconds(15);

}  // namespace

Result<std::unique_ptr<JoinedHosts>> JoinedHosts::listen(const MeetingPlace& place,
                                                         const std::vector<std::string>& interfaces,
                                                         const net::Key& key,
                                                         std::string own_name) {
  HVD_TRY_ASSIGN(const std::vector<net::Address> addresses, listening_addresses(place, interfaces));
  Result<net::Listener> listener = listen_on_usable(addresses);
  if (!listener) {
    return blame(concat("--join: this host is ", place.host, ", where the job is launched"),
                 listener.status());
  }
  std::unique_ptr<JoinedHosts> hosts(new JoinedHosts(std::move(own_name)));
  HVD_TRY_ASSIGN(hosts->acceptor_,
                 net::Acceptor::create(
                     *std::move(listener), key.derive(kJoinKeyLabel, {}), {},
                     [raw = hosts.get()](const net::Hello& hello) { return raw->judge(hello); }));
  return hosts;
}

net::Verdict JoinedHosts::judge(const net::Hello& hello) const {
  if (hello.purpose == kJoinPurpose) {
    return guests_.size() < kMostGuests ? net::Verdict::kWelcome : net::Verdict::kTooMany;
  }
  const bool is_awaited = hello.purpose == kAgentPurpose &&
                          std::any_of(agents_.begin(), agents_.end(), [&hello](const Agent& agent) {
                            return agent.number == hello.epoch && agent.waiting.valid();
                          });
  return is_awaited ? net::Verdict::kWelcome : net::Verdict::kUnexpected;
}

void JoinedHosts::admit(net::Accepted accepted) {
  // Best effort: without it a host that vanishes only stays longer.
  (void)net::prepare_tcp_socket(accepted.socket.get(), {}).is_ok();
  auto stream = net::make_sealed_stream(std::move(accepted.socket), net::to_text(accepted.from),
                                        accepted.session_key, net::SealRole::kAcceptor);
  if (accepted.hello.purpose == kJoinPurpose) {
    guests_.emplace_back(next_guest_++, std::move(stream), accepted.from);
    return;
  }
  for (Agent& agent : agents_) {
    if (agent.number != accepted.hello.epoch || !agent.waiting.valid()) continue;
    agent.pump.emplace(std::move(stream), std::move(agent.waiting));
  }
}

void JoinedHosts::watch(PollSet& polls) {
  polls.watch(acceptor_->descriptor(), POLLIN, [this] {
    for (net::Accepted& accepted : acceptor_->poll()) admit(std::move(accepted));
  });
  for (Guest& guest : guests_) {
    guest.link.watch(polls, [this, &guest](const Frame& frame) { take(guest, frame); });
  }
  for (Agent& agent : agents_) {
    if (agent.pump) agent.pump->watch(polls);
    // Else its host wakes us, with a word or with its end.
    if (agent.ended_at && !agent.pump->is_local_ending() && !is_there(agent.guest))
      polls.wake_by(now());
  }
}

void JoinedHosts::take(Guest& guest, const Frame& frame) {
  const bool is_new = guest.name.empty() && !guest.claim;
  if (frame.kind == FrameKind::kJoin && is_new) take_join(guest, frame.payload);
  if (frame.kind == FrameKind::kLeave) guest.is_leaving = true;
}

void JoinedHosts::take_join(Guest& guest, std::string_view payload) {
  const Result<JoinMessage> message = decode_join(payload);
  if (!message) return refuse(guest, message.status());
  if (const Status good = check(*message); !good.is_ok()) return refuse(guest, good);
  guest.claim = *message;
  guest.claimed_at = now();
}

Status JoinedHosts::check(const JoinMessage& message) const {
  if (message.version != version_text()) {
    return precondition_error(concat("it has Horovod ", printable(message.version),
                                     ", the launcher has ", version_text(),
                                     ": install the same version"));
  }
  HVD_TRY(check_host_name(message.hostname));
  if (message.slots < 1 || message.slots > kMaxWorkers) {
    return invalid_argument(
        concat("it has ", message.slots, " slots, expected 1 to ", kMaxWorkers));
  }
  if (message.hostname == own_name_) {
    return precondition_error(concat("host ", own_name_,
                                     " takes part already: the job was launched there; every host "
                                     "needs a name of its own"));
  }
  return Status::ok();
}

// A host that was lost and comes back may be here before we know that it was: we wait until that
// would have been noticed.
void JoinedHosts::settle_claims(TimePoint time) {
  for (Guest& guest : guests_) {
    if (!guest.claim || !guest.link.is_open()) continue;
    const auto holder = std::find_if(guests_.begin(), guests_.end(), [&guest](const Guest& one) {
      return one.name == guest.claim->hostname && one.link.is_open();
    });
    if (holder == guests_.end()) {
      guest.name = guest.claim->hostname;
      guest.slots = guest.claim->slots;
      guest.link.send(FrameKind::kJoined, {});
    } else if (time - guest.claimed_at >= kNameWait) {
      refuse(guest, precondition_error(concat("host ", holder->name, " takes part already, from ",
                                              net::to_text(holder->from),
                                              "; every host needs a name of its own")));
    } else {
      continue;
    }
    guest.claim.reset();
  }
}

void JoinedHosts::refuse(Guest& guest, const Status& why) {
  guest.link.send(FrameKind::kRefused, why.message());
  guest.is_leaving = true;  // it closes the connection when it has read that
}

std::optional<std::vector<HostSlots>> JoinedHosts::take_news() {
  if (news_.empty()) return std::nullopt;
  std::vector<HostSlots> first = std::move(news_.front());
  news_.pop_front();
  return first;
}

Result<UniqueFd> JoinedHosts::open_agent(const std::string& host) {
  for (Guest& guest : guests_) {
    if (guest.name != host || !guest.link.is_open()) continue;
    HVD_TRY_ASSIGN(LocalPair pair, make_local_pair());
    agents_.push_back({.guest = guest.id,
                       .host = host,
                       .number = next_agent_++,
                       .opened_at = now(),
                       .waiting = std::move(pair.ours)});
    guest.link.send(FrameKind::kOpen, encode_number(static_cast<uint32_t>(agents_.back().number)));
    return std::move(pair.theirs);
  }
  return precondition_error(concat("host ", host, " has left the job"));
}

void JoinedHosts::on_time(TimePoint time) {
  // In this order: whoever asks for news hears that a host has gone before its agents end.
  end_agents(time);
  for (Guest& guest : guests_) guest.link.on_time(time, kHostSilence);
  settle_claims(time);
  dismiss_leavers();
  note_hosts();
  drop_closed();
}

void JoinedHosts::end_agents(TimePoint time) {
  for (Agent& agent : agents_) {
    const bool has_host = is_there(agent.guest);
    const bool is_late = time - agent.opened_at > kAgentDialTime;
    if (!agent.pump && (!has_host || is_late))
      agent.pump.emplace(nullptr, std::move(agent.waiting));
    if (!agent.pump) continue;
    if (!has_host) agent.pump->end_stream();
    if (agent.pump->has_stream_ended() && !agent.ended_at) agent.ended_at = time;
    if (agent.ended_at && (!has_host || has_outlived(agent))) agent.pump->end_local();
  }
  agents_.remove_if([](const Agent& agent) { return agent.pump && agent.pump->is_over(); });
}

// A host that was asked to leave goes when its last worker has.
void JoinedHosts::dismiss_leavers() {
  for (Guest& guest : guests_) {
    const bool has_agents =
        std::any_of(agents_.begin(), agents_.end(),
                    [&guest](const Agent& agent) { return agent.guest == guest.id; });
    const bool goes = guest.is_leaving && (!guest.name.empty() || guest.claim);
    if (!goes || has_agents || !guest.link.is_open()) continue;
    // Whoever asks for news has seen it leave; it is asked for no worker any more.
    const bool is_told = std::none_of(told_.begin(), told_.end(), [&guest](const HostSlots& host) {
      return host.host == guest.name;
    });
    if (!is_told || !news_.empty()) continue;
    guest.link.send(FrameKind::kEnd,
                    encode(EndMessage{.exit_code = 0, .text = "this host has left the job"}));
    guest.is_leaving = false;  // told; it closes the connection
    guest.claim.reset();
    guest.slots = 0;
  }
}

bool JoinedHosts::is_there(uint64_t guest) const {
  return std::any_of(guests_.begin(), guests_.end(),
                     [guest](const Guest& one) { return one.id == guest && one.link.is_open(); });
}

// The connections of a host that is lost end at different times, seconds apart. So the end of an
// agent waits until its host has said something after it, or has gone as well.
bool JoinedHosts::has_outlived(const Agent& agent) const {
  return std::any_of(guests_.begin(), guests_.end(), [&agent](const Guest& guest) {
    return guest.id == agent.guest && guest.link.spoke_at() > *agent.ended_at;
  });
}

// One that has come back waits until its agents of before have ended: they are no failure of it.
bool JoinedHosts::counts(const Guest& guest) const {
  const bool takes_part =
      guest.link.is_open() && !guest.name.empty() && !guest.is_leaving && guest.slots > 0;
  return takes_part && std::none_of(agents_.begin(), agents_.end(), [&guest](const Agent& agent) {
           return agent.host == guest.name && agent.guest != guest.id;
         });
}

void JoinedHosts::note_hosts() {
  std::vector<HostSlots> hosts;
  for (const Guest& guest : guests_) {
    if (counts(guest)) hosts.push_back({.host = guest.name, .slots = guest.slots});
  }
  if (hosts == told_) return;
  told_ = hosts;
  news_.push_back(std::move(hosts));
}

void JoinedHosts::drop_closed() {
  guests_.remove_if([](const Guest& guest) { return !guest.link.is_open(); });
}

void JoinedHosts::farewell(int exit_code, std::string_view text, Deadline deadline) {
  const std::string message = encode(EndMessage{.exit_code = exit_code, .text = std::string(text)});
  for (Guest& guest : guests_) guest.link.send(FrameKind::kEnd, message);
  // They close the connection when they have read it. Were we first, it might never arrive: what
  // we have not read ourselves makes the kernel drop the rest.
  const auto is_open = [](const Guest& guest) { return guest.link.is_open(); };
  while (std::any_of(guests_.begin(), guests_.end(), is_open) && !deadline.passed()) {
    PollSet polls;
    for (Guest& guest : guests_) {
      guest.link.on_time(now(), kHostSilence);
      guest.link.watch(polls, [](const Frame&) {});
    }
    polls.wake_by(now() + deadline.remaining(std::chrono::seconds(1)));
    polls.wait();
  }
}

}  // namespace hvd::launch
