#include "collective/shared_memory/bare_group.h"

#include <sched.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/cpu.h"
#include "base/text.h"
#include "collective/executor.h"
#include "collective/shared_memory/backend.h"

namespace hvd::collective::shared_memory {
namespace {

constexpr size_t kInlinePayload = 56;
constexpr size_t kEagerBytes = 1 << 20;
constexpr size_t kEagerStride = kEagerBytes + 5 * 4096 + 256;

// Number and payload in one cache line: a message of up to 56 bytes costs one line transfer.
struct alignas(kLineSpacing) Line {
  std::atomic<uint32_t> number;
  uint32_t reserved;
  std::byte payload[kInlinePayload];
};

class SharedMemoryGroup final : public BareGroup {
 public:
  SharedMemoryGroup(std::unique_ptr<shm::Job> job)
      : job_(std::move(job)),
        members_(identity(job_->size())),
        lines_(reinterpret_cast<Line*>(region())),
        eager_(region() + align_up(3 * static_cast<size_t>(job_->size()) * sizeof(Line), 4096)),
        link_(*job_, eager_ + static_cast<size_t>(job_->size()) * kEagerStride, job_->size(),
              job_->rank(), members_.data()),
        backend_(link_),
        small_limit_(job_->size() == 2 ? 8 << 10 : 32 << 10),
        spins_(job_->size() > job_->core_count() ? 0 : 4000) {}

  Status allreduce(void* data, size_t count, DType dtype, ReduceOp op) override {
    Numeric n;
    n.dtype = n.slot_dtype = dtype;
    n.op = op == ReduceOp::kAverage ? ReduceOp::kSum : op;
    n.post.divisor = op == ReduceOp::kAverage ? job_->size() : 1;
    auto* bytes = static_cast<std::byte*>(data);
    const size_t length = count * dtype_bytes(dtype);
    if (HVD_LIKELY(!job_->segment().contains(data, 1))) {
      return length <= small_limit_ ? small(n, bytes, count, length) : large(n, bytes, count);
    }
    return shared(n, bytes, count);
  }

  Result<void*> alloc(size_t bytes) override {
    HVD_TRY_ASSIGN(std::byte* const data, job_->arena().alloc(bytes));
    return static_cast<void*>(data);
  }

  Status barrier() override {
    std::byte nothing{};
    return small(Numeric{DType::kUint8, DType::kUint8, ReduceOp::kSum, {}, {}}, &nothing, 0, 0);
  }

  double probe_round_trip_ns() override {
    constexpr int kRounds = 300;
    double best = 1e9;
    if (!barrier().is_ok()) return 0;
    for (int repeat = 0; repeat < 3 && rank() < 2 && size() >= 2; ++repeat) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < kRounds; ++i) bounce();
      const std::chrono::duration<double, std::nano> span =
          std::chrono::steady_clock::now() - begin;
      best = std::min(best, span.count() / kRounds);
    }
    if (!barrier().is_ok()) return 0;
    return rank() < 2 && size() >= 2 ? best : 0;
  }

 private:
  int rank() const { return job_->rank(); }
  int size() const { return job_->size(); }
  std::byte* region() const { return job_->base() + job_->channel_pool_offset(); }
  static std::vector<int> identity(int size) {
    std::vector<int> members(static_cast<size_t>(size));
    std::iota(members.begin(), members.end(), 0);
    return members;
  }
  // Two lines per rank for messages, used in turn, and one for the probe.
  Line& line(uint32_t number, int member) const {
    return lines_[(number & 1) * static_cast<uint32_t>(size()) + static_cast<uint32_t>(member)];
  }

  // Rank 0 writes, rank 1 answers.
  void bounce() {
    Line* probe = lines_ + 2 * size();
    ++probes_;
    if (rank() == 0) probe[0].number.store(probes_, std::memory_order_release);
    for (int polls = 0; probe[1 - rank()].number.load(std::memory_order_acquire) != probes_;
         ++polls) {
      cpu_pause();
      if (polls > 100000) sched_yield();
    }
    if (rank() == 1) probe[1].number.store(probes_, std::memory_order_release);
  }

  template <typename Ready>
  Status wait(const Ready& ready) {
    for (int polls = 0; polls < spins_; ++polls) {
      if (ready()) return Status::ok();
      cpu_pause();
    }
    const Deadline deadline = Deadline::after(std::chrono::seconds(60));
    while (!ready()) {
      sched_yield();
      if (deadline.passed())
        return Status(StatusCode::kTimedOut, concat("rank ", rank(), " waited 60 s for its peers"));
    }
    return Status::ok();
  }

