// How an engine is tuned: rank 0 proposes, channels switch (channel_tuning.cc), and the engine
// takes what is not a channel's. With the autotuner rank 0 measures as well.
#include "base/log.h"
#include "base/text.h"
#include "engine/engine.h"

namespace hvd::engine {

using tune::Knob;

tune::Defaults Engine::own_tuning() const {
  tune::Defaults own;
  own.ranks = topology_.size;
  own.hosts = mirror_ == nullptr ? 1 : static_cast<int>(hosts_.ranks_of.size());
  own.has_one_rank_per_host = own.hosts > 1 && own.hosts == own.ranks;
  own.small_bytes = global_->default_small_limit();
  own.spin_count = own_spin_count_;
  own.yield_count = own_yield_count_;
  own.spin_is_fixed = settings_.spin_count >= 0;
  own.yield_is_fixed = settings_.yield_count >= 0;
  own.progress_is_fixed = settings_.progress != ProgressPolicy::kAuto;
  return own;
}

// At the beginning of the global set, before any thread is started.
Status Engine::start_tuning() {
  if (topology_.rank != 0) return Status::ok();
  HVD_TRY_ASSIGN(const tune::Tuning start, read_profile(settings_));
  global_->propose(start);
  if (!settings_.autotune) return Status::ok();
  TunerOptions options = tuner_options(settings_);
  const tune::Defaults own = own_tuning();
  options.axes = tune::axes_for(own);
  options.start = start;
  options.context.is_hierarchical = own.hosts > 1 && !own.has_one_rank_per_host;
  options.origin = {own.ranks, own.hosts};
  if (options.axes.empty()) {
    HVD_LOG(kInfo, "autotune: one rank has nothing to tune");
    return Status::ok();
  }
  HVD_TRY_ASSIGN(tuner_, Tuner::open(std::move(options)));
  return Status::ok();
}

void Engine::propose_tuning(const tune::Tuning& tuning) {
  if (topology_.rank == 0) global_->propose(tuning);
}

void Engine::set_waiting(int spin_count, int yield_count) {
  constexpr int kMostQuickPolls = 48;
  quick_polls_.store(std::min(spin_count, kMostQuickPolls), std::memory_order_relaxed);
  spin_count_.store(spin_count, std::memory_order_relaxed);
  yield_count_.store(yield_count, std::memory_order_relaxed);
}

// The global set leads: what holds there is proposed to the other sets by their first members.
void Engine::tuned(Channel& channel, const tune::Tuning& tuning) {
  if (channel.id() != 0) return;
  // What the user has set stays.
  const bool spin_is_fixed = settings_.spin_count >= 0, yield_is_fixed = settings_.yield_count >= 0;
  const int64_t spins = tuning.value_or(Knob::kSpinCount, own_spin_count_);
  const int64_t yields = tuning.value_or(Knob::kYieldCount, own_yield_count_);
  set_waiting(spin_is_fixed ? own_spin_count_ : static_cast<int>(spins),
              yield_is_fixed ? own_yield_count_ : static_cast<int>(yields));
  for (Channel* other : registry_.open_channels()) {
    if (other != &channel) other->propose(tuning);
  }
  if (trace::Timeline* trace = timeline_.load(std::memory_order_acquire))
    trace->mark(concat("TUNING ", to_text(tuning)));
  HVD_LOG(kDebug, "tuning: ", to_text(tuning));
  if (tuner_ != nullptr) tuner_->switched(tuning, std::chrono::steady_clock::now());
}

void Engine::note_reduction(const Operation& op) {
  if (op.kind != wire::Kind::kAllreduce || op.channel != global_ || !op.status.is_ok() ||
      op.slot == nullptr)
    return;
  const auto next = tuner_->reduced(op.slot->key, op.bytes, std::chrono::steady_clock::now());
  if (next) global_->propose(*next);
}

}  // namespace hvd::engine
