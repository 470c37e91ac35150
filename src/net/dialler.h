// dialler.h - one authenticated connection to a peer with several addresses: the best first, the
// next after a short while or when one fails, again and again until the deadline, because the peer
// may not be up yet. At most one handshake at a time runs, so that the peer never sees two of us.
// One thread at a time; never blocks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "net/address.h"
#include "net/handshake.h"
#include "net/timer.h"

namespace hvd::net {

struct DialOptions {
  Nanoseconds next_address_after = std::chrono::milliseconds(200);
  Nanoseconds retry_after = std::chrono::milliseconds(2);  // doubles up to retry_at_most
  Nanoseconds retry_at_most = std::chrono::milliseconds(500);
  Nanoseconds handshake_time = std::chrono::seconds(5);
  // How long a peer has to refuse our proof of the key, again and again, until that is final: a
  // job that is just ending may still hold the port.
  Nanoseconds refused_time = std::chrono::seconds(1);
  // The same as handshake_time while another address is connected and waits for its turn.
  Nanoseconds contested_handshake_time = std::chrono::seconds(1);
};

class Dialler {
 public:
  // `who` names the peer in errors: "rank 3 (host b)". `hello` says whom we look for and what for.
  static Result<std::unique_ptr<Dialler>> start(std::string who, std::vector<Address> addresses,
                                                const Key& key, const Hello& hello,
                                                Deadline deadline, const DialOptions& options = {});
  ~Dialler();
  Dialler(const Dialler&) = delete;
  Dialler& operator=(const Dialler&) = delete;

  struct Connected {
    UniqueFd socket;
    Address address;
    Hello hello;  // of the peer
    Key session_key;
  };
  // Null: not yet. An error lists every address and why it failed; TIMED_OUT once the deadline has
  // passed, PRECONDITION_ERROR at once when the peer proved itself and refused us for good, and
  // soon when it has another key.
  Result<std::unique_ptr<Connected>> poll();
  // Readable when poll() has something to do.
  int descriptor() const { return epoll_.get(); }

 private:
  struct Attempt;

  Dialler(std::string who, std::vector<Address> addresses, const Key& key, const Hello& hello,
          Deadline deadline, const DialOptions& options);
  void advance(Attempt& attempt, TimePoint now);
  void begin(Attempt& attempt, TimePoint now);
  void greet(Attempt& attempt, TimePoint now);
  void give_up(Attempt& attempt, std::string why, TimePoint now);
  const Attempt* refused_for_good(TimePoint now) const;
  void watch(const Attempt& attempt, uint32_t events);
  Nanoseconds greeting_time(const Attempt& attempt) const;
  TimePoint next_moment() const;
  std::string failures_text() const;

  std::string who_;
  Key key_;
  Hello hello_;
  Deadline deadline_;
  DialOptions options_;
  TimePoint began_;
  UniqueFd epoll_;
  Timer timer_;
  std::vector<Attempt> attempts_;  // one per address, best first
  Attempt* greeting_ = nullptr;    // whose handshake runs
  Status refusal_;
  std::unique_ptr<Connected> connected_;
};

// start() and poll() until it is done: for init, where blocking is fine.
Result<std::unique_ptr<Dialler::Connected>> dial(std::string who, std::vector<Address> addresses,
                                                 const Key& key, const Hello& hello,
                                                 Deadline deadline,
                                                 const DialOptions& options = {});

}  // namespace hvd::net
