// tuning.h - how an engine is tuned: rank 0 proposes, channels switch (channel_tuning.cc), and the
// engine takes what is not a channel's. With the autotuner rank 0 measures as well.
#pragma once

#include <memory>

#include "base/cpu.h"
#include "base/engine_role.h"
#include "base/status.h"
#include "engine/drive/timelines.h"
#include "engine/drive/tuner.h"
#include "engine/drive/waiting_policy.h"
#include "engine/operation/operation.h"
#include "engine/sets/process_sets.h"
#include "engine/sets/surroundings.h"

namespace hvd::engine {

class EngineTuning {
 public:
  EngineTuning(const Surroundings& surroundings, ProcessSets& sets, const Timelines& timelines)
      : surroundings_(surroundings), sets_(sets), timelines_(timelines), waiting_(surroundings) {}

  // When the global set is open, before any thread is started.
  Status start();
  const WaitingPolicy& waiting() const { return waiting_; }

  // Rank 0 proposes; other ranks: nothing. Any thread; never blocks.
  void propose(const tune::Tuning& tuning);
  // The channel switches with its next operation.
  void switched(Channel& channel, const tune::Tuning& tuning) HVD_REQUIRES(engine_role);
  void note_completed(const Operation& op) HVD_REQUIRES(engine_role) {
    if (HVD_UNLIKELY(tuner_ != nullptr)) note_reduction(op);
  }
  // The job ends: what the search has found by now is the profile.
  void end_early() HVD_REQUIRES(engine_role) {
    if (tuner_ != nullptr) tuner_->end_early();
  }
  // Writes files. One thread at a time; may block as the file system does.
  void flush() {
    if (tuner_ != nullptr) tuner_->flush();
  }

 private:
  tune::Defaults own_tuning() const;
  void note_reduction(const Operation& op) HVD_REQUIRES(engine_role);

  const Surroundings& surroundings_;
  ProcessSets& sets_;
  const Timelines& timelines_;
  WaitingPolicy waiting_;
  std::unique_ptr<Tuner> tuner_;  // rank 0 of a job that is tuned; set before threads start
};

}  // namespace hvd::engine
