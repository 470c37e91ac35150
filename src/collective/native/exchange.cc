// Allgather, broadcast, alltoall, reducescatter: blocks pass through the sender's staging in
// rounds. Round k uses slot k mod kDepth; a sender refills a slot when all receivers have read it,
// so sender and receivers overlap.
#include <cstring>

#include "collective/native/task.h"

namespace hvd::native {
namespace {

constexpr uint32_t kDepth = 4;
constexpr size_t kSlotBytes = kStagingBytes / kDepth;

class ExchangeTask final : public Task {
 public:
  ExchangeTask(Link& link, Work& work) : link_(link), work_(work) { begin(); }

  Progress advance() override {
    Progress progress = Progress::kBlocked;
    while (index_ < work_.exchanges.size()) {
      const bool wrote = try_write();
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
    const auto cells = static_cast<size_t>(x.same_block_for_all ? 1 : link_.size());
    cell_bytes_ = kSlotBytes / cells / kCacheLine * kCacheLine;
    rounds_ = static_cast<uint32_t>((x.largest_block_bytes + cell_bytes_ - 1) / cell_bytes_);
    sends_ = false;
    for (int to = 0; to < link_.size(); ++to)
      sends_ = sends_ || (to != link_.me() && send_bytes(to) > 0);
    keep_own_block();
  }

  uint64_t send_bytes(int to) const {
    return now().send_bytes[now().same_block_for_all ? 0 : static_cast<size_t>(to)];
  }
  uint64_t send_offset(int to) const {
    return now().send_offset[now().same_block_for_all ? 0 : static_cast<size_t>(to)];
  }
  std::byte* cell(int member, uint32_t round, int to) const {
    return link_.staging(member) + (round % kDepth) * kSlotBytes +
           (now().same_block_for_all ? 0 : static_cast<size_t>(to) * cell_bytes_);
  }
  uint64_t part(uint64_t bytes, uint32_t round) const {  // of a block, in this round
    const uint64_t before = uint64_t{round} * cell_bytes_;
    return before >= bytes ? 0 : std::min<uint64_t>(cell_bytes_, bytes - before);
  }

  // What I send to myself does not travel. (A reducescatter combines it when it reads.)
  void keep_own_block() {
    const Exchange& x = now();
    const auto me = static_cast<size_t>(link_.me());
    if (x.reduces || x.receive_bytes[me] == 0 || x.out == nullptr || x.in == nullptr) return;
    const std::byte* from = x.in + send_offset(link_.me());
    std::byte* to = x.out + x.receive_offset[me];
    if (from != to) std::memmove(to, from, x.receive_bytes[me]);
  }

  bool try_write() {
    if (!sends() || written_ == rounds_ || written_ - read_ >= 2) return false;
    // Slot free: all have read what was in it; in the first rounds, what earlier works left there.
    const uint32_t needed = written_ < kDepth ? 0 : written_ - kDepth + 1;
    if (!link_.all_results(link_.step + needed)) return false;
    const Exchange& x = now();
    const uint64_t before = uint64_t{written_} * cell_bytes_;
    for (int to = 0; to < link_.size(); ++to) {
      if (x.same_block_for_all ? to > 0 : to == link_.me()) continue;
      const uint64_t bytes = part(send_bytes(to), written_);
      if (bytes > 0)
        write_cell(x, cell(link_.me(), written_, to), x.in + send_offset(to) + before, bytes);
    }
    ++written_;
    link_.post_ready(link_.step + written_);
    return true;
  }

  static void write_cell(const Exchange& x, std::byte* to, const std::byte* from, uint64_t bytes) {
    if (x.reduces) {
      put(x.numeric, to, from, bytes / x.numeric.element_bytes());
    } else {
      kernels().copy_to_shared(to, from, bytes);
    }
  }

  bool try_read() {
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
      kernels().copy_from_shared(x.out + x.receive_offset[from] + uint64_t{read_} * cell_bytes_,
                                 cell(member, read_, link_.me()), bytes);
    }
    return true;
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

  void finish() {
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
};

}  // namespace

std::unique_ptr<Task> make_exchange(Link& link, Work& work) {
  return std::make_unique<ExchangeTask>(link, work);
}

}  // namespace hvd::native
