// How a channel is tuned: member 0 writes a tuning into its records, and every member switches when
// it runs the first operation whose record of member 0 has another one. What is in flight keeps
// what it began with: works carry how they are cut (Work::cut), and records say themselves whether
// they hold a payload, so an operation whose records were written under two limits is run as all
// can see alike.
#include "base/explore.h"
#include "base/text.h"
#include "engine/channel/channel.h"

namespace hvd::engine {

using tune::Knob;

void Channel::propose(const tune::Tuning& tuning) {
  if (me() != 0) return;
  proposal_.store(tune::encode(tuning) << control::kTuningShift, std::memory_order_relaxed);
}

// False: no member can have written this.
bool Channel::switch_tuning(uint32_t bits) {
  const auto tuning = tune::decode(bits >> control::kTuningShift);
  if (!tuning) {
    fail(corrupted(concat("a record of rank ", rank_of(0), ": ", tuning.status().message())));
    return false;
  }
  {
    SubmitGuard guard(host_.submit_lock());
    tuning_ = *tuning;
    tuning_bits_ = bits;
    small_limit_ = static_cast<uint32_t>(tuning_.value_or(Knob::kSmallBytes, default_small_limit_));
  }
  host_.tuned(*this, tuning_);
  return true;
}

collective::Cut Channel::cut_of(const tune::Tuning& tuning) {
  // Explored programs are short: what they reduce has several chunks all the same.
  constexpr int64_t kShrink = kIsExplored ? 16 : 1;
  collective::Cut cut;
  cut.chunk_bytes = static_cast<uint32_t>(tuning.value_or(Knob::kChunkBytes, 0) / kShrink);
  cut.part_bytes = static_cast<uint32_t>(tuning.value_or(Knob::kPartBytes, 0) / kShrink);
  cut.one_shot_bytes = static_cast<uint32_t>(tuning.value_or(Knob::kOneShotBytes, 0) / kShrink);
  cut.pace = static_cast<collective::Cut::Pace>(tuning.level(Knob::kPace));
  cut.library_bytes = static_cast<uint64_t>(tuning.value_or(Knob::kLibraryBytes, 0));
  return cut;
}

// Who advances a submission is this rank's own affair: others never see it.
ProgressPolicy Channel::progress_of(const Submission& s) const {
  const auto tuned = static_cast<tune::Progress>(tuning_.level(Knob::kProgress));
  // Somebody must drive what has a callback: nobody may ever wait for it.
  if (HVD_LIKELY(tuned == tune::Progress::kAsSubmitted) || s.on_complete != nullptr ||
      s.kind != wire::Kind::kAllreduce || s.device >= 0)
    return s.progress;
  return tuned == tune::Progress::kWaiter ? ProgressPolicy::kWaiter : ProgressPolicy::kBackground;
}

}  // namespace hvd::engine
