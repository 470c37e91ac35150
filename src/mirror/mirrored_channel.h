// mirrored_channel.h - one process set that spans hosts: finds what is new in this rank's own state
// for a peer, and writes what peers sent into their places on the board.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "control/board.h"
#include "mirror/counterparts.h"
#include "mirror/message.h"
#include "shm/doorbell.h"

namespace hvd::mirror {

class PeerLink;

struct ChannelView {
  uint32_t id = 0;       // of the process set, for sleepers of this host
  uint32_t wire_id = 0;  // the same and its generation: an id may be used again
  control::Board board;
  int me = 0;
  Members members;
};

class MirroredChannel {
 public:
  MirroredChannel(ChannelView view, shm::Job& job);
  ~MirroredChannel();

  uint32_t wire_id() const { return view_.wire_id; }
  // Global ranks that get this rank's state, and those whose state it gets.
  std::vector<int32_t> receivers() const;
  std::vector<int32_t> senders() const;

  // The links to receivers(); set by the mirror before the channel is used.
  void add_link(PeerLink& link) { links_.push_back(&link); }
  const std::vector<PeerLink*>& links() const { return links_; }

  // Appends what `peer` has not been sent. False: there is more, but `out` holds enough. Needs the
  // send lock of the peer's link.
  bool collect_news(int32_t peer, size_t enough, std::vector<std::byte>& out);

  // Writes a message of `from` into the segment. Needs the receive lock of the mirror.
  Status apply(int32_t from, const Header& header, std::span<const std::byte> body);
  // After messages were applied: wakes who waits for them.
  void ring();

 private:
  struct Target {
    int32_t rank = 0;
    uint32_t records = 0;  // sent
    uint32_t log = 0;
    uint32_t log_seen = 0;
    uint32_t records_at_marks = 0;
    std::vector<uint32_t> lows;
    bool is_closed = false;
  };
  struct Source {
    int32_t rank = 0;
    int member = 0;
    uint32_t next = 0;  // record
    // Long messages of the sender, in this rank's arena until everybody here has read them.
    std::deque<std::pair<uint32_t, std::byte*>> messages;
  };
  void add_record(Target& target, std::vector<std::byte>& out) const;
  void add_log(Target& target, std::vector<std::byte>& out) const;
  void add_marks(Target& target, std::vector<std::byte>& out) const;
  bool marks_are_due(const Target& target) const;
  bool is_going() const;
  std::span<const std::byte> payload_of(const control::Record& record) const;

  Status apply_record(Source& source, uint32_t index, std::span<const std::byte> body);
  Result<uint32_t> keep_message(Source& source, uint32_t index, std::span<const std::byte> payload);
  Status apply_marks(const Source& source, std::span<const std::byte> body) const;
  Status apply_log(const Source& source, uint32_t index, std::span<const std::byte> body);
  uint32_t least_low_here(int stream) const;
  Status refuse(const Source& source, const char* what, uint64_t got) const;

  const ChannelView view_;
  shm::Job& job_;
  shm::Doorbell bell_;
  std::vector<int> members_here_;
  std::vector<Target> targets_;
  std::vector<Source> sources_;
  uint32_t next_log_ = 0;
  std::vector<PeerLink*> links_;
};

}  // namespace hvd::mirror
