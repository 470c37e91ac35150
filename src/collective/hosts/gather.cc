// Allgather and broadcast. The owner of a block sends it once to each other host, to its
// counterpart there. Inside a host every member publishes, through its staging, one stream of
// bytes: its own block, then the blocks from other hosts for which it is the counterpart, in member
// order. All know all sizes, so all know what a stream holds. Bytes from the network go straight
// into the staging. Round k of all streams uses slot k mod kDepth of the stagings; a slot is
// refilled when all have read it.
#include <array>
#include <cstring>
#include <vector>

#include "collective/hosts/exchange.h"

namespace hvd::collective::hosts {
namespace {

class Gather final : public Task {
  static constexpr uint32_t kDepth = 4;
  static constexpr uint64_t kSlotBytes = shared_memory::kStagingBytes / kDepth;

 public:
  Gather(shared_memory::Link& local, HostLink& hosts, const Exchange& exchange)
      : local_(local), hosts_(hosts), x_(exchange) {
    hosts.begin_work(static_cast<uint32_t>(WorkKind::kExchange), x_.largest_block_bytes,
                     guard_of(x_));
    send_own_block();
    keep_own_block();
    if (local.size() > 1) {
      plan_streams();
    } else {
      receive_into_place();
    }
  }

  Progress advance() HVD_REQUIRES(engine_role) override {
    bool moved = hosts_.pump();
    while (try_fill() || try_publish() || try_read()) moved = true;
    if (read_ == rounds_ && published_ == rounds_ && hosts_.has_sent_all() && has_come()) {
      local_.step += rounds_;
      return Progress::kDone;
    }
    return moved ? Progress::kAdvanced : Progress::kBlocked;
  }

 private:
  struct Segment {
    int owner;            // member whose block it is
    uint64_t begin, end;  // bytes of the stream
  };
  struct Arrival {
    int member;
    uint64_t position;
  };

  uint64_t block_bytes(int member) const { return x_.receive_bytes[static_cast<size_t>(member)]; }

  void send_own_block() {
    const HostLayout& layout = hosts_.layout();
    if (x_.send_bytes[0] == 0) return;
    for (int step = 1; step < layout.host_count(); ++step) {
      const int host = (hosts_.my_host() + step) % layout.host_count();
      hosts_.queue_send(layout.counterpart(hosts_.me(), host), x_.in + x_.send_offset[0],
                        x_.send_bytes[0]);
    }
  }

  void keep_own_block() {
    if (x_.out == nullptr || x_.in == nullptr || x_.send_bytes[0] == 0) return;
    std::byte* to = x_.out + x_.receive_offset[static_cast<size_t>(hosts_.me())];
    const std::byte* from = x_.in + x_.send_offset[0];
    if (to != from) std::memmove(to, from, x_.send_bytes[0]);
  }

  bool comes_to(int owner, int member) const {
    const HostLayout& layout = hosts_.layout();
    return layout.host(owner) != hosts_.my_host() &&
           layout.counterpart(owner, hosts_.my_host()) == member;
  }

  // Nobody else on this host: no staging is needed.
  void receive_into_place() {
    for (int owner = 0; owner < hosts_.layout().size(); ++owner) {
      if (owner == hosts_.me() || block_bytes(owner) == 0) continue;
      std::byte* to =
          x_.out == nullptr ? nullptr : x_.out + x_.receive_offset[static_cast<size_t>(owner)];
      arrivals_[0].push_back({owner, hosts_.queue_receive(owner, to, block_bytes(owner))});
    }
  }

  void plan_streams() {
    const std::vector<int>& here = hosts_.layout().on_host(hosts_.my_host());
    for (const int publisher : here) {
      std::vector<Segment>& stream = streams_.emplace_back();
      uint64_t end = 0;
      const auto add = [&](int owner) {
        if (block_bytes(owner) == 0) return;
        stream.push_back({owner, end, end + block_bytes(owner)});
        end += block_bytes(owner);
      };
      add(publisher);
      for (int owner = 0; owner < hosts_.layout().size(); ++owner) {
        if (comes_to(owner, publisher)) add(owner);
      }
      rounds_ = std::max(rounds_, static_cast<uint32_t>((end + kSlotBytes - 1) / kSlotBytes));
    }
  }

