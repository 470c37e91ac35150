// encoder.h - events to the JSON records of the trace. No I/O; one thread.
// A *level* is a begin record whose end record is still to come. Levels nest per tensor and stay
// balanced whatever comes in: events without their begin are ignored, and a new begin closes what
// is left open. The room for the end records of all open levels is kept free, so the size bound
// never unbalances.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/event.h"

namespace hvd::trace {

class Encoder {
 public:
  explicit Encoder(uint64_t max_bytes) : max_bytes_(max_bytes) {}

  // Each appends whole records, separated by commas, to `out`.
  void header(uint64_t start_since_epoch_micros, std::string& out);
  void add(const Event& event, std::string& out);
  // Closes all levels; if events were dropped here or before they came here, a last record says how
  // many.
  void finish(uint64_t micros, uint64_t dropped_before, std::string& out);

 private:
  enum class Phase : uint8_t { kNone, kNegotiating, kRunning };
  struct Tensor {
    uint32_t pid = 0;
    Phase phase = Phase::kNone;
    uint32_t levels = 0;          // written begins without end
    uint32_t skipped_levels = 0;  // activities inside them that did not fit
    uint64_t begun = 0;           // when the first level began
  };
  struct NameHash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };

  Tensor* find(std::string_view name);
  void begin(const Event& event, Phase phase, std::string_view prefix, std::string& out);
  void begin_activity(const Event& event, Tensor& tensor, std::string& out);
  void end_activity(const Event& event, Tensor& tensor, std::string& out);
  void end_level(uint64_t micros, Tensor& tensor, std::string& out);
  void end_all(uint64_t micros, Tensor& tensor, std::string& out);
  void end_operation(const Event& event, Tensor& tensor, std::string& out);
  bool fits(std::string_view record, uint64_t new_levels);
  bool append_if_it_fits(std::string_view record, uint64_t new_levels, std::string& out);
  void append(std::string_view record, std::string& out);

  const uint64_t max_bytes_;
  uint64_t bytes_ = 4;  // of the file: "[\n" before the records, "\n]" behind them
  uint64_t open_levels_ = 0;
  uint64_t dropped_ = 0;
  bool first_ = true;
  bool full_ = false;            // stays: a trace that resumes would have a hole nobody sees
  std::vector<Tensor> tensors_;  // by pid - 1
  std::unordered_map<std::string, uint32_t, NameHash, std::equal_to<>> index_of_;
};

}  // namespace hvd::trace
