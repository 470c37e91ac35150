#include "engine/drive/tuning.h"

#include "base/log.h"
#include "base/text.h"

namespace hvd::engine {

tune::Defaults EngineTuning::own_tuning() const {
  tune::Defaults own;
  own.ranks = surroundings_.topology.size;
  own.hosts =
      surroundings_.spans_hosts() ? static_cast<int>(surroundings_.hosts.ranks_of.size()) : 1;
  own.has_one_rank_per_host = own.hosts > 1 && own.hosts == own.ranks;
  own.small_bytes = sets_.global().default_small_limit();
  waiting_.describe(own);
  own.progress_is_fixed = surroundings_.settings.progress != ProgressPolicy::kAuto;
  return own;
}

Status EngineTuning::start() {
  if (surroundings_.rank() != 0) return Status::ok();
  const Settings& settings = surroundings_.settings;
  HVD_TRY_ASSIGN(const tune::Tuning start, read_profile(settings, surroundings_.epoch));
  sets_.global().propose(start);
  if (!settings.autotune) return Status::ok();
  TunerOptions options = tuner_options(settings);
  const tune::Defaults own = own_tuning();
  options.axes = tune::axes_for(own);
  options.start = start;
  options.continues_log = surroundings_.epoch > 1;
  options.context.is_hierarchical = own.hosts > 1 && !own.has_one_rank_per_host;
  options.origin = {own.ranks, own.hosts};
  if (options.axes.empty()) {
    HVD_LOG(kInfo, "autotune: one rank has nothing to tune");
    return Status::ok();
  }
  HVD_TRY_ASSIGN(tuner_, Tuner::open(std::move(options)));
  return Status::ok();
}

void EngineTuning::propose(const tune::Tuning& tuning) {
  if (surroundings_.rank() == 0) sets_.global().propose(tuning);
}

// The global set leads: what holds there is proposed to the other sets by their first members.
void EngineTuning::switched(Channel& channel, const tune::Tuning& tuning) {
  if (channel.id() != 0) return;
  waiting_.tuned(tuning);
  for (Channel* other : sets_.open_channels()) {
    if (other != &channel) other->propose(tuning);
  }
  if (trace::Timeline* trace = timelines_.current().load(std::memory_order_acquire))
    trace->mark(concat("TUNING ", to_text(tuning)));
  HVD_LOG(kDebug, "tuning: ", to_text(tuning));
  if (tuner_ != nullptr) tuner_->switched(tuning, std::chrono::steady_clock::now());
}

void EngineTuning::note_reduction(const Operation& op) {
  if (op.kind != wire::Kind::kAllreduce || op.channel != &sets_.global() || !op.status.is_ok() ||
      op.slot == nullptr)
    return;
  const auto next = tuner_->reduced(op.slot->key, op.bytes, std::chrono::steady_clock::now());
  if (next) sets_.global().propose(*next);
}

}  // namespace hvd::engine
