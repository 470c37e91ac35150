#include "engine/channel/channel_tuning.h"

#include "base/cpu.h"

namespace hvd::engine {

using tune::Knob;

void ChannelTuning::switch_to(const tune::Tuning& tuning, uint32_t bits) {
  now_ = tuning;
  bits_ = bits;
  small_limit_ = static_cast<uint32_t>(now_.value_or(Knob::kSmallBytes, default_small_limit_));
}

collective::Cut ChannelTuning::cut_of(const tune::Tuning& tuning) {
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

ProgressPolicy ChannelTuning::progress_of(const Submission& s) const {
  const auto tuned = static_cast<tune::Progress>(now_.level(Knob::kProgress));
  // Somebody must drive what has a callback: nobody may ever wait for it.
  if (HVD_LIKELY(tuned == tune::Progress::kAsSubmitted) || s.on_complete != nullptr ||
      s.kind != wire::Kind::kAllreduce || s.device >= 0)
    return s.progress;
  return tuned == tune::Progress::kWaiter ? ProgressPolicy::kWaiter : ProgressPolicy::kBackground;
}

}  // namespace hvd::engine
