#include "net/dialler.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/text.h"

namespace hvd::net {

struct Dialler::Attempt {
  enum class Stage { kWaits, kConnects, kConnected, kGreets };

  Address address;
  Stage stage = Stage::kWaits;
  UniqueFd socket{};
  std::optional<Handshake> handshake{};
  TimePoint since{};  // the stage began; kWaits: when it ends
  Nanoseconds backoff{};
  int tries = 0;
  std::optional<TimePoint> refused_since{};  // every try since then was refused
  std::string failure{};                     // of the last try
};

namespace {

std::string seconds_text(Nanoseconds span) {
  return concat(std::chrono::duration_cast<std::chrono::milliseconds>(span).count() / 1000.0, " s");
}

// 0: not decided yet; 1: connected; -1: failed, errno says why.
int connect_result(int socket) {
  pollfd item{socket, POLLOUT, 0};
  if (::poll(&item, 1, 0) <= 0) return 0;
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return -1;
  errno = error;
  return error == 0 ? 1 : -1;
}

}  // namespace

Dialler::Dialler(std::string who, std::vector<Address> addresses, const Key& key,
                 const Hello& hello, Deadline deadline, const DialOptions& options)
    : who_(std::move(who)),
      key_(key),
      hello_(hello),
      deadline_(deadline),
      options_(options),
      began_(Clock::steady().now()) {
  TimePoint when = began_;
  for (const Address& address : addresses) {
    attempts_.push_back({.address = address, .since = when, .backoff = options_.retry_after});
    when += options_.next_address_after;
  }
}

Dialler::~Dialler() = default;

Result<std::unique_ptr<Dialler>> Dialler::start(std::string who, std::vector<Address> addresses,
                                                const Key& key, const Hello& hello,
                                                Deadline deadline, const DialOptions& options) {
  if (addresses.empty()) return precondition_error(concat(who, ": no address is known"));
  std::unique_ptr<Dialler> out(
      new Dialler(std::move(who), std::move(addresses), key, hello, deadline, options));
  out->epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!out->epoll_.valid()) return errno_status("epoll", errno);
  HVD_TRY_ASSIGN(out->timer_, Timer::create());
  epoll_event event{.events = EPOLLIN, .data = {}};
  if (epoll_ctl(out->epoll_.get(), EPOLL_CTL_ADD, out->timer_.descriptor(), &event) != 0) {
    return errno_status("epoll", errno);
  }
  out->timer_.set(out->began_);
  return out;
}

Result<std::unique_ptr<Dialler::Connected>> Dialler::poll() {
  const TimePoint now = Clock::steady().now();
  for (Attempt& attempt : attempts_) {
    if (connected_ == nullptr && refusal_.is_ok()) advance(attempt, now);
  }
  if (const Attempt* attempt = refused_for_good(now); attempt != nullptr && refusal_.is_ok()) {
    refusal_ = precondition_error(
        concat(who_, " at ", to_text(attempt->address),
               " has another key than this process: it refused our proof in ", attempt->tries,
               " tries; expected one key for all processes of a job"));
  }
  if (connected_ != nullptr) {
    for (Attempt& attempt : attempts_) attempt.socket.reset();
    return std::move(connected_);
  }
  if (!refusal_) return refusal_;
  if (deadline_.passed(now)) {
    return Status(StatusCode::kTimedOut, concat("cannot reach ", who_, " within ",
                                                seconds_text(now - began_), ": ", failures_text()));
  }
  timer_.set(next_moment());
  return std::unique_ptr<Connected>();
}

void Dialler::advance(Attempt& attempt, TimePoint now) {
  using Stage = Attempt::Stage;
  if (attempt.stage == Stage::kWaits && now >= attempt.since) begin(attempt, now);
  if (attempt.stage == Stage::kConnects) {
    const int result = connect_result(attempt.socket.get());
    if (result < 0) return give_up(attempt, std::strerror(errno), now);
    if (result == 0) return;
    attempt.stage = Stage::kConnected;
    watch(attempt, 0);  // otherwise it would stay ready for writing
  }
  if (attempt.stage == Stage::kConnected && greeting_ == nullptr) {
    auto handshake = Handshake::dial(key_, hello_);
    if (!handshake) return give_up(attempt, handshake.status().message(), now);
    attempt.handshake.emplace(std::move(*handshake));
    attempt.stage = Stage::kGreets;
    attempt.since = now;
    greeting_ = &attempt;
  }
  if (attempt.stage == Stage::kGreets) greet(attempt, now);
}

void Dialler::begin(Attempt& attempt, TimePoint now) {
  ++attempt.tries;
  const int family = attempt.address.family == Family::kIpv4 ? AF_INET : AF_INET6;
  attempt.socket.reset(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!attempt.socket.valid()) return give_up(attempt, std::strerror(errno), now);
  const SocketAddress name = to_socket_address(attempt.address);
  if (connect(attempt.socket.get(), name.get(), name.length) != 0 && errno != EINPROGRESS) {
    return give_up(attempt, std::strerror(errno), now);
  }
  attempt.stage = Attempt::Stage::kConnects;
  attempt.since = now;
  epoll_event event{.events = EPOLLOUT, .data = {}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, attempt.socket.get(), &event) != 0) {
    give_up(attempt, std::strerror(errno), now);
  }
}

