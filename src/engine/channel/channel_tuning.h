// channel_tuning.h - how a channel is tuned: member 0 writes a tuning into its records, and every
// member switches when it runs the first operation whose record of member 0 has another one. What
// is in flight keeps what it began with: works carry how they are cut (Work::cut), and records say
// themselves whether they hold a payload, so an operation whose records were written under two
// limits is run as all can see alike.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/engine_role.h"
#include "base/explore.h"
#include "collective/work.h"
#include "control/board.h"
#include "engine/operation/submission.h"
#include "tune/tuning.h"

namespace hvd::engine {

class ChannelTuning {
 public:
  explicit ChannelTuning(uint32_t small_limit)
      : default_small_limit_(small_limit), small_limit_(small_limit) {}

  // What records of this rank say from now on. Any thread.
  void propose(const tune::Tuning& tuning) {
    proposal_.store(tune::encode(tuning) << control::kTuningShift, std::memory_order_relaxed);
  }
  uint32_t proposal() const { return proposal_.load(std::memory_order_relaxed); }

  // In effect: changed with the role and the submit lock, read with one of them.
  const tune::Tuning& now() const { return now_; }
  uint32_t small_limit() const { return small_limit_; }
  uint32_t default_small_limit() const { return default_small_limit_; }
  bool says(uint32_t flags) const { return (flags & control::kTuningMask) == bits_; }
  void switch_to(const tune::Tuning& tuning, uint32_t bits) HVD_REQUIRES(engine_role, submit_side);

  static collective::Cut cut_of(const tune::Tuning& tuning);
  // Who advances a submission is this rank's own affair: others never see it.
  ProgressPolicy progress_of(const Submission& submission) const;

 private:
  friend struct explore::Probe;
  const uint32_t default_small_limit_;  // payloads that are deposited; untuned
  uint32_t small_limit_;
  tune::Tuning now_;
  uint32_t bits_ = 0;                  // the same, as in a record
  std::atomic<uint32_t> proposal_{0};  // as in a record; says nothing about other memory
};

}  // namespace hvd::engine
