// Reducescatter over hosts. Blocks go in chunks, those of different members in turn, so that all
// have work. A chunk passes three stations:
//   every member of a host copies its elements into its staging            -> ready
//   one of them, the deputy, combines these: the member whose block it is, or its counterpart,
//   which sends the sum to it                                                     -> result the
//   member combines the sums of all hosts
// So the sum of a host crosses the network once. Members that are alone on their host need no
// staging. Chunk c uses slot c mod kScatterDepth of the staging, which is free when the deputy has
// read it.
#include <algorithm>
#include <array>
#include <vector>

#include "base/bytes.h"
#include "collective/hosts/exchange.h"
#include "collective/hosts/two_level.h"

namespace hvd::collective::hosts {
namespace {

using shared_memory::Link;

constexpr uint32_t kScatterDepth = 4;
constexpr size_t kMostChunkBytes = shared_memory::kStagingBytes / kScatterDepth;
constexpr size_t kLeastChunkBytes = 16 << 10;
constexpr size_t kBytesOfAllHosts = 1 << 20;  // of one chunk, from which it is combined
constexpr size_t kOutgoing = 4;               // sums on their way to other hosts
// One advance stays short: about a millisecond.
constexpr int kScatterTurnsPerAdvance = 16;

// The same on all members.
size_t chunk_bytes_for(const Exchange& x, int host_count) {
  const size_t even = kBytesOfAllHosts / static_cast<size_t>(host_count);
  const uint64_t largest = *std::max_element(x.send_bytes.begin(), x.send_bytes.end());
  const size_t most = std::clamp(even, kLeastChunkBytes, kMostChunkBytes);
  return align_up(static_cast<size_t>(std::clamp<uint64_t>(largest, 1, most)), kCacheLine);
}

class Scatter final : public Task {
 public:
  Scatter(Link& local, HostLink& hosts, const Exchange& x)
      : local_(local),
        hosts_(hosts),
        x_(x),
        n_(x.numeric),
        levels_(TwoLevel::of(n_, hosts.layout())),
        chunk_bytes_(chunk_bytes_for(x, hosts.layout().host_count())),
        step_(chunk_bytes_ / std::max(n_.slot_bytes(), n_.element_bytes())),
        mine_(chunks_of(hosts.me())) {
    uint64_t bytes = 0;
    for (int member = 0; member < hosts.layout().size(); ++member) {
      bytes += x.send_bytes[static_cast<size_t>(member)];
      total_ += chunks_of(member);
    }
    hosts.begin_work(static_cast<uint32_t>(WorkKind::kExchange), bytes);
    memory_ = hosts.scratch((kScatterDepth * host_count() + 1 + kOutgoing) * chunk_bytes_);
    marks_.assign(kScatterDepth * host_count(), 0);
    for (uint32_t c = 0; c < std::min(kScatterDepth, mine_); ++c) expect_sums(c);
  }

  Progress advance() HVD_REQUIRES(engine_role) override {
    bool moved = false;
    for (int turn = 0; turn < kScatterTurnsPerAdvance; ++turn) {
      const bool wire = hosts_.pump(), in = copy_in(), inside = reduce_inside(),
                 out = combine_hosts();
      if (is_complete()) {
        if (is_shared()) local_.step += total_;
        return Progress::kDone;
      }
      if (!wire && !in && !inside && !out) break;
      moved = true;
    }
    return moved ? Progress::kAdvanced : Progress::kBlocked;
  }

 private:
  struct Chunk {
    int owner = 0;
    uint32_t number = 0;  // among those of the owner
  };
  struct Sent {
    int member = -1;
    uint64_t position = 0;
  };

  size_t host_count() const { return static_cast<size_t>(hosts_.layout().host_count()); }
  bool is_shared() const { return local_.size() > 1; }
  bool is_complete() const {
    return reduced_ == total_ && combined_ == mine_ && hosts_.has_sent_all();
  }
  uint64_t elements_of(int member) const {
    return x_.send_bytes[static_cast<size_t>(member)] / n_.element_bytes();
  }
  uint32_t chunks_of(int member) const {
    return static_cast<uint32_t>((elements_of(member) + step_ - 1) / step_);
  }
  uint64_t count_of(const Chunk& chunk) const {
    return std::min<uint64_t>(step_, elements_of(chunk.owner) - chunk.number * step_);
  }
  const std::byte* input_of(const Chunk& chunk) const {
    if (x_.in == nullptr) return nullptr;
    return x_.in + x_.send_offset[static_cast<size_t>(chunk.owner)] +
           chunk.number * step_ * n_.element_bytes();
  }
  std::byte* staging(int member, uint32_t chunk) const {
    return local_.staging(member) + (chunk % kScatterDepth) * kMostChunkBytes;
  }
  std::byte* sum_of(uint32_t number, size_t host) const {
    return memory_ + ((number % kScatterDepth) * host_count() + host) * chunk_bytes_;
  }
  std::byte* result() const { return memory_ + kScatterDepth * host_count() * chunk_bytes_; }
  std::byte* outgoing(size_t slot) const { return result() + (1 + slot) * chunk_bytes_; }

  // First chunks of all members, then the second ones.
  Chunk next_chunk() {
    for (;; ++next_.owner) {
      if (next_.owner == hosts_.layout().size()) next_ = {0, next_.number + 1};
      if (next_.number < chunks_of(next_.owner)) break;
    }
    const Chunk chunk = next_;
    ++next_.owner;
    return chunk;
  }

