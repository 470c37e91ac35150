#include "trace/encoder.h"

#include <algorithm>

#include "base/json_text.h"
#include "base/text.h"

namespace hvd::trace {
namespace {

// Bounds on the longest end record and closing note, with a comma and a line break each.
constexpr uint64_t kEndBytes = 64;
constexpr uint64_t kNoteBytes = 128;

std::string quoted(std::string_view text) {
  std::string out;
  append_json_string(out, text, BadBytes::kReplace);
  return out;
}

// Two lines that give a process of the trace viewer its name and place.
std::string process_records(uint32_t pid, std::string_view args) {
  return concat(R"({"name":"process_name","ph":"M","pid":)", pid, R"(,"args":{)", args, "}},\n",
                R"({"name":"process_sort_index","ph":"M","pid":)", pid, R"(,"args":{"sort_index":)",
                pid, "}}");
}

std::string begin_record(std::string_view prefix, std::string_view name, uint64_t micros,
                         uint32_t pid) {
  std::string label(prefix);
  label += name;
  return concat(R"({"ph":"B","name":)", quoted(label), R"(,"ts":)", micros, R"(,"pid":)", pid, "}");
}

}  // namespace

void Encoder::header(uint64_t start_since_epoch_micros, std::string& out) {
  const std::string args =
      concat(R"("start_time_since_epoch_in_micros":)", start_since_epoch_micros);
  append(process_records(0, args), out);
}

void Encoder::add(const Event& event, std::string& out) {
  switch (event.kind) {
    case EventKind::kCycle:
      append_if_it_fits(
          concat(R"({"ph":"i","name":"CYCLE_START","ts":)", event.micros, R"(,"s":"g"})"), 0, out);
      return;
    case EventKind::kMark:
      append_if_it_fits(concat(R"({"ph":"i","name":)", quoted(event.word), R"(,"ts":)",
                               event.micros, R"(,"s":"g"})"),
                        0, out);
      return;
    case EventKind::kNegotiateStart:
      return begin(event, Phase::kNegotiating, "NEGOTIATE_", out);
    case EventKind::kStart:
      return begin(event, Phase::kRunning, "", out);
    default:
      break;
  }
  Tensor* tensor = find(event.tensor);
  if (tensor == nullptr || tensor->phase == Phase::kNone) {
    dropped_ += full_ ? 1 : 0;  // before that: its begin was before the trace started
    return;
  }
  const bool running = tensor->phase == Phase::kRunning;
  if (event.kind == EventKind::kEnd) return end_operation(event, *tensor, out);
  if (event.kind == EventKind::kActivityStart && running)
    return begin_activity(event, *tensor, out);
  if (event.kind == EventKind::kActivityEnd && running) return end_activity(event, *tensor, out);
  if (event.kind == EventKind::kNegotiateEnd && !running)
    return end_all(event.micros, *tensor, out);
  if (event.kind == EventKind::kRankReady && !running) {
    // This rank may be later than the others; a viewer shows what lies inside the negotiation.
    const uint64_t micros = std::max(event.micros, tensor->begun);
    append_if_it_fits(concat(R"({"ph":"X","name":")", event.number, R"(","ts":)", micros,
                             R"(,"pid":)", tensor->pid, R"(,"dur":0})"),
                      0, out);
  }
}

void Encoder::finish(uint64_t micros, uint64_t dropped_before, std::string& out) {
  for (Tensor& tensor : tensors_) end_all(micros, tensor, out);
  const uint64_t dropped = dropped_ + dropped_before;
  if (dropped == 0) return;
  append(concat(R"({"ph":"i","name":"EVENTS_DROPPED","ts":)", micros,
                R"(,"s":"g","args":{"count":)", dropped, "}}"),
         out);
}

Encoder::Tensor* Encoder::find(std::string_view name) {
  const auto found = index_of_.find(name);
  return found == index_of_.end() ? nullptr : &tensors_[found->second];
}

void Encoder::begin(const Event& event, Phase phase, std::string_view prefix, std::string& out) {
  Tensor* tensor = find(event.tensor);
  if (tensor != nullptr) end_all(event.micros, *tensor, out);
  if (full_) {
    ++dropped_;
    return;
  }
  const auto pid = tensor != nullptr ? tensor->pid : static_cast<uint32_t>(tensors_.size() + 1);
  std::string record;
  if (tensor == nullptr) {
    record = concat(process_records(pid, R"("name":)" + quoted(event.tensor)), ",\n");
  }
  record += begin_record(prefix, event.word, event.micros, pid);
  if (!append_if_it_fits(record, 1, out)) return;
  if (tensor == nullptr) {
    index_of_.emplace(event.tensor, pid - 1);
    tensor = &tensors_.emplace_back(Tensor{.pid = pid});
  }
  tensor->phase = phase;
  tensor->levels = 1;
  tensor->begun = event.micros;
}

void Encoder::begin_activity(const Event& event, Tensor& tensor, std::string& out) {
  if (append_if_it_fits(begin_record("", event.word, event.micros, tensor.pid), 1, out)) {
    ++tensor.levels;
  } else {
    ++tensor.skipped_levels;
  }
}

void Encoder::end_activity(const Event& event, Tensor& tensor, std::string& out) {
  if (tensor.skipped_levels > 0) {
    --tensor.skipped_levels;
    ++dropped_;
  } else if (tensor.levels > 1) {  // the last level is the operation's own
    end_level(event.micros, tensor, out);
  }
}

void Encoder::end_level(uint64_t micros, Tensor& tensor, std::string& out) {
  append(concat(R"({"ph":"E","ts":)", micros, R"(,"pid":)", tensor.pid, "}"), out);
  --tensor.levels;
  --open_levels_;
}

void Encoder::end_all(uint64_t micros, Tensor& tensor, std::string& out) {
  while (tensor.levels > 0) end_level(micros, tensor, out);
  tensor.skipped_levels = 0;
  tensor.phase = Phase::kNone;
}

void Encoder::end_operation(const Event& event, Tensor& tensor, std::string& out) {
  while (tensor.levels > 1) end_level(event.micros, tensor, out);
  const bool succeeded = tensor.phase == Phase::kRunning && !event.word.empty();
  if (succeeded && !full_) {
    const std::string record =
        concat(R"({"ph":"E","ts":)", event.micros, R"(,"pid":)", tensor.pid, R"(,"args":{"dtype":)",
               quoted(event.word), R"(,"shape":)", quoted(event.shape), "}}");
    if (fits(record, 0)) {
      append(record, out);
      --tensor.levels;
      --open_levels_;
    }
  }
  end_all(event.micros, tensor, out);  // the end itself where it could not carry its arguments
}

bool Encoder::fits(std::string_view record, uint64_t new_levels) {
  const uint64_t reserved = (open_levels_ + new_levels) * kEndBytes + kNoteBytes;
  full_ = full_ || bytes_ + record.size() + 2 + reserved > max_bytes_;
  return !full_;
}

// `record` may be several. Counts an event as dropped when there is no room for it.
bool Encoder::append_if_it_fits(std::string_view record, uint64_t new_levels, std::string& out) {
  if (!fits(record, new_levels)) {
    ++dropped_;
    return false;
  }
  append(record, out);
  open_levels_ += new_levels;
  return true;
}

void Encoder::append(std::string_view record, std::string& out) {
  const size_t before = out.size();
  if (!first_) out += ",\n";
  first_ = false;
  out += record;
  bytes_ += out.size() - before;
}

}  // namespace hvd::trace
