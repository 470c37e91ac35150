#include "collective/select.h"

#include "base/text.h"

namespace hvd::collective {
namespace {

std::string_view kind_text(WorkKind kind) {
  switch (kind) {
    case WorkKind::kReduce:
      return "reduce";
    case WorkKind::kReduceShared:
      return "reduce in place";
    case WorkKind::kExchange:
      return "exchange";
    case WorkKind::kAdasum:
      return "Adasum";
    case WorkKind::kFence:
      return "fence";
  }
  return "unknown work";
}

std::string_view device_text(DeviceKind kind) {
  return kind == DeviceKind::kHost ? "host memory" : "GPU memory";
}

bool fits_apart_from_size(const WorkTraits& work, const Capability& row) {
  return row.kind == work.kind && row.device == work.device.kind &&
         row.dtypes.contains(work.dtypes) && row.ops.contains(work.ops) &&
         (row.takes_objects || !work.has_objects);
}

uint64_t least_bytes_of(const WorkTraits& work, const Capability& row) {
  return row.least_bytes > 0 && work.library_bytes > 0 ? work.library_bytes : row.least_bytes;
}

bool fits(const WorkTraits& work, const Capability& row) {
  return fits_apart_from_size(work, row) && work.bytes >= least_bytes_of(work, row);
}

// Why a candidate does not take a work.
std::string refusal(const WorkTraits& work, const Candidate& candidate) {
  bool has_kind = false, has_device = false, has_elements = false;
  uint64_t least_bytes = 0;
  for (const Capability& row : *candidate.capabilities) {
    if (row.kind != work.kind) continue;
    has_kind = true;
    if (row.device != work.device.kind) continue;
    has_device = true;
    if (!fits_apart_from_size(work, row)) continue;
    has_elements = true;
    least_bytes = least_bytes_of(work, row);
  }
  if (!has_kind) return concat(candidate.name, " has no ", kind_text(work.kind));
  if (!has_device) {
    return concat(candidate.name, " does not reach ", device_text(work.device.kind));
  }
  if (!has_elements && work.has_objects)
    return concat(candidate.name, " does not protect bytes that may be objects");
  if (!has_elements) return concat(candidate.name, " does not have its dtypes and operations");
  return concat(candidate.name, " takes ", least_bytes, " bytes or more");
}

std::string text_of(const WorkTraits& work) {
  std::string text = concat(kind_text(work.kind), ", ", work.bytes, " bytes");
  std::string_view before = " of ";
  for (int code = 0; code < kDTypeCount; ++code) {
    const auto dtype = static_cast<DType>(code);
    if (!work.dtypes.contains(dtype)) continue;
    text += concat(before, dtype_name(dtype));
    before = ", ";
  }
  return concat(text, ", ", device_text(work.device.kind));
}

void add_run(WorkTraits& traits, const Run& run) {
  traits.dtypes.add(run.numeric.slot_dtype);
  traits.ops.add(run.numeric.op);
  traits.bytes += run.count * run.numeric.slot_bytes();
}

}  // namespace

WorkTraits traits_of(const Work& work) {
  WorkTraits traits{.kind = work.kind,
                    .dtypes = {},
                    .ops = {},
                    .device = work.device,
                    .library_bytes = work.cut.library_bytes};
  for (size_t r = 0; r < work.run_count; ++r) add_run(traits, work.runs[r]);
  for (const Exchange& exchange : work.exchanges) {
    traits.bytes += exchange.largest_block_bytes;
    traits.has_objects = traits.has_objects || exchange.moves_bytes;
    if (!exchange.reduces) continue;
    traits.dtypes.add(exchange.numeric.slot_dtype);
    traits.ops.add(exchange.numeric.op);
  }
  return traits;
}

std::optional<size_t> select(const WorkTraits& work, std::span<const Candidate> candidates) {
  for (size_t i = 0; i < candidates.size(); ++i) {
    for (const Capability& row : *candidates[i].capabilities) {
      if (fits(work, row)) return i;
    }
  }
  return std::nullopt;
}

std::string explain_route(const WorkTraits& work, std::span<const Candidate> candidates) {
  const auto chosen = select(work, candidates);
  std::string text = concat(chosen ? candidates[*chosen].name : std::string_view("no backend"),
                            ": ", text_of(work));
  for (size_t i = 0; i < chosen.value_or(candidates.size()); ++i) {
    text += concat("; ", refusal(work, candidates[i]));
  }
  return text;
}

}  // namespace hvd::collective
