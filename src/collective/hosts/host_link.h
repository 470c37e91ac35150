// host_link.h - the streams of one member of a channel to members on other hosts. Both ends know
// from the work how many bytes come next, so nothing is framed: a task queues memory to send and
// memory to fill, and asks later how far each stream has come. A position counts the bytes of a
// stream since it began; queue_*() gives the position at which that memory is through.
//
// Streams are opened when first used. Works run in the same order on all members, so a stream needs
// no tags; a check word per work, direction and stream turns a disagreement into CORRUPTED.
// Never blocks. Failure stays: nothing moves afterwards.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/engine_role.h"
#include "collective/hosts/layout.h"
#include "collective/hosts/pace.h"
#include "collective/work.h"
#include "net/mesh.h"

namespace hvd::collective::hosts {

struct HostLinkOptions {
  HostLayout layout;
  int me = 0;            // member
  uint32_t channel = 0;  // id of the process set
  std::vector<int32_t> global_ranks;
  std::optional<Pace> pace = {};  // of all works, for tests; else what is quicker
};

// What the bytes of a work are: those that may be code to whoever gets them (a pickle) take streams
// that nobody on the way can read or change.
enum class Guard { kNumbers, kBytes };

class HostLink {
 public:
  HostLink(net::Mesh& mesh, HostLinkOptions options);
  HostLink(const HostLink&) = delete;
  HostLink& operator=(const HostLink&) = delete;

  const HostLayout& layout() const { return options_.layout; }
  int me() const { return options_.me; }
  int my_host() const { return layout().host(me()); }
  int my_place() const { return layout().place(me()); }
  bool is_lane() const { return my_place() < layout().lanes; }

  // Before anything of a work is queued. `kind`, `bytes` and `guard` must be the same on all
  // members.
  void begin_work(uint32_t kind, uint64_t bytes, Guard guard = Guard::kNumbers);
  // The same for a work whose blocks may overlap, and how far they shall. In such a work the member
  // on the first host sends something to every other one of its lane. It alone decides; what it
  // says with one work holds from the next one on. finish_paced_work() says that the work is done.
  // A pace that the work brings along is agreed already.
  Pace begin_paced_work(uint32_t kind, uint64_t bytes, Cut::Pace given = Cut::Pace::kOwn);
  void finish_paced_work() HVD_REQUIRES(engine_role);

  // The memory must stay until the position is reached. Empty memory is fine.
  uint64_t queue_send(int member, const void* data, size_t bytes);
  // null data: the bytes are read and dropped.
  uint64_t queue_receive(int member, void* data, size_t bytes);
  // Never after a failure.
  bool has_sent(int member, uint64_t position) const {
    return !has_failed() && peer(member).out.done >= position;
  }
  bool has_received(int member, uint64_t position) const {
    return !has_failed() && peer(member).in.done >= position;
  }
  bool has_sent_all() const;

  // Moves what can be moved: sends first, then receives. True if a byte moved.
  bool pump() HVD_REQUIRES(engine_role);

  // The allreduce of the library below, for works of this channel; null: streams only.
  net::LaneReduce* library() { return library_; }
  // While one is under way its waiters look at the mesh.
  void set_library_works(bool works) { library_works_ = works; }
  // The first failure stays.
  void fail(Status status);

  // OK, or the first failure, which names the peer.
  const Status& status() const { return status_; }
  bool has_failed() const { return !status_.is_ok(); }

  struct Want {
    int descriptor;
    short events;  // of poll(2)
  };
  // For what a task that is blocked waits on the network; empty: only for members of this host.
  // Valid until the next call.
  const std::vector<Want>& wants();

  // Members of other hosts from which bytes are missing, or which do not take any.
  std::vector<int> awaited() const;

  // Memory for the task that runs, aligned to cache lines; keeps its address and size between
  // works, so that it stays in cache. Contents are lost when it grows.
  std::byte* scratch(size_t bytes);

 private:
  struct CheckWord {
    uint32_t sequence = 0;
    uint16_t kind = 0;
    PaceMask paces = 0;  // of works that follow; counts if it comes from the first host
    uint64_t bytes = 0;
    bool is_of_same_work(const CheckWord& other) const {
      return sequence == other.sequence && kind == other.kind && bytes == other.bytes;
    }
  };
  // A check word and the little that follows it, as one piece of memory: one part of a system call
  // instead of two.
  struct SmallMessage {
    CheckWord word;
    std::byte payload[1024];
  };
  struct PacedWork {
    bool is_running = false;
    int size_class = -1;
    Pace pace = Pace::kLockstep;
    TimePoint began{};
  };
  struct Direction {
    std::vector<iovec> parts;  // from `first` on not yet through
    size_t first = 0;
    uint64_t queued = 0, done = 0;
    uint32_t work = 0;      // whose check word was queued last
    SmallMessage small;     // the word as sent, or as it came
    uint64_t word_end = 0;  // position behind it, and behind the payload there; 0: none is awaited
    std::byte* payload_to = nullptr;  // receiving: where the payload belongs
    size_t payload_bytes = 0;         // receiving: in `small`
    bool is_idle() const { return first == parts.size(); }
  };
  struct Peer {
    int member = 0;
    std::unique_ptr<net::Stream> stream;
    Direction out, in;
    bool is_drained = false;  // the last receive took all that was there
  };
  struct Free {
    void operator()(std::byte* data) const;
  };

  Peer& peer(int member) { return (*peers_)[static_cast<size_t>(member)]; }
  const Peer& peer(int member) const { return (*peers_)[static_cast<size_t>(member)]; }
  std::vector<Peer> make_peers() const;
  void touch(Peer& peer);
  static uint64_t append(Direction& direction, void* data, size_t bytes);
  static void consume(Direction& direction, size_t bytes);
  bool open(Peer& peer);
  bool send_some(Peer& peer);
  bool receive_some(Peer& peer);
  bool may_receive(Peer& peer);
  size_t receive_parts(const Direction& in, iovec* parts);
  void check(Peer& peer);

  net::Mesh& mesh_;
  const HostLinkOptions options_;
  // By member; those of this host stay unused.
  std::vector<Peer> plain_peers_, guarded_peers_;
  std::vector<Peer>* peers_ = &plain_peers_;  // of the work that runs
  std::vector<int> touched_;                  // peers that this work uses
  CheckWord now_;
  PacedWork paced_;
  PaceMask paces_ = 0;  // in effect
  PaceChooser chooser_;
  std::vector<Want> wants_;
  std::unique_ptr<std::byte, Free> scratch_;
  size_t scratch_bytes_ = 0;
  std::unique_ptr<std::byte[]> trash_;
  net::LaneReduce* const library_;
  bool library_works_ = false;
  Status status_;
};

}  // namespace hvd::collective::hosts
