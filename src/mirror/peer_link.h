// peer_link.h - one control stream: bytes that wait to be sent, bytes that came and are not a whole
// message yet. The link is made before its stream is there; until then everything waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/thread_annotations.h"
#include "mirror/message.h"
#include "net/stream.h"

namespace hvd::mirror {

class MirroredChannel;

class PeerLink {
 public:
  explicit PeerLink(int32_t rank) : rank_(rank) {}

  int32_t rank() const { return rank_; }
  // The stream is there. Before anything is sent or received.
  void attach(std::unique_ptr<net::Stream> stream);
  bool is_attached() const { return is_attached_.load(std::memory_order_acquire); }
  int descriptor() const { return is_attached() ? stream_->descriptor() : -1; }
  bool has_unsent() const { return has_unsent_.load(std::memory_order_relaxed); }

  // ---- sending ----
  // Channels whose news go to this peer.
  void add_channel(MirroredChannel& channel) HVD_EXCLUDES(send_mutex_);
  void remove_channel(const MirroredChannel& channel) HVD_EXCLUDES(send_mutex_);
  // Queues one message and sends what the stream takes.
  Status send(const Header& header, std::span<const std::byte> body) HVD_EXCLUDES(send_mutex_);
  // Collects the news of all channels and sends what the stream takes. If another thread is at it,
  // that thread looks again: nothing is missed.
  Status flush() HVD_EXCLUDES(send_mutex_);

  // ---- receiving: one thread at a time ----
  // Reads what has come and calls apply(header, body) for each whole message. True: something came.
  using Apply = std::function<Status(const Header&, std::span<const std::byte>)>;
  Result<bool> receive(const Apply& apply);
  // Changes whenever bytes have come. Any thread.
  uint64_t heard() const { return heard_.load(std::memory_order_relaxed); }

 private:
  friend class OutgoingBytes;
  Status flush_locked() HVD_REQUIRES(send_mutex_);
  Status push() HVD_REQUIRES(send_mutex_);
  void append(const Header& header, std::span<const std::byte> body) HVD_REQUIRES(send_mutex_);
  Result<bool> take_messages(const Apply& apply);

  const int32_t rank_;
  std::unique_ptr<net::Stream> stream_;
  std::atomic<bool> is_attached_{false};
  std::atomic<bool> has_news_{false};
  std::atomic<bool> has_unsent_{false};
  std::atomic<uint64_t> heard_{0};  // says only that it changes; nothing is published with it
  Mutex send_mutex_;
  std::vector<MirroredChannel*> channels_ HVD_GUARDED_BY(send_mutex_);
  std::vector<std::byte> out_ HVD_GUARDED_BY(send_mutex_);
  size_t out_begin_ HVD_GUARDED_BY(send_mutex_) = 0;
  Status send_failure_ HVD_GUARDED_BY(send_mutex_);
  std::vector<std::byte> in_;
  size_t in_begin_ = 0, in_end_ = 0;
};

}  // namespace hvd::mirror
