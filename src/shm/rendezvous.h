// rendezvous.h - how the processes of one host find each other's segment: an abstract unix socket
// named after user, job and epoch. Rank 0 listens and hands the descriptor to every rank that
// introduces itself correctly. Both ends check before they read a byte that the other runs as the
// same user and is visible in this pid namespace; they go on past others, who may have taken the
// name first, until the deadline. May block until then.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "base/interrupt.h"
#include "base/status.h"

namespace hvd::shm {

struct Meeting {
  std::string job_id;
  uint64_t epoch = 0;
  int rank = 0;
  int size = 1;
  // Cannot be guessed; at most 64 letters. Empty: the name is made from job_id.
  std::string socket_name = {};
  // Ends the wait before the deadline; null: nothing does.
  const Interrupt* interrupt = nullptr;
};

// Rank 0: serves `fd` (and its size) to the other size - 1 ranks. On failure everybody who came
// learns why.
Status serve_segment(const Meeting& meeting, int fd, uint64_t bytes, Deadline deadline);

struct ReceivedSegment {
  UniqueFd fd;
  uint64_t bytes = 0;
};
Result<ReceivedSegment> receive_segment(const Meeting& meeting, Deadline deadline);

}  // namespace hvd::shm
