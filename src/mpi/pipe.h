// pipe.h - an ordered stream of bytes in both directions over MPI messages. Bytes are copied into
// slots, which travel as one message each; a slot is free again when the peer has begun to take its
// message, so that what is under way is bounded at both ends. An empty message ends a direction.
// One thread at a time for sending, one for receiving; they may be different threads. Never blocks.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "mpi/api.h"

namespace hvd::mpi {

struct PipeEnd {
  Comm comm;
  int peer = 0;  // rank in comm
  int tag = 0;   // of this pipe alone
  size_t slot_bytes = 0;
};

class Pipe {
 public:
  Pipe(Api& api, const PipeEnd& end);
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  // How many bytes were taken; 0: no room now.
  Result<size_t> send(std::span<const iovec> parts);
  struct Received {
    size_t bytes = 0;
    bool is_end = false;
  };
  Result<Received> receive(std::span<const iovec> parts);
  bool has_buffered() const { return read_ < filled_; }

  // ---- after the last send and receive ----
  // Tells the peer, drops what still comes; true: both directions have ended and no request is
  // left. The memory must stay until then.
  Result<bool> finish();
  // Without an answer of the peer: takes back what can be taken back.
  void abandon();

 private:
  struct Slot {
    std::unique_ptr<std::byte[]> data{};
    Request request{};
    bool is_busy = false;
  };
  static constexpr size_t kSlots = 4;  // of each direction: enough to keep a link busy

  Result<bool> free_slot();
  Status send_slot(size_t bytes);
  Status post_receive(Slot& slot);
  Result<bool> next_message();

  Api& api_;
  const PipeEnd end_;
  // Sender's.
  Slot out_[kSlots];
  size_t out_next_ = 0;
  bool has_sent_end_ = false;
  // Receiver's.
  Slot in_[kSlots];
  size_t in_next_ = 0;  // the oldest posted, or the one being read
  size_t read_ = 0, filled_ = 0;
  bool is_posted_ = false, has_ended_ = false;
};

}  // namespace hvd::mpi
