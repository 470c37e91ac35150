#include "launch/job/elastic_log.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/json_text.h"
#include "base/own_file.h"
#include "base/parse.h"
#include "base/text.h"
#include "launch/job/report.h"

namespace hvd::launch {
namespace {

constexpr size_t kShownResets = 10;

}  // namespace

Result<ElasticLog> ElasticLog::open(const std::string& path) {
  ElasticLog log;
  if (path.empty()) return log;
  Result<UniqueFd> file = create_own_file(path, 0644);
  if (!file) return blame(concat("--elastic-log: ", path), file.status());
  log.file_ = *std::move(file);
  return log;
}

void ElasticLog::write(const Entry& entry) const {
  if (!file_.valid() || entry.event.empty()) return;
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
  JsonObject object;
  object.add("time_ms", concat(milliseconds))
      .add("event", json_string(entry.event))
      .add("epoch", concat(entry.epoch));
  if (entry.worker >= 0) object.add("worker", concat(entry.worker));
  object.add("reason", json_string(entry.reason));
  const std::string line = object.text() + "\n";
  [[maybe_unused]] const ssize_t written = ::write(file_.get(), line.data(), line.size());
}

void ResetCosts::note_break(TimePoint now) {
  if (!broken_at_) broken_at_ = now;
}

void ResetCosts::note_failure(TimePoint now, int32_t worker, std::span<const int32_t> running) {
  if (std::find(running.begin(), running.end(), worker) != running.end()) note_break(now);
}

void ResetCosts::note_world(TimePoint now, uint64_t epoch, std::string reason) {
  if (epoch <= 1) return;
  const Nanoseconds cost = broken_at_ ? now - *broken_at_ : Nanoseconds(0);
  broken_at_.reset();
  total_ += cost;
  ++resets_;
  lines_.push_back(concat("after ", describe_span(cost), ": ", reason));
}

std::string ResetCosts::text() const {
  if (resets_ == 0) return {};
  std::string text = concat("horovodrun: ", resets_, resets_ == 1 ? " reset, " : " resets, ",
                            describe_span(total_), " between a break and the next epoch\n");
  const size_t skipped = lines_.size() > kShownResets ? lines_.size() - kShownResets : 0;
  if (skipped > 0) text += concat("    (the first ", skipped, " are left out)\n");
  for (size_t i = skipped; i < lines_.size(); ++i) text += concat("    ", lines_[i], "\n");
  return text;
}

}  // namespace hvd::launch
