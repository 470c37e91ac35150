#include "net/acceptor.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/text.h"

namespace hvd::net {
namespace {

constexpr auto kPauseWithoutDescriptors = std::chrono::milliseconds(100);

void watch(int epoll, int fd, uint32_t events, int operation) {
  epoll_event event{.events = events, .data = {.fd = fd}};
  // Fails only without memory; then the connection runs into its deadline.
  (void)!epoll_ctl(epoll, operation, fd, &event);
}

// Closing in order tells a dialler of ours that it has another key, and so that trying again is of
// no use. Whoever is dropped because of strangers must not believe that.
void reset_when_closed(int socket) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  (void)!setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

}  // namespace

struct Acceptor::Guest {
  UniqueFd socket;
  Address from;
  Handshake handshake;
  TimePoint deadline;
  Handshake::State watched;
};

Acceptor::Acceptor(Listener listener, const Key& key, const Hello& own, Judge judge,
                   const AcceptorOptions& options)
    : listener_(std::move(listener)),
      key_(key),
      own_(own),
      judge_(std::move(judge)),
      options_(options) {}

Acceptor::~Acceptor() = default;

Result<std::unique_ptr<Acceptor>> Acceptor::create(Listener listener, const Key& key,
                                                   const Hello& own, Judge judge,
                                                   const AcceptorOptions& options) {
  HVD_ASSERT(options.half_open_count > 0, "without room nobody could ever come in");
  std::unique_ptr<Acceptor> out(
      new Acceptor(std::move(listener), key, own, std::move(judge), options));
  out->epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!out->epoll_.valid()) return errno_status("epoll", errno);
  HVD_TRY_ASSIGN(out->timer_, Timer::create());
  watch(out->epoll_.get(), out->timer_.descriptor(), EPOLLIN, EPOLL_CTL_ADD);
  for (const UniqueFd& socket : out->listener_.sockets()) {
    watch(out->epoll_.get(), socket.get(), EPOLLIN, EPOLL_CTL_ADD);
  }
  return out;
}

// All guests are asked, whichever the kernel named: they are few, and so none can be overlooked.
std::vector<Accepted> Acceptor::poll() {
  const TimePoint now = Clock::steady().now();
  if (deaf_until_ != TimePoint::min() && now >= deaf_until_) watch_listeners();
  if (deaf_until_ == TimePoint::min()) accept_all(now);
  std::vector<Accepted> out;
  for (auto at = guests_.begin(); at != guests_.end();) {
    Guest& guest = **at;
    const auto state = guest.handshake.advance(guest.socket.get());
    if (state == Handshake::State::kFailed) {
      at = drop(at, guest.handshake.failure());
    } else if (state == Handshake::State::kDone) {
      watch(epoll_.get(), guest.socket.get(), 0, EPOLL_CTL_DEL);
      visitors_.note_admitted(guest.handshake.peer().rank, guest.from);
      out.push_back({std::move(guest.socket), guest.from, guest.handshake.peer(),
                     guest.handshake.session_key()});
      at = guests_.erase(at);
    } else if (now >= guest.deadline) {
      at = drop(at, Status(StatusCode::kTimedOut, "took too long for the handshake"));
    } else {
      if (state != std::exchange(guest.watched, state)) {
        watch(epoll_.get(), guest.socket.get(),
              state == Handshake::State::kWaitsToRead ? EPOLLIN : EPOLLOUT, EPOLL_CTL_MOD);
      }
      ++at;
    }
  }
  if (const std::string more = visitors_.summary(now); !more.empty()) HVD_LOG(kWarning, more);
  TimePoint next = guests_.empty() ? TimePoint::max() : guests_.front()->deadline;
  if (deaf_until_ != TimePoint::min()) next = std::min(next, deaf_until_);
  timer_.set(std::min(next, visitors_.summary_due()));
  return out;
}

// At most as many as may be half open, so that one call stays short; the rest at the next.
void Acceptor::accept_all(TimePoint now) {
  size_t room = options_.half_open_count;
  for (const UniqueFd& socket : listener_.sockets()) {
    while (room > 0) {
      Listener::Connection connection = Listener::accept(socket);
      if (connection.error != 0) {
        HVD_LOG(kWarning, "cannot accept connections: ", std::strerror(connection.error));
        return stop_listening_until(now + kPauseWithoutDescriptors);
      }
      if (!connection.socket.valid()) break;
      admit(std::move(connection), now);
      --room;
    }
  }
}

void Acceptor::admit(Listener::Connection connection, TimePoint now) {
  auto handshake = Handshake::accept(
      key_, own_, judge_, [this](const RecentNonces::Nonce& nonce) { return nonces_.add(nonce); });
  if (!handshake) return;  // no random numbers: nobody can be let in
  if (guests_.size() >= options_.half_open_count) make_room();
  watch(epoll_.get(), connection.socket.get(), EPOLLIN, EPOLL_CTL_ADD);
  guests_.push_back(std::make_unique<Guest>(
      Guest{std::move(connection.socket), connection.from, std::move(*handshake),
            now + options_.handshake_time, Handshake::State::kWaitsToRead}));
}

// Nobody has proven anything before it has come through: message 1 may be a recording. So the
// oldest goes, of the address that has the most.
void Acceptor::make_room() {
  const auto count_of = [this](const Guest& one) {
    return std::count_if(guests_.begin(), guests_.end(),
                         [&](const auto& other) { return is_same_host(one.from, other->from); });
  };
  auto victim = guests_.begin();
  auto most = count_of(**victim);
  for (auto at = std::next(victim); at != guests_.end(); ++at) {
    if (2 * most >= static_cast<ptrdiff_t>(guests_.size())) break;  // nobody has more
    if (is_same_host((*at)->from, (*victim)->from)) continue;
    if (const auto count = count_of(**at); count > most) victim = at, most = count;
  }
  drop(victim, Status(StatusCode::kAborted, "made room for newer connections"));
}

Acceptor::Guests::iterator Acceptor::drop(Guests::iterator at, const Status& why) {
  const Guest& guest = **at;
  visitors_.note_refused(guest.from);
  const bool wrong_key = why.code() == StatusCode::kPreconditionError;
  if (!wrong_key) reset_when_closed(guest.socket.get());
  if (wrong_key && visitors_.is_worth_a_line()) {
    HVD_LOG(kWarning, "refused a connection from ", to_text(guest.from), ": it ", why.message());
  } else {
    HVD_LOG(kDebug, "dropped a connection from ", to_text(guest.from), ": it ", why.message());
  }
  return guests_.erase(at);  // closing the socket takes it out of epoll
}

void Acceptor::stop_listening_until(TimePoint when) {
  deaf_until_ = when;
  for (const UniqueFd& socket : listener_.sockets()) {
    watch(epoll_.get(), socket.get(), 0, EPOLL_CTL_DEL);
  }
}

void Acceptor::watch_listeners() {
  deaf_until_ = TimePoint::min();
  for (const UniqueFd& socket : listener_.sockets()) {
    watch(epoll_.get(), socket.get(), EPOLLIN, EPOLL_CTL_ADD);
  }
}

}  // namespace hvd::net
