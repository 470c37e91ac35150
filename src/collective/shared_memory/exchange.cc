// Allgather, broadcast, alltoall, reducescatter: blocks pass through the sender's staging in
// rounds. Round k uses slot k mod kDepth; a sender refills a slot when all receivers have read it,
// so sender and receivers overlap. What a rank sends to itself does not travel: it is copied along
// with the rounds, together with the staging if both have the same source.
#include <numeric>

#include "collective/shared_memory/tasks.h"

namespace hvd::collective::shared_memory {
namespace {

constexpr uint32_t kDepth = 4;
// Half or a quarter of it costs up to a third more: the ranks wait for each other more often.
constexpr size_t kSlotBytes = kStagingBytes / kDepth;
// Inputs and outputs of all ranks that the last cache of a machine holds. What processors say about
// its size under a hypervisor is not true; this was measured with 32 MiB.
constexpr uint64_t kCachedBytes = 24 << 20;

class ExchangeTask final : public Task {
 public:
  ExchangeTask(Link& link, Work& work) : link_(link), work_(work) { begin(); }

  Progress advance() HVD_REQUIRES(engine_role) override {
    Progress progress = Progress::kBlocked;
    while (index_ < work_.exchanges.size()) {
      // Ahead as far as allowed first: a peer that reads then seldom finds nothing.
      bool wrote = false;
      while (try_write()) wrote = true;
      const bool read = try_read();
      if (read_ == rounds_ && (written_ == rounds_ || !sends())) {
        finish();
        progress = Progress::kAdvanced;
        continue;
      }
      if (!wrote && !read) return progress;
      progress = Progress::kAdvanced;
    }
    return Progress::kDone;
  }

 private:
  const Exchange& now() const { return work_.exchanges[index_]; }
  bool sends() const { return sends_; }

  void begin() {
    written_ = read_ = 0;
    peer_ = 0;
    if (index_ == work_.exchanges.size()) return;
    const Exchange& x = now();
    const auto cells =
        static_cast<size_t>(x.same_block_for_all ? 1 : std::max(1, link_.size() - 1));
    // Of at least a line, whatever it is cut into: 256 members share 16 KiB.
    cell_bytes_ =
        std::max(work_.cut.chunk(kSlotBytes) / cells / kCacheLine, size_t{1}) * kCacheLine;
    rounds_ = static_cast<uint32_t>((x.largest_block_bytes + cell_bytes_ - 1) / cell_bytes_);
    sends_ = false;
    for (int to = 0; to < link_.size(); ++to)
      sends_ = sends_ || (to != link_.me() && send_bytes(to) > 0);
    const auto moved = std::accumulate(x.send_bytes.begin(), x.send_bytes.end(), uint64_t{0}) +
                       std::accumulate(x.receive_bytes.begin(), x.receive_bytes.end(), uint64_t{0});
    reuse_ =
        moved > kCachedBytes / static_cast<uint64_t>(link_.size()) ? Reuse::kLate : Reuse::kSoon;
    find_own_block();
  }

  uint64_t send_bytes(int to) const {
    return now().send_bytes[now().same_block_for_all ? 0 : static_cast<size_t>(to)];
  }
  uint64_t send_offset(int to) const {
    return now().send_offset[now().same_block_for_all ? 0 : static_cast<size_t>(to)];
  }
  // Nobody has a cell for itself.
  std::byte* cell(int member, uint32_t round, int to) const {
    return link_.staging(member) + (round % kDepth) * kSlotBytes +
           (now().same_block_for_all ? 0 : static_cast<size_t>(to - (to > member)) * cell_bytes_);
  }
  uint64_t part(uint64_t bytes, uint32_t round) const {  // of a block, in this round
    const uint64_t before = uint64_t{round} * cell_bytes_;
    return before >= bytes ? 0 : std::min<uint64_t>(cell_bytes_, bytes - before);
  }

  // What I send to myself. (A reducescatter combines it when it reads.)
  void find_own_block() {
    const Exchange& x = now();
    const auto me = static_cast<size_t>(link_.me());
    own_kept_ = own_bytes_ = 0;
    if (x.reduces || x.out == nullptr || x.in == nullptr) return;
    own_from_ = x.in + send_offset(link_.me());
    own_to_ = x.out + x.receive_offset[me];
    if (own_from_ != own_to_) own_bytes_ = x.receive_bytes[me];
  }
  void keep_own_block(uint64_t end) {
    end = std::min(end, own_bytes_);
    if (end <= own_kept_) return;
    kernels().copy(own_to_ + own_kept_, own_from_ + own_kept_, end - own_kept_, reuse_);
    own_kept_ = end;
  }

