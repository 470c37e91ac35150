// acceptor.h - a listener with the handshakes of those who dialled in. Hands out connections whose
// other end has proven itself. A stranger costs one of a bounded number of half-open connections,
// for a bounded time; when there are too many, the oldest of the address with the most goes, so
// that one address cannot crowd out the others. One thread at a time; never blocks.
#pragma once

#include <list>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "net/handshake.h"
#include "net/listener.h"
#include "net/timer.h"
#include "net/visitors.h"

namespace hvd::net {

struct AcceptorOptions {
  size_t half_open_count = 128;
  Nanoseconds handshake_time = std::chrono::seconds(5);
};

struct Accepted {
  UniqueFd socket;
  Address from;
  Hello hello;
  Key session_key;
};

class Acceptor {
 public:
  static Result<std::unique_ptr<Acceptor>> create(Listener listener, const Key& key,
                                                  const Hello& own, Judge judge,
                                                  const AcceptorOptions& options = {});
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  const std::vector<Address>& addresses() const { return listener_.addresses(); }
  // Readable when poll() has something to do, the end of a deadline included.
  int descriptor() const { return epoll_.get(); }
  // Who has come through since the last call.
  std::vector<Accepted> poll();

  size_t half_open() const { return guests_.size(); }
  // Connections that did not come through: strangers, other jobs, scanners, recordings.
  uint64_t refused() const { return visitors_.refused(); }
  const Visitors& visitors() const { return visitors_; }

 private:
  struct Guest;
  using Guests = std::list<std::unique_ptr<Guest>>;

  Acceptor(Listener listener, const Key& key, const Hello& own, Judge judge,
           const AcceptorOptions& options);
  void accept_all(TimePoint now);
  void admit(Listener::Connection connection, TimePoint now);
  Guests::iterator drop(Guests::iterator guest, const Status& why);
  void make_room();
  void stop_listening_until(TimePoint when);
  void watch_listeners();

  Listener listener_;
  Key key_;
  Hello own_;
  Judge judge_;
  AcceptorOptions options_;
  UniqueFd epoll_;
  Timer timer_;
  Guests guests_;  // oldest first
  Visitors visitors_;
  RecentNonces nonces_;
  // Out of descriptors: the listeners are not watched until then, or epoll would never sleep.
  TimePoint deaf_until_ = TimePoint::min();
};

}  // namespace hvd::net