void Dialler::greet(Attempt& attempt, TimePoint now) {
  Handshake& handshake = *attempt.handshake;
  switch (handshake.advance(attempt.socket.get())) {
    case Handshake::State::kDone:
      epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, attempt.socket.get(), nullptr);
      connected_.reset(new Connected{std::move(attempt.socket), attempt.address, handshake.peer(),
                                     handshake.session_key()});
      return;
    case Handshake::State::kFailed: {
      // A peer of this job that does not want us will not change its mind.
      const Verdict verdict = handshake.peer().verdict;
      if (handshake.is_proven() &&
          (verdict == Verdict::kOtherEpoch || verdict == Verdict::kUnexpected ||
           verdict == Verdict::kOtherVersion)) {
        refusal_ = precondition_error(
            concat(who_, " at ", to_text(attempt.address), " ", handshake.failure().message()));
      }
      const auto refused_since = attempt.refused_since.value_or(now);
      const bool is_refused = handshake.is_refused();
      give_up(attempt, std::string(handshake.failure().message()), now);
      if (is_refused) attempt.refused_since = refused_since;
      return;
    }
    case Handshake::State::kWaitsToRead:
      watch(attempt, EPOLLIN);
      break;
    case Handshake::State::kWaitsToWrite:
      watch(attempt, EPOLLOUT);
      break;
  }
  if (now - attempt.since >= greeting_time(attempt)) {
    give_up(attempt,
            concat("no answer to the handshake within ", seconds_text(now - attempt.since)), now);
  }
}

// The next address that has not been tried yet need not wait for its time any more.
void Dialler::give_up(Attempt& attempt, std::string why, TimePoint now) {
  attempt.stage = Attempt::Stage::kWaits;
  attempt.socket.reset();
  attempt.handshake.reset();
  attempt.refused_since.reset();
  attempt.failure = std::move(why);
  attempt.since = now + attempt.backoff;
  attempt.backoff = std::min(2 * attempt.backoff, options_.retry_at_most);
  if (greeting_ == &attempt) greeting_ = nullptr;
  const auto next = std::find_if(attempts_.begin(), attempts_.end(),
                                 [](const Attempt& a) { return a.tries == 0; });
  if (next != attempts_.end()) next->since = std::min(next->since, now);
}

// Not while another address may still turn out to be the peer.
const Dialler::Attempt* Dialler::refused_for_good(TimePoint now) const {
  const Attempt* refused = nullptr;
  for (const Attempt& attempt : attempts_) {
    const auto stage = attempt.stage;
    if (stage == Attempt::Stage::kConnected || stage == Attempt::Stage::kGreets) return nullptr;
    if (attempt.refused_since && now - *attempt.refused_since >= options_.refused_time)
      refused = &attempt;
  }
  return refused;
}

// No events: not at all, or epoll would still tell that the other end hung up.
void Dialler::watch(const Attempt& attempt, uint32_t events) {
  epoll_event event{.events = events, .data = {}};
  const int fd = attempt.socket.get();
  if (events == 0) {
    (void)!epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  } else if (epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0) {
    (void)!epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  }
}

Nanoseconds Dialler::greeting_time(const Attempt& attempt) const {
  const bool contested = std::any_of(attempts_.begin(), attempts_.end(), [&](const Attempt& other) {
    return &other != &attempt && other.stage == Attempt::Stage::kConnected;
  });
  return contested ? options_.contested_handshake_time : options_.handshake_time;
}

TimePoint Dialler::next_moment() const {
  TimePoint next = deadline_.when();
  for (const Attempt& attempt : attempts_) {
    if (attempt.stage == Attempt::Stage::kWaits) next = std::min(next, attempt.since);
    if (attempt.stage == Attempt::Stage::kGreets) {
      next = std::min(next, attempt.since + greeting_time(attempt));
    }
    // Its turn has come: the one before it in the list gave up in this very call.
    if (attempt.stage == Attempt::Stage::kConnected && greeting_ == nullptr) next = TimePoint{};
  }
  return next;
}

std::string Dialler::failures_text() const {
  std::vector<std::string> texts;
  for (const Attempt& attempt : attempts_) {
    std::string text = to_text(attempt.address) + ": ";
    if (attempt.stage == Attempt::Stage::kConnects) {
      text += "no answer";
    } else if (attempt.failure.empty()) {
      text += attempt.tries == 0 ? "not tried" : "connected, no answer to the handshake";
    } else {
      text += attempt.failure;
    }
    if (attempt.tries > 1) text += concat(" (", attempt.tries, " tries)");
    texts.push_back(std::move(text));
  }
  return join_text(texts, "; ");
}

Result<std::unique_ptr<Dialler::Connected>> dial(std::string who, std::vector<Address> addresses,
                                                 const Key& key, const Hello& hello,
                                                 Deadline deadline, const DialOptions& options) {
  HVD_TRY_ASSIGN(const auto dialler, Dialler::start(std::move(who), std::move(addresses), key,
                                                    hello, deadline, options));
  for (;;) {
    HVD_TRY_ASSIGN(auto connected, dialler->poll());
    if (connected != nullptr) return connected;
    pollfd item{dialler->descriptor(), POLLIN, 0};
    (void)!::poll(&item, 1, -1);  // ends at the deadline, for which the dialler has a timer
  }
}

}  // namespace hvd::net