  void expect_sums(uint32_t number) {
    const size_t bytes = count_of({hosts_.me(), number}) * n_.slot_bytes();
    for (size_t host = 0; host < host_count(); ++host) {
      if (static_cast<int>(host) == hosts_.my_host()) continue;
      const int deputy = hosts_.layout().counterpart(hosts_.me(), static_cast<int>(host));
      marks_[(number % kScatterDepth) * host_count() + host] =
          hosts_.queue_receive(deputy, sum_of(number, host), bytes);
    }
  }

  bool copy_in() HVD_REQUIRES(engine_role) {
    if (copied_ == total_ || copied_ - reduced_ == kScatterDepth) return false;
    if (is_shared()) {
      const uint32_t freed = copied_ < kScatterDepth ? 0 : copied_ - kScatterDepth + 1;
      if (!local_.all_results(local_.step + freed)) return false;
    }
    const Chunk chunk = chunks_[copied_ % kScatterDepth] = next_chunk();
    if (is_shared()) {
      put(n_, staging(local_.me(), copied_), input_of(chunk), count_of(chunk));
      local_.post_ready(local_.step + copied_ + 1);
    }
    ++copied_;
    return true;
  }

  bool reduce_inside() HVD_REQUIRES(engine_role) {
    if (reduced_ == copied_) return false;
    const Chunk& chunk = chunks_[reduced_ % kScatterDepth];
    if (hosts_.layout().counterpart(chunk.owner, hosts_.my_host()) == hosts_.me()) {
      if (is_shared() && !local_.all_ready(local_.step + reduced_ + 1)) return false;
      if (chunk.owner == hosts_.me()) {
        if (chunk.number - combined_ == kScatterDepth) return false;
        sum_members(chunk, sum_of(chunk.number, static_cast<size_t>(hosts_.my_host())));
        ++own_sums_;
      } else if (!send_sum(chunk)) {
        return false;
      }
    }
    ++reduced_;
    if (is_shared()) local_.post_result(local_.step + reduced_);
    return true;
  }

  void sum_members(const Chunk& chunk, std::byte* to) const {
    const uint64_t count = count_of(chunk);
    if (!is_shared()) return put(n_, to, input_of(chunk), count);
    const void* sources[shm::kMaxRanksPerHost];
    for (int member = 0; member < local_.size(); ++member)
      sources[member] = staging(member, reduced_);
    void* target = to;
    kernels().reduce({n_.slot_dtype, n_.op, count, sources, static_cast<unsigned>(local_.size()),
                      &target, 1, levels_.inside(static_cast<size_t>(local_.size()))});
  }

  bool send_sum(const Chunk& chunk) {
    Sent& sent = sent_[sent_count_ % kOutgoing];
    if (sent.member >= 0 && !hosts_.has_sent(sent.member, sent.position)) return false;
    std::byte* sum = outgoing(sent_count_++ % kOutgoing);
    sum_members(chunk, sum);
    sent = {chunk.owner, hosts_.queue_send(chunk.owner, sum, count_of(chunk) * n_.slot_bytes())};
    return true;
  }

  bool combine_hosts() {
    if (combined_ == own_sums_) return false;
    const std::byte* sums[shm::kMaxRanks];
    for (size_t host = 0; host < host_count(); ++host) {
      sums[host] = sum_of(combined_, host);
      if (static_cast<int>(host) == hosts_.my_host()) continue;
      const int deputy = hosts_.layout().counterpart(hosts_.me(), static_cast<int>(host));
      if (!hosts_.has_received(deputy, marks_[(combined_ % kScatterDepth) * host_count() + host]))
        return false;
    }
    const auto my_host = static_cast<unsigned>(hosts_.my_host());
    const uint64_t count = count_of({hosts_.me(), combined_});
    combine_between(hosts_.layout(), levels_.between,
                    {sums, static_cast<unsigned>(host_count()), my_host, sums[my_host], result(),
                     nullptr, count});
    if (x_.out != nullptr)
      get(n_, x_.out + combined_ * step_ * n_.element_bytes(), result(), count);
    ++combined_;
    if (combined_ + kScatterDepth - 1 < mine_) expect_sums(combined_ + kScatterDepth - 1);
    return true;
  }

  Link& local_;
  HostLink& hosts_;
  const Exchange& x_;
  const Numeric n_;
  const TwoLevel levels_;
  const size_t chunk_bytes_;
  const uint64_t step_;  // elements of a whole chunk
  const uint32_t mine_;  // chunks of this member's block
  uint32_t total_ = 0;   // of all
  std::byte* memory_ = nullptr;
  std::vector<uint64_t> marks_;  // by slot and host: where a sum ends in its stream
  std::array<Chunk, kScatterDepth> chunks_;
  std::array<Sent, kOutgoing> sent_;
  size_t sent_count_ = 0;
  Chunk next_;
  // Chunks that have passed each station; the last two count those of this member's block.
  uint32_t copied_ = 0, reduced_ = 0, own_sums_ = 0, combined_ = 0;
};

}  // namespace

std::unique_ptr<Task> make_scatter(Link& local, HostLink& hosts, const Exchange& exchange) {
  return std::make_unique<Scatter>(local, hosts, exchange);
}

}  // namespace hvd::collective::hosts