  bool try_write() HVD_REQUIRES(engine_role) {
    if (!sends() || written_ == rounds_ || written_ - read_ >= 2) return false;
    // Slot free: all have read what was in it; in the first rounds, what earlier works left there.
    const uint32_t needed = written_ < kDepth ? 0 : written_ - kDepth + 1;
    if (!link_.all_results(link_.step + needed)) return false;
    const Exchange& x = now();
    for (int to = 0; to < link_.size(); ++to) {
      if (x.same_block_for_all ? to > 0 : to == link_.me()) continue;
      const uint64_t bytes = part(send_bytes(to), written_);
      if (bytes > 0) write_cell(x, to, bytes);
    }
    ++written_;
    link_.post_ready(link_.step + written_);
    keep_own_block(uint64_t{written_} * cell_bytes_);  // while the peers write
    return true;
  }

  void write_cell(const Exchange& x, int to, uint64_t bytes) {
    const uint64_t before = uint64_t{written_} * cell_bytes_;
    const std::byte* from = x.in + send_offset(to) + before;
    std::byte* shared = cell(link_.me(), written_, to);
    if (x.reduces) {
      put(x.numeric, shared, from, bytes / x.numeric.element_bytes());
    } else if (x.same_block_for_all && own_kept_ == before && before + bytes <= own_bytes_) {
      kernels().copy_to_both(shared, own_to_ + before, from, bytes, reuse_);
      own_kept_ += bytes;
    } else {
      kernels().copy_to_shared(shared, from, bytes);
    }
  }

  bool try_read() HVD_REQUIRES(engine_role) {
    if (read_ == rounds_ || (sends() && written_ == read_)) return false;
    if (now().reduces ? !read_reducing() : !read_storing()) return false;
    ++read_;
    peer_ = 0;
    link_.post_result(link_.step + read_);
    return true;
  }

  bool read_storing() {
    const Exchange& x = now();
    for (; peer_ < link_.size(); ++peer_) {
      const auto from = static_cast<size_t>((link_.me() + peer_) % link_.size());
      const uint64_t bytes = part(x.receive_bytes[from], read_);
      if (peer_ == 0 || bytes == 0) continue;
      const int member = static_cast<int>(from);
      if (!link_.has_ready(member, link_.step + read_ + 1)) return false;
      if (x.out == nullptr) continue;
      store(x.out + x.receive_offset[from] + uint64_t{read_} * cell_bytes_,
            cell(member, read_, link_.me()), bytes);
    }
    return true;
  }

  void store(std::byte* to, const std::byte* cell, uint64_t bytes) const {
    if (reuse_ == Reuse::kLate) return kernels().copy(to, cell, bytes, reuse_);
    kernels().copy_from_shared(to, cell, bytes);
  }

  bool read_reducing() {
    const Exchange& x = now();
    const auto me = static_cast<size_t>(link_.me());
    const uint64_t bytes = part(x.receive_bytes[me], read_);
    if (bytes == 0) return true;
    if (!link_.all_ready(link_.step + read_ + 1)) return false;
    const std::byte* slots[shm::kMaxRanksPerHost];
    for (int r = 0; r < link_.size(); ++r) slots[r] = cell(r, read_, link_.me());
    const uint64_t before = uint64_t{read_} * cell_bytes_;
    combine(x.numeric, {slots, static_cast<unsigned>(link_.size()), static_cast<unsigned>(me),
                        x.in == nullptr ? nullptr : x.in + send_offset(link_.me()) + before,
                        x.out == nullptr ? nullptr : x.out + before, nullptr,
                        bytes / x.numeric.element_bytes()});
    return true;
  }

  void finish() HVD_REQUIRES(engine_role) {
    keep_own_block(own_bytes_);
    if (rounds_ > 0 && read_ == rounds_) link_.post_result(link_.step + rounds_);
    link_.step += rounds_;
    ++index_;
    begin();
  }

  Link& link_;
  Work& work_;
  size_t index_ = 0;
  uint32_t rounds_ = 0, written_ = 0, read_ = 0;
  size_t cell_bytes_ = 0;
  int peer_ = 0;
  bool sends_ = false;
  Reuse reuse_ = Reuse::kSoon;
  const std::byte* own_from_ = nullptr;
  std::byte* own_to_ = nullptr;
  uint64_t own_bytes_ = 0, own_kept_ = 0;
};

}  // namespace

std::unique_ptr<Task> make_exchange(Link& link, Work& work) {
  return std::make_unique<ExchangeTask>(link, work);
}

}  // namespace hvd::collective::shared_memory
