#include "mirror/peer_link.h"

#include <algorithm>

#include "base/text.h"
#include "mirror/mirrored_channel.h"

namespace hvd::mirror {
namespace {

// News wait in the segment, not here, while a slow stream holds this much.
constexpr size_t kEnoughUnsent = 256 << 10;
constexpr size_t kReadBytes = 64 << 10;

}  // namespace

void PeerLink::attach(std::unique_ptr<net::Stream> stream) {
  stream_ = std::move(stream);
  is_attached_.store(true, std::memory_order_release);
}

void PeerLink::add_channel(MirroredChannel& channel) {
  MutexLock lock(send_mutex_);
  channels_.push_back(&channel);
}

void PeerLink::remove_channel(const MirroredChannel& channel) {
  MutexLock lock(send_mutex_);
  std::erase(channels_, &channel);
}

void PeerLink::append(const Header& header, std::span<const std::byte> body) {
  const auto* first = reinterpret_cast<const std::byte*>(&header);
  out_.insert(out_.end(), first, first + sizeof header);
  out_.insert(out_.end(), body.begin(), body.end());
}

Status PeerLink::send(const Header& header, std::span<const std::byte> body) {
  MutexLock lock(send_mutex_);
  append(header, body);
  return flush_locked();
}

Status PeerLink::flush() {
  has_news_.store(true, std::memory_order_seq_cst);
  // Whoever holds the lock looks at has_news_ again before and after it lets go.
  while (has_news_.load(std::memory_order_seq_cst)) {
    if (!send_mutex_.try_lock()) return Status::ok();
    const Status status = flush_locked();
    send_mutex_.unlock();
    if (!status.is_ok()) return status;
  }
  return Status::ok();
}

Status PeerLink::flush_locked() {
  has_news_.store(false, std::memory_order_seq_cst);
  if (!send_failure_.is_ok()) return send_failure_;
  for (;;) {
    bool complete = true;
    if (is_attached()) {
      for (MirroredChannel* channel : channels_) {
        complete = channel->collect_news(rank_, kEnoughUnsent, out_) && complete;
      }
    }
    HVD_TRY(push());
    if (complete || has_unsent()) return Status::ok();
  }
}

Status PeerLink::push() {
  while (is_attached() && out_begin_ < out_.size()) {
    const iovec part{out_.data() + out_begin_, out_.size() - out_begin_};
    auto sent = stream_->send({&part, 1});
    if (!sent) {
      send_failure_ = sent.status();
      return send_failure_;
    }
    if (*sent == 0) break;
    out_begin_ += *sent;
  }
  if (out_begin_ == out_.size()) {
    out_.clear();
    out_begin_ = 0;
  }
  has_unsent_.store(out_begin_ < out_.size(), std::memory_order_relaxed);
  return Status::ok();
}

Result<bool> PeerLink::receive(const Apply& apply) {
  if (!is_attached()) return false;
  bool any = false;
  for (;;) {
    if (in_.size() - in_end_ < kReadBytes / 2) {
      // Nothing was received yet: there is no memory either.
      if (in_end_ > in_begin_)
        std::memmove(in_.data(), in_.data() + in_begin_, in_end_ - in_begin_);
      in_end_ -= in_begin_;
      in_begin_ = 0;
      if (in_.size() - in_end_ < kReadBytes) in_.resize(in_end_ + kReadBytes);
    }
    const size_t room = in_.size() - in_end_;
    const iovec part{in_.data() + in_end_, room};
    HVD_TRY_ASSIGN(const size_t came, stream_->receive({&part, 1}));
    if (came == 0) return any;
    in_end_ += came;
    heard_.fetch_add(1, std::memory_order_relaxed);
    HVD_TRY_ASSIGN(const bool took, take_messages(apply));
    any = any || took;
    if (came < room && !stream_->has_buffered()) return any;
  }
}

Result<bool> PeerLink::take_messages(const Apply& apply) {
  bool any = false;
  while (in_end_ - in_begin_ >= sizeof(Header)) {
    Header header;
    std::memcpy(&header, in_.data() + in_begin_, sizeof header);
    if (header.bytes > kMaxBodyBytes || header.kind == 0 || header.kind > kLastKind) {
      return corrupted(concat("control stream of ", stream_->peer(), ": a message of kind ",
                              header.kind, " and ", header.bytes, " bytes"));
    }
    const size_t whole = sizeof header + header.bytes;
    if (in_end_ - in_begin_ < whole) {
      if (in_.size() - in_begin_ < whole) in_.resize(in_begin_ + whole + kReadBytes);
      break;
    }
    HVD_TRY(apply(header, {in_.data() + in_begin_ + sizeof header, header.bytes}));
    in_begin_ += whole;
    any = true;
  }
  if (in_begin_ == in_end_) in_begin_ = in_end_ = 0;
  return any;
}

}  // namespace hvd::mirror
