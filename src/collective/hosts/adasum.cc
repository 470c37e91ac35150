// Adasum over hosts: every member gets one slice of all vectors (an alltoall), does all levels for
// its slice, and sends the result to all (an allgather). Of the levels only partial dot products
// travel; they are added in member order, slice by slice like everywhere, so all members use the
// same weights. A member needs memory for one more vector, whatever the number of members.
#include <cstring>
#include <new>
#include <vector>

#include "base/text.h"
#include "collective/adasum.h"
#include "collective/hosts/tasks.h"
#include "collective/shares.h"

namespace hvd::collective::hosts {
namespace {

class AdasumTask final : public Task {
 public:
  AdasumTask(shared_memory::Link& local, HostLink& hosts, Work& work)
      : local_(local), hosts_(hosts), work_(work), levels_(adasum_levels(size())) {}

  Progress advance() HVD_REQUIRES(engine_role) override {
    if (inner_ != nullptr) {
      const Progress progress = inner_->advance();
      if (progress != Progress::kDone) return progress;
      inner_.reset();
    }
    switch (stage_) {
      case Stage::kNext:
        if (!find_piece()) return Progress::kDone;
        spread_slices();
        stage_ = Stage::kLoad;
        break;
      case Stage::kLoad:
        load();
        level_ = 0;
        stage_ = Stage::kDots;
        break;
      case Stage::kDots:
        if (level_ == levels_.size()) {
          collect_results();
          stage_ = Stage::kStore;
        } else {
          exchange_dots();
          stage_ = Stage::kCombine;
        }
        break;
      case Stage::kCombine:
        combine_level();
        ++level_;
        stage_ = Stage::kDots;
        break;
      case Stage::kStore:
        ++piece_;
        stage_ = Stage::kNext;
        break;
    }
    return Progress::kAdvanced;
  }

 private:
  enum class Stage { kNext, kLoad, kDots, kCombine, kStore };

  int size() const { return hosts_.layout().size(); }
  const Run& run() const { return work_.runs[run_]; }
  const Piece& piece() const { return run().pieces[piece_]; }
  DType work_dtype() const { return adasum_work_dtype(run().numeric.dtype); }
  size_t work_bytes() const { return dtype_bytes(work_dtype()); }
  uint64_t slice(int member) const {
    return share_begin(piece().count, work_bytes(), size(), member);
  }
  uint64_t slice_count(int member) const { return slice(member + 1) - slice(member); }
  uint64_t my_count() const { return slice_count(hosts_.me()); }

  bool find_piece() {
    for (; run_ < work_.run_count; ++run_, piece_ = 0) {
      for (; piece_ < run().pieces.size(); ++piece_) {
        if (piece().count > 0) return true;
      }
    }
    return false;
  }

  void begin_exchange(Exchange exchange) {
    inner_work_.reset(WorkKind::kExchange);
    inner_work_.exchanges.push_back(std::move(exchange));
    inner_ = make_exchange(local_, hosts_, inner_work_);
  }

  // Slice m of my vector goes to member m, in the tensor's own dtype.
  void spread_slices() {
    const size_t bytes = run().numeric.element_bytes();
    Exchange x;
    if (piece().in == nullptr) zeros_.assign(slice_count(0) * bytes, std::byte{0});
    x.in = piece().in == nullptr ? zeros_.data() : piece().in;
    received_.resize(static_cast<size_t>(size()) * my_count() * bytes);
    x.out = received_.data();
    for (int m = 0; m < size(); ++m) {
      x.send_offset.push_back(piece().in == nullptr ? 0 : slice(m) * bytes);
      x.send_bytes.push_back(slice_count(m) * bytes);
      x.receive_offset.push_back(static_cast<uint64_t>(m) * my_count() * bytes);
      x.receive_bytes.push_back(my_count() * bytes);
    }
    x.largest_block_bytes = slice_count(0) * bytes;
    begin_exchange(std::move(x));
  }

  std::byte* vector_of(int member) {
    return vectors_.data() + static_cast<uint64_t>(member) * my_count() * work_bytes();
  }

  void load() {
    const size_t bytes = run().numeric.element_bytes();
    vectors_.resize(static_cast<size_t>(size()) * my_count() * work_bytes());
    for (int m = 0; m < size() && my_count() > 0; ++m) {
      adasum_load(run().numeric, vector_of(m),
                  received_.data() + static_cast<uint64_t>(m) * my_count() * bytes, my_count());
    }
  }

  void exchange_dots() {
    const size_t pairs = levels_[level_].size();
    my_dots_.assign(3 * pairs, 0.0);
    all_dots_.resize(3 * pairs * static_cast<size_t>(size()));
    for (size_t pair = 0; pair < pairs; ++pair) {
      const auto [left, right] = levels_[level_][pair];
      kernels().dots(work_dtype(), vector_of(left), vector_of(right), my_count(),
                     my_dots_.data() + 3 * pair);
    }
    Exchange x;
    x.same_block_for_all = true;
    x.in = reinterpret_cast<const std::byte*>(my_dots_.data());
    x.out = reinterpret_cast<std::byte*>(all_dots_.data());
    x.send_offset = {0};
    x.send_bytes = {3 * pairs * sizeof(double)};
    for (int m = 0; m < size(); ++m) {
      x.receive_offset.push_back(static_cast<uint64_t>(m) * x.send_bytes[0]);
      x.receive_bytes.push_back(x.send_bytes[0]);
    }
    x.largest_block_bytes = x.send_bytes[0];
    begin_exchange(std::move(x));
  }

  void combine_level() {
    const size_t pairs = levels_[level_].size();
    for (size_t pair = 0; pair < pairs; ++pair) {
      double dots[3] = {0, 0, 0};
      for (size_t m = 0; m < static_cast<size_t>(size()); ++m) {
        for (size_t i = 0; i < 3; ++i) dots[i] += all_dots_[3 * (m * pairs + pair) + i];
      }
      const AdasumWeights weights = adasum_weights(dots);
      const auto [left, right] = levels_[level_][pair];
      kernels().combine(work_dtype(), vector_of(left), vector_of(right), my_count(), weights.left,
                        weights.right);
    }
  }

  // Results travel in the tensor's dtype, ready for the output.
  void collect_results() {
    const size_t bytes = run().numeric.element_bytes();
    if (my_count() > 0) adasum_store(run().numeric, received_.data(), vector_of(0), my_count());
    Exchange x;
    x.same_block_for_all = true;
    x.in = received_.data();
    x.out = piece().out;
    x.send_offset = {0};
    x.send_bytes = {my_count() * bytes};
    for (int m = 0; m < size(); ++m) {
      x.receive_offset.push_back(slice(m) * bytes);
      x.receive_bytes.push_back(slice_count(m) * bytes);
    }
    x.largest_block_bytes = slice_count(0) * bytes;
    begin_exchange(std::move(x));
  }

  shared_memory::Link& local_;
  HostLink& hosts_;
  Work& work_;
  const std::vector<AdasumLevel> levels_;
  Stage stage_ = Stage::kNext;
  size_t run_ = 0, piece_ = 0, level_ = 0;
  Work inner_work_;
  std::unique_ptr<Task> inner_;
  std::vector<std::byte> zeros_, received_, vectors_;
  std::vector<double> my_dots_, all_dots_;
};

}  // namespace

std::unique_ptr<Task> make_adasum(shared_memory::Link& local, HostLink& hosts, Work& work) {
  return std::make_unique<AdasumTask>(local, hosts, work);
}

}  // namespace hvd::collective::hosts
