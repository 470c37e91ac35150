#include "bootstrap/pmi_meeting.h"

#include <utility>

#include "base/parse.h"
#include "base/text.h"
#include "bootstrap/process_manager.h"

namespace hvd::bootstrap {
namespace {

constexpr char kName[] = "horovod-meeting";

std::string to_hex(const net::Key& key) {
  std::string out;
  for (const uint8_t byte : key.bytes()) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

Result<PmiMeeting> host_meeting(ProcessManager& pmi, const std::vector<net::Address>& usable,
                                const std::optional<net::Key>& given, Deadline deadline) {
  auto key = given ? Result<net::Key>(*given) : net::Key::random();
  if (!key) return key.status();
  HVD_TRY_ASSIGN(auto server, store::Server::listen(usable, *key));
  HVD_TRY_ASSIGN(auto thread, store::ServerThread::start(std::move(server)));
  HVD_TRY(pmi.put(kName,
                  encode_meeting(given ? std::nullopt : std::optional(*key),
                                 net::without_scopes(thread->addresses()), pmi.longest_value()),
                  deadline));
  HVD_TRY(pmi.barrier(deadline));
  return PmiMeeting{*key, thread->addresses(), std::move(thread)};
}

Result<PmiMeeting> join_meeting(ProcessManager& pmi, const std::optional<net::Key>& given,
                                Deadline deadline) {
  HVD_TRY(pmi.barrier(deadline));
  HVD_TRY_ASSIGN(const std::string text, pmi.get(kName, deadline));
  HVD_TRY_ASSIGN(MeetingText meeting, decode_meeting(text));
  const std::optional<net::Key>& key = given ? given : meeting.key;
  if (!key) {
    return precondition_error(
        "PMI: rank 0 has a key of its own (HOROVOD_KEY_FILE or HOROVOD_KEY_FD), this rank has "
        "none; "
        "set it on every rank or on none");
  }
  return PmiMeeting{*key, std::move(meeting.addresses), nullptr};
}

}  // namespace

std::string encode_meeting(const std::optional<net::Key>& key,
                           const std::vector<net::Address>& addresses, size_t most) {
  std::string out = concat(key ? to_hex(*key) : "-", "/");
  bool is_first = true;
  for (const net::Address& address : addresses) {
    const std::string text = concat(is_first ? "" : ",", net::to_text(address));
    if (out.size() + text.size() > most) break;
    out += text;
    is_first = false;
  }
  return out;
}

Result<MeetingText> decode_meeting(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == text.npos) {
    return corrupted(concat("PMI: expected a key and addresses, got ", text.size(), " characters"));
  }
  MeetingText meeting;
  if (text.substr(0, slash) != "-") {
    auto key = net::Key::parse(text.substr(0, slash));
    if (!key) return blame("PMI: the key of rank 0", key.status());
    meeting.key = *key;
  }
  auto addresses = net::parse_addresses(text.substr(slash + 1));
  if (!addresses) return blame("PMI: the addresses of rank 0", addresses.status());
  meeting.addresses = std::move(*addresses);
  return meeting;
}

Result<PmiMeeting> meet_through_pmi(const topology::Topology& topology,
                                    const Environment& environment,
                                    const std::vector<net::Address>& usable,
                                    const std::optional<net::Key>& given, Deadline deadline) {
  HVD_TRY_ASSIGN(const auto pmi, open_process_manager(environment, deadline));
  auto meeting = topology.rank == 0 ? host_meeting(*pmi, usable, given, deadline)
                                    : join_meeting(*pmi, given, deadline);
  if (!meeting) return meeting;
  HVD_TRY(pmi->finalize(deadline));
  return meeting;
}

}  // namespace hvd::bootstrap