  // Calls fn(owner, offset in the owner's block, offset in the slot, bytes) for what a round of a
  // stream holds.
  template <typename Fn>
  void for_round(int publisher, uint32_t round, const Fn& fn) const {
    const uint64_t begin = uint64_t{round} * kSlotBytes, end = begin + kSlotBytes;
    for (const Segment& segment : streams_[static_cast<size_t>(publisher)]) {
      const uint64_t low = std::max(begin, segment.begin), high = std::min(end, segment.end);
      if (low < high) fn(segment.owner, low - segment.begin, low - begin, high - low);
    }
  }
  std::byte* slot(int member, uint32_t round) const {
    return local_.staging(member) + (round % kDepth) * kSlotBytes;
  }

  // Own bytes are copied into the slot, others will come into it.
  bool try_fill() HVD_REQUIRES(engine_role) {
    if (filled_ == rounds_ || filled_ - read_ == kDepth) return false;
    const uint32_t freed = filled_ < kDepth ? 0 : filled_ - kDepth + 1;
    if (!local_.all_results(local_.step + freed)) return false;
    std::byte* to = slot(local_.me(), filled_);
    std::vector<Arrival>& arrivals = arrivals_[filled_ % kDepth];
    arrivals.clear();
    for_round(local_.me(), filled_, [&](int owner, uint64_t from, uint64_t at, uint64_t bytes) {
      if (owner == hosts_.me()) {
        kernels().copy_to_shared(to + at, x_.in + x_.send_offset[0] + from, bytes);
      } else {
        arrivals.push_back({owner, hosts_.queue_receive(owner, to + at, bytes)});
      }
    });
    ++filled_;
    hosts_.pump();
    return true;
  }

  bool try_publish() HVD_REQUIRES(engine_role) {
    if (published_ == filled_ || !have_come(arrivals_[published_ % kDepth])) return false;
    local_.post_ready(local_.step + ++published_);
    return true;
  }

  bool have_come(const std::vector<Arrival>& arrivals) const {
    for (const Arrival& arrival : arrivals) {
      if (!hosts_.has_received(arrival.member, arrival.position)) return false;
    }
    return true;
  }
  bool has_come() const { return local_.size() > 1 || have_come(arrivals_[0]); }

  bool try_read() HVD_REQUIRES(engine_role) {
    if (read_ == published_ || !local_.all_ready(local_.step + read_ + 1)) return false;
    for (int i = 0; i < local_.size() && x_.out != nullptr; ++i) {
      const int publisher = (local_.me() + i) % local_.size();
      const std::byte* from = slot(publisher, read_);
      for_round(publisher, read_, [&](int owner, uint64_t to, uint64_t at, uint64_t bytes) {
        if (owner == hosts_.me()) return;
        kernels().copy_from_shared(x_.out + x_.receive_offset[static_cast<size_t>(owner)] + to,
                                   from + at, bytes);
      });
    }
    local_.post_result(local_.step + ++read_);
    return true;
  }

  shared_memory::Link& local_;
  HostLink& hosts_;
  const Exchange& x_;
  std::vector<std::vector<Segment>> streams_;  // by place on this host
  std::array<std::vector<Arrival>, kDepth> arrivals_;
  // Rounds that have passed each station.
  uint32_t rounds_ = 0, filled_ = 0, published_ = 0, read_ = 0;
};

}  // namespace

std::unique_ptr<Task> make_gather(shared_memory::Link& local, HostLink& hosts,
                                  const Exchange& exchange) {
  return std::make_unique<Gather>(local, hosts, exchange);
}

}  // namespace hvd::collective::hosts
