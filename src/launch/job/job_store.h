// job_store.h - the store where the ranks of a job on several hosts find each other, as the
// launcher runs it in its own loop. One thread; never blocks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "launch/os/poll_set.h"
#include "net/keys/key.h"
#include "store/server.h"

namespace hvd::launch {

class JobStore {
 public:
  // Listens on the addresses of the named interfaces, or of all but loopback. Only those who know
  // the key are served.
  static Result<JobStore> start(const net::Key& key, const std::vector<std::string>& interfaces);

  // For HOROVOD_STORE_ADDRESSES.
  std::string addresses() const;
  void watch(PollSet& polls);
  const net::Visitors& visitors() const { return server_->visitors(); }

 private:
  explicit JobStore(std::unique_ptr<store::Server> server) : server_(std::move(server)) {}

  std::unique_ptr<store::Server> server_;
};

}  // namespace hvd::launch
