#include "engine/drive/tuner.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/log.h"
#include "base/own_file.h"
#include "base/text.h"

namespace hvd::engine {
namespace {

// Shorter samples measure the clock and the scheduler.
constexpr Nanoseconds kShortestSample = std::chrono::milliseconds(20);

Status write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t done = ::write(descriptor, text.data(), text.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return Status(StatusCode::kUnknownError, std::strerror(errno));
    text.remove_prefix(static_cast<size_t>(done));
  }
  return Status::ok();
}

bool holds_anything(int descriptor) {
  struct stat info {};
  return descriptor >= 0 && ::fstat(descriptor, &info) == 0 && info.st_size > 0;
}

Status write_profile(const std::string& path, std::string_view text) {
  HVD_TRY_ASSIGN(const UniqueFd file, create_own_file(path, 0644));
  return write_all(file.get(), text);
}

}  // namespace

TunerOptions tuner_options(const Settings& settings) {
  TunerOptions options;
  options.search.warmup_samples = static_cast<int>(settings.autotune_warmup_samples);
  options.search.most_races = static_cast<int>(settings.autotune_max_samples);
  options.search.caution = settings.autotune_noise;
  options.steps_per_sample = std::max<int64_t>(1, settings.autotune_steps_per_sample);
  options.log_path = settings.autotune_log;
  options.profile_path = settings.autotune_profile;
  options.context.has_cache = settings.cache_capacity > 0;
  options.context.cycle_time_ms = settings.cycle_time_ms;
  options.context.fusion_threshold_mb =
      static_cast<double>(settings.fusion_threshold_bytes) / (1 << 20);
  return options;
}

Result<tune::Tuning> read_profile(const Settings& settings, uint64_t epoch) {
  const std::string& path = settings.autotune_profile;
  if (path.empty()) return tune::Tuning{};
  std::ifstream file(path);
  if (!file) {
    const int error = errno;
    const bool is_missing = access(path.c_str(), F_OK) != 0;
    if (is_missing && settings.autotune) return tune::Tuning{};
    if (is_missing && epoch > 1) {
      HVD_LOG(kWarning, "HOROVOD_AUTOTUNE_PROFILE: '", path, "' is not on the host of the new ",
              "rank 0: the tuning is automatic from here on");
      return tune::Tuning{};
    }
    return invalid_argument(
        concat("HOROVOD_AUTOTUNE_PROFILE: cannot read '", path, "': ", std::strerror(error)));
  }
  std::ostringstream text;
  text << file.rdbuf();
  auto tuning = tune::parse_profile(text.str());
  if (tuning) return tuning;
  return invalid_argument(
      concat("HOROVOD_AUTOTUNE_PROFILE: '", path, "': ", tuning.status().message()));
}

Result<std::unique_ptr<Tuner>> Tuner::open(TunerOptions options) {
  UniqueFd log;
  if (!options.log_path.empty()) {
    auto file = options.continues_log ? append_to_own_file(options.log_path, 0644)
                                      : create_own_file(options.log_path, 0644);
    if (!file) {
      return Status(file.status().code(), concat("HOROVOD_AUTOTUNE_LOG: cannot write '",
                                                 options.log_path, "': ", file.status().message()));
    }
    log = std::move(*file);
  }
  return std::unique_ptr<Tuner>(new Tuner(std::move(options), std::move(log)));
}

Tuner::Tuner(TunerOptions options, UniqueFd log)
    : options_(std::move(options)),
      search_(options_.axes, options_.start, options_.search),
      log_(std::move(log)) {
  if (!holds_anything(log_.get())) unwritten_rows_ = tune::log_header();
  waits_for_switch_ = search_.tuning() != in_effect_;
  if (search_.is_done()) report_end();
}