  // Everybody writes, everybody reads and reduces.
  Status small(const Numeric& n, std::byte* data, size_t count, size_t length) {
    const uint32_t number = ++number_;
    Line& mine = line(number, rank());
    size_t offset = 0;
    if (length == sizeof(uint32_t)) {
      std::memcpy(mine.payload, data, sizeof(uint32_t));  // the compiler makes one store of it
    } else if (length <= kInlinePayload) {
      std::memcpy(mine.payload, data, length);
    } else {
      offset = take_eager(length);
      kernels().copy_to_shared(eager_ + static_cast<size_t>(rank()) * kEagerStride + offset, data,
                               length);
    }
    mine.number.store(number, std::memory_order_release);
    const std::byte* slots[shm::kMaxRanksPerHost];
    for (int r = 0; r < size(); ++r) {
      Line& theirs = line(number, r);
      slots[r] = length <= kInlinePayload ? theirs.payload
                                          : eager_ + static_cast<size_t>(r) * kEagerStride + offset;
      const auto ready = [&] {
        return shm::reached(theirs.number.load(std::memory_order_acquire), number);
      };
      if (r != rank() && !ready()) HVD_TRY(wait(ready));
    }
    if (count == 0) return Status::ok();
    slots[rank()] = data;
    void* output = data;
    kernels_.reduce({n.dtype, n.op, count, reinterpret_cast<const void* const*>(slots),
                     static_cast<unsigned>(size()), &output, 1, n.post});
    return Status::ok();
  }

  // The same on all ranks: nobody is more than one message ahead, so what lies four messages back
  // is free.
  size_t take_eager(size_t length) {
    const size_t need = align_up(length, kLineSpacing);
    // Small messages stay within a small part, in cache.
    const size_t end = std::max<size_t>(64 << 10, 4 * need);
    if (position_ + need > end) position_ = 0;
    const size_t at = position_;
    position_ += need;
    return at;
  }

  Status large(const Numeric& n, std::byte* data, size_t count) {
    work_.reset(WorkKind::kReduce);
    Run& run = work_.next_run();
    run.numeric = n;
    run.add(data, data, count);
    return execute();
  }

  Status shared(const Numeric& n, std::byte* data, size_t count) {
    const uint64_t offset = job_->arena().offset_of(data);
    const uint32_t number = ++number_;
    Line& mine = line(number, rank());
    std::memcpy(mine.payload, &offset, sizeof offset);
    mine.number.store(number, std::memory_order_release);
    work_.reset(WorkKind::kReduceShared);
    Run& run = work_.next_run();
    run.numeric = n;
    run.add(data, data, count);
    for (int r = 0; r < size(); ++r) {
      Line& theirs = line(number, r);
      const auto ready = [&] {
        return shm::reached(theirs.number.load(std::memory_order_acquire), number);
      };
      if (!ready()) HVD_TRY(wait(ready));
      uint64_t at = 0;
      std::memcpy(&at, theirs.payload, sizeof at);
      std::byte* address = job_->arena_address(r, at, count * dtype_bytes(n.dtype));
      if (address == nullptr)
        return corrupted(concat("rank ", r, " names a buffer outside its memory"));
      work_.shared.push_back(address);
    }
    return execute();
  }

  Status execute() {
    alone_with_the_engine();
    executor_.add(work_, backend_);
    Progress progress = Progress::kBlocked;
    const auto advance = [&] {
      alone_with_the_engine();
      return (progress = executor_.advance(done_)) != Progress::kBlocked;
    };
    do {
      HVD_TRY(wait(advance));
    } while (progress != Progress::kDone);
    done_.clear();
    return work_.status;
  }

  std::unique_ptr<shm::Job> job_;
  const std::vector<int> members_;
  Line* const lines_;
  std::byte* const eager_;
  Link link_;
  SharedMemoryBackend backend_;
  Executor executor_;
  Work work_;
  std::vector<Work*> done_;
  const Kernels& kernels_ = kernels();
  const size_t small_limit_;
  const int spins_;
  uint32_t number_ = 0;
  uint32_t probes_ = 0;
  size_t position_ = 0;
};

}  // namespace

Result<std::unique_ptr<BareGroup>> BareGroup::join(const Options& options) {
  shm::JobOptions job_options;
  job_options.rank = options.rank;
  job_options.size = options.size;
  job_options.job_id = options.job_id + ".bare";
  job_options.arena_bytes = uint64_t{4} << 30;
  HVD_TRY_ASSIGN(std::unique_ptr<shm::Job> job, shm::Job::meet(job_options));
  return std::unique_ptr<BareGroup>(std::make_unique<SharedMemoryGroup>(std::move(job)));
}

}  // namespace hvd::collective::shared_memory
