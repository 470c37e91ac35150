// server_thread.h - a store server with a thread of its own ("hvd-store"), for jobs without our
// launcher. The thread sleeps unless somebody asks, and ends with the object.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "store/server.h"

namespace hvd::store {

class ServerThread {
 public:
  static Result<std::unique_ptr<ServerThread>> start(std::unique_ptr<Server> server);
  ~ServerThread();
  ServerThread(const ServerThread&) = delete;
  ServerThread& operator=(const ServerThread&) = delete;

  const std::vector<net::Address>& addresses() const { return addresses_; }

 private:
  ServerThread(std::unique_ptr<Server> server, UniqueFd stop);
  void run();

  std::unique_ptr<Server> server_;
  const std::vector<net::Address> addresses_;
  UniqueFd stop_;        // an event; readable: end
  std::jthread thread_;  // last: joined before anything it uses is destroyed
};

}  // namespace hvd::store