void Tuner::end_early() {
  if (search_.is_done()) return;
  if (!has_seen_any_) {
    HVD_LOG(kWarning,
            "autotune: nothing was tuned: the job ran no allreduce of the global process ",
            "set, by which tunings are compared");
    return;
  }
  if (search_.races() == 0) {
    HVD_LOG(kWarning, "autotune: nothing was tuned: the job ended before the first comparison did");
    return;
  }
  HVD_LOG(kWarning, "autotune: the job ended after ", search_.races(),
          " comparisons, before the search did; best so far: ", to_text(search_.best()));
  note_profile();
}

std::optional<tune::Tuning> Tuner::reduced(uint64_t key, uint64_t bytes, TimePoint now) {
  has_seen_any_ = true;
  if (waits_for_switch_ || search_.is_done()) return std::nullopt;
  if (!has_begun_) {
    begin_sample(now);
    return std::nullopt;
  }
  bytes_ += bytes;
  most_steps_ = std::max(most_steps_, ++steps_[key]);
  if (most_steps_ < options_.steps_per_sample || now - began_ < kShortestSample)
    return std::nullopt;
  return end_sample(now);
}

void Tuner::switched(const tune::Tuning& tuning, TimePoint now) {
  in_effect_ = tuning;
  if (!waits_for_switch_ || tuning != search_.tuning()) return;
  waits_for_switch_ = false;
  begin_sample(now);
}

void Tuner::begin_sample(TimePoint now) {
  has_begun_ = true;
  began_ = now;
  bytes_ = 0;
  most_steps_ = 0;
  steps_.clear();
}

std::optional<tune::Tuning> Tuner::end_sample(TimePoint now) {
  const double micros = std::chrono::duration<double, std::micro>(now - began_).count();
  const double score = static_cast<double>(bytes_) / micros;
  if (in_effect_ == search_.best()) best_score_ = score;
  {
    MutexLock lock(mutex_);
    unwritten_rows_ += tune::log_row(options_.context, in_effect_, score);
  }
  search_.report(score);
  if (search_.is_done()) report_end();
  begin_sample(now);
  if (search_.tuning() == in_effect_) return std::nullopt;
  waits_for_switch_ = true;
  return search_.tuning();
}

void Tuner::note_end_row() {
  if (best_score_ <= 0) return;  // not a sample was taken
  MutexLock lock(mutex_);
  unwritten_rows_ += tune::log_row(options_.context, search_.best(), best_score_);
}

void Tuner::report_end() {
  note_end_row();
  note_profile();
  const tune::Estimate& gain = search_.gain();
  if (search_.races() == 0) {
    HVD_LOG(kWarning, "autotune: done without a comparison: the tuning stays ",
            to_text(search_.best()));
    return;
  }
  if (gain.count == 0 || search_.fell_back()) {
    HVD_LOG(kWarning, "autotune: done after ", search_.races(),
            " comparisons: nothing is better than the automatic tuning, which is kept");
    return;
  }
  HVD_LOG(kWarning, "autotune: done after ", search_.races(),
          " comparisons: ", to_text(search_.best()), " is ", gain_text(gain));
}

void Tuner::note_profile() {
  if (options_.profile_path.empty()) return;
  const tune::Estimate gain = search_.fell_back() ? tune::Estimate{} : search_.gain();
  MutexLock lock(mutex_);
  unwritten_profile_ = tune::profile_text(search_.best(), options_.origin, gain);
}

void Tuner::flush() {
  std::string rows;
  std::optional<std::string> profile;
  {
    MutexLock lock(mutex_);
    rows.swap(unwritten_rows_);
    profile.swap(unwritten_profile_);
  }
  if (log_.get() >= 0) {
    if (const Status status = write_all(log_.get(), rows); !status.is_ok())
      HVD_LOG(kWarning, "autotune: cannot write '", options_.log_path, "': ", status.message());
  }
  if (!profile) return;
  if (const Status status = write_profile(options_.profile_path, *profile); !status.is_ok())
    HVD_LOG(kWarning, "autotune: cannot write '", options_.profile_path, "': ", status.message());
}

}  // namespace hvd::engine
