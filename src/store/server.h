// server.h - the store of a job as a server: run by the launcher's thread, or by a thread of rank
// 0. Serves only connections that have proven to know the job's key; memory, values and clients are
// bounded. Keys belong to the epoch that the client named. One thread at a time; never blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "net/address.h"
#include "net/keys/key.h"
#include "net/visitors.h"
#include "store/table.h"

namespace hvd::store {

struct ServerLimits {
  size_t clients = 4096;  // beyond them, a newcomer is told to come back later
  TableLimits table{};
};

class Server {
 public:
  // Port 0: the kernel chooses.
  static Result<std::unique_ptr<Server>> listen(std::vector<net::Address> bind, const net::Key& key,
                                                const ServerLimits& limits = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Readable when poll() has something to do.
  int descriptor() const;
  void poll();
  // To be given to clients.
  std::vector<net::Address> addresses() const;
  // Who came, and who was refused.
  const net::Visitors& visitors() const;

  // What a launcher does with its own store, without a connection.
  Outcome set(uint64_t epoch, std::string_view key, std::string_view value);
  const std::string* find(uint64_t epoch, std::string_view key) const;
  // Elastic jobs go on to new epochs; who still waits in an old one waits for ever.
  void forget_epochs_before(uint64_t epoch);

 private:
  class State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hvd::store
