// Adasum of large tensors: every rank copies its vector into shared scratch; then each rank does
// all levels for its own slice of all vectors, and only the partial dot products are exchanged,
// once per level. Partial sums are added in rank order, so all ranks use the same weights.
#include <cstring>
#include <vector>

#include "base/text.h"
#include "collective/adasum.h"
#include "collective/shared_memory/tasks.h"

namespace hvd::collective::shared_memory {
namespace {

constexpr uint64_t kNoScratch = ~uint64_t{0};

class AdasumTask final : public Task {
 public:
  AdasumTask(Link& link, Work& work)
      : link_(link),
        work_(work),
        levels_(adasum_levels(link.size())),
        vectors_(static_cast<size_t>(link.size())) {}

  ~AdasumTask() override { release_scratch(); }

  Progress advance() HVD_REQUIRES(engine_role) override {
    for (;;) {
      switch (stage_) {
        case Stage::kLoad:
          if (run_ == work_.run_count) return Progress::kDone;
          if (piece_ == run().pieces.size()) {
            ++run_;
            piece_ = 0;
            continue;
          }
          if (piece().count == 0) {
            ++piece_;
            continue;
          }
          if (!link_.all_results(link_.step)) return Progress::kBlocked;
          load();
          next(Stage::kMap);
          break;
        case Stage::kMap:
          if (!link_.all_ready(link_.step)) return Progress::kBlocked;
          level_ = 0;
          if (map_vectors()) {
            write_dots();
            next(Stage::kLevel);
          } else {
            next(Stage::kRelease);
          }
          break;
        case Stage::kLevel:
          if (!link_.all_ready(link_.step)) return Progress::kBlocked;
          if (level_ < levels_.size()) {
            combine_level();
            if (++level_ < levels_.size()) write_dots();
            next(level_ < levels_.size() ? Stage::kLevel : Stage::kStore);
          } else {
            next(Stage::kStore);
          }
          break;
        case Stage::kStore:
          if (!link_.all_ready(link_.step)) return Progress::kBlocked;
          adasum_store(run().numeric, piece().out, vectors_[0], piece().count);
          next(Stage::kRelease);
          break;
        case Stage::kRelease:
          // Peers may still read my scratch until they are here too.
          if (!link_.all_ready(link_.step)) return Progress::kBlocked;
          link_.post_result(link_.step);
          release_scratch();
          ++piece_;
          stage_ = Stage::kLoad;
          break;
      }
    }
  }

 private:
  enum class Stage { kLoad, kMap, kLevel, kStore, kRelease };

  const Run& run() const { return work_.runs[run_]; }
  const Piece& piece() const { return run().pieces[piece_]; }
  DType work_dtype() const { return adasum_work_dtype(run().numeric.dtype); }
  size_t element_bytes() const { return dtype_bytes(work_dtype()); }
  uint64_t slice(int member) const {
    return share_begin(piece().count, element_bytes(), link_.size(), member);
  }

  // One more step is done here; the next stage waits until all have done it.
  void next(Stage stage) HVD_REQUIRES(engine_role) {
    ++link_.step;
    link_.post_ready(link_.step);
    stage_ = stage;
  }

  void load() {
    uint64_t offset = kNoScratch;
    if (auto scratch = link_.job().arena().alloc(piece().count * element_bytes())) {
      scratch_ = *scratch;
      adasum_load(run().numeric, scratch_, piece().in, piece().count);
      offset = link_.job().arena().offset_of(scratch_);
    } else {
      work_.status = scratch.status();
    }
    std::memcpy(link_.staging(link_.me()), &offset, sizeof offset);
  }

  // False: some rank found no memory. All see the same offsets, so all give up together.
  bool map_vectors() {
    for (int r = 0; r < link_.size(); ++r) {
      uint64_t offset = kNoScratch;
      std::memcpy(&offset, link_.staging(r), sizeof offset);
      std::byte* vector = offset == kNoScratch
                              ? nullptr
                              : link_.job().arena_address(link_.local_rank(r), offset,
                                                          piece().count * element_bytes());
      if (vector == nullptr) {
        if (work_.status.is_ok()) {
          work_.status = Status(StatusCode::kOutOfMemory,
                                concat("Adasum: member ", r, " has no shared memory for ",
                                       piece().count, " elements"));
        }
        return false;
      }
      vectors_[static_cast<size_t>(r)] = vector;
    }
    return true;
  }

  // Where a rank writes its partial dot products of a level; two places, used in turn.
  double* dots_of(int member, size_t level) const {
    return reinterpret_cast<double*>(link_.staging(member) + kCacheLine +
                                     (level % 2) * (kStagingBytes / 4));
  }

  void write_dots() {
    if (levels_.empty()) return;
    const uint64_t low = slice(link_.me()) * element_bytes();
    const uint64_t count = slice(link_.me() + 1) - slice(link_.me());
    double* out = dots_of(link_.me(), level_);
    for (const auto& [left, right] : levels_[level_]) {
      kernels().dots(work_dtype(), vectors_[static_cast<size_t>(left)] + low,
                     vectors_[static_cast<size_t>(right)] + low, count, out);
      out += 3;
    }
  }

  void combine_level() {
    const uint64_t low = slice(link_.me()) * element_bytes();
    const uint64_t count = slice(link_.me() + 1) - slice(link_.me());
    for (size_t pair = 0; pair < levels_[level_].size(); ++pair) {
      double dots[3] = {0, 0, 0};
      for (int r = 0; r < link_.size(); ++r) {
        const double* part = dots_of(r, level_) + 3 * pair;
        for (int i = 0; i < 3; ++i) dots[i] += part[i];
      }
      const AdasumWeights weights = adasum_weights(dots);
      const auto [left, right] = levels_[level_][pair];
      kernels().combine(work_dtype(), vectors_[static_cast<size_t>(left)] + low,
                        vectors_[static_cast<size_t>(right)] + low, count, weights.left,
                        weights.right);
    }
  }

  void release_scratch() {
    if (scratch_ == nullptr) return;
    (void)link_.job().arena().free(scratch_).is_ok();
    scratch_ = nullptr;
  }

  Link& link_;
  Work& work_;
  const std::vector<AdasumLevel> levels_;
  std::vector<std::byte*> vectors_;
  Stage stage_ = Stage::kLoad;
  size_t run_ = 0, piece_ = 0, level_ = 0;
  std::byte* scratch_ = nullptr;
};

}  // namespace

std::unique_ptr<Task> make_adasum(Link& link, Work& work) {
  return std::make_unique<AdasumTask>(link, work);
}

}  // namespace hvd::collective::shared_memory
