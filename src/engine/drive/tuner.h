// tuner.h - the autotuner of a job, on rank 0: measures how many bytes the allreduces of the global
// set move per microsecond, tells the search, and says which tuning comes next. A sample ends when
// some tensor was reduced so many times again, as in the original, and has taken long enough to be
// measured. Files are written by flush() alone.
//
// flush() is called from one thread at a time and may block as the file system does.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/clock.h"
#include "base/engine_role.h"
#include "base/fd.h"
#include "base/settings.h"
#include "base/thread_annotations.h"
#include "tune/records.h"
#include "tune/search.h"

namespace hvd::engine {

struct TunerOptions {
  std::vector<tune::Axis> axes;
  tune::Tuning start;
  tune::SearchOptions search;
  int64_t steps_per_sample = 10;
  std::string log_path;        // empty: none
  bool continues_log = false;  // behind the rows of an earlier world of the job
  std::string profile_path;    // empty: none
  tune::LogContext context;
  tune::Origin origin;
};

// Of the settings; everything else is the engine's.
TunerOptions tuner_options(const Settings& settings);
// What HOROVOD_AUTOTUNE_PROFILE holds; automatic if it is unset, or not there and to be written.
// A later world of a job goes on without it, with a warning: its rank 0 may be on another host.
Result<tune::Tuning> read_profile(const Settings& settings, uint64_t epoch);

class Tuner {
 public:
  static Result<std::unique_ptr<Tuner>> open(TunerOptions options);
  // An allreduce of the global set ended well. A tuning: it comes next; propose it.
  std::optional<tune::Tuning> reduced(uint64_t key, uint64_t bytes, TimePoint now)
      HVD_REQUIRES(engine_role);
  // All ranks have switched, or are about to at the same operation.
  void switched(const tune::Tuning& tuning, TimePoint now) HVD_REQUIRES(engine_role);
  // The job ends: what the search has found by now is the profile. A search that never came to a
  // comparison is told.
  void end_early() HVD_REQUIRES(engine_role);

  // Writes what has been noted since.
  void flush() HVD_EXCLUDES(mutex_);

 private:
  Tuner(TunerOptions options, UniqueFd log);
  void begin_sample(TimePoint now);
  std::optional<tune::Tuning> end_sample(TimePoint now);
  void report_end();
  void note_end_row();
  void note_profile();

  const TunerOptions options_;
  tune::Search search_;
  tune::Tuning in_effect_;
  double best_score_ = 0;  // of the last sample under the champion
  bool waits_for_switch_ = false;
  bool has_seen_any_ = false;  // allreduce of the global set
  bool has_begun_ = false;
  TimePoint began_{};
  uint64_t bytes_ = 0;
  int64_t most_steps_ = 0;
  std::unordered_map<uint64_t, int64_t> steps_;  // by tensor

  const UniqueFd log_;
  Mutex mutex_;
  std::string unwritten_rows_ HVD_GUARDED_BY(mutex_);
  std::optional<std::string> unwritten_profile_ HVD_GUARDED_BY(mutex_);
};

}  // namespace hvd::engine
