// doctor_probe.h - how well two hosts reach each other: short exchanges over TCP, between ends that
// have proven to know the key. One thread.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "launch/os/poll_set.h"
#include "net/acceptor.h"
#include "net/address.h"
#include "net/keys/key.h"

namespace hvd::launch {

// Answers probes. Never blocks.
class ProbeServer {
 public:
  static Result<ProbeServer> start(const net::Key& key, const std::vector<std::string>& interfaces);

  std::string addresses() const;
  void watch(PollSet& polls);

 private:
  struct Guest {
    UniqueFd socket;
    uint64_t purpose;
    uint64_t received_bytes = 0;
  };
  explicit ProbeServer(std::unique_ptr<net::Acceptor> acceptor) : acceptor_(std::move(acceptor)) {}
  static void serve(Guest& guest);

  std::unique_ptr<net::Acceptor> acceptor_;
  std::list<Guest> guests_;
};

struct ProbeResult {
  std::string address;       // that was reached
  std::string failure;       // empty: reached
  Nanoseconds round_trip{};  // the best of some
  uint64_t bytes_per_second = 0;
};

// Blocks until the deadline at most.
ProbeResult probe(const std::string& who, std::string_view addresses, const net::Key& key,
                  Deadline deadline);

std::string encode(const ProbeResult& result);
Result<ProbeResult> decode_probe(std::string_view payload);

}  // namespace hvd::launch
