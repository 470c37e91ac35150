// peer_processes.h - the processes behind the other ranks of the host: has one ended, and signals
// to them. Each is held by a process descriptor, which no other process can come to mean; where the
// kernel has none, by its number and the moment it started. Thread: any after open(). Never blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "shm/job.h"

namespace hvd::engine {

class PeerProcesses {
 public:
  explicit PeerProcesses(const shm::Job& job) : job_(job) {}

  // Once, before the others. Fails if a peer has ended already. Ranks that are threads of this
  // process are not watched.
  Status open();
  // Readable when the process has ended; -1: ask has_ended() now and then.
  int descriptor(int rank) const { return peers_[static_cast<size_t>(rank)].descriptor.get(); }
  bool all_have_descriptors() const { return all_have_descriptors_; }
  bool has_ended(int rank) const;
  // To this process too. Failures have no consequence: the peer may be ending right now.
  void send_signal(int rank, int number) const;

 private:
  struct Peer {
    UniqueFd descriptor;
    int pid = 0;
    uint64_t started = 0;  // clock ticks since boot
  };
  const shm::Job& job_;
  std::vector<Peer> peers_;
  bool all_have_descriptors_ = true;
};

}  // namespace hvd::engine
