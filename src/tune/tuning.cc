#include "tune/tuning.h"

#include <optional>

#include "base/parse.h"
#include "base/text.h"

namespace hvd::tune {
namespace {

constexpr int64_t kKi = 1 << 10;
constexpr int64_t kMi = 1 << 20;

// 104: what a record holds itself.
constexpr int64_t kSmallValues[] = {104, 512, kKi, 2 * kKi, 4 * kKi, 8 * kKi, 16 * kKi, 32 * kKi};
constexpr int64_t kChunkValues[] = {16 * kKi, 32 * kKi, 64 * kKi, 128 * kKi, 256 * kKi, 512 * kKi};
constexpr int64_t kPartValues[] = {16 * kKi,  32 * kKi,  64 * kKi, 128 * kKi,
                                   256 * kKi, 512 * kKi, kMi};
constexpr int64_t kOneShotValues[] = {2 * kKi, 16 * kKi, 64 * kKi};
constexpr int64_t kSpinValues[] = {0, 50, 250, 1000, 4000, 16000};
constexpr int64_t kYieldValues[] = {0, 50, 500};
constexpr int64_t kLibraryValues[] = {16 * kKi, 64 * kKi, 256 * kKi, kMi, 4 * kMi, INT64_MAX};
constexpr std::string_view kPaceWords[] = {"lockstep", "deep"};
constexpr std::string_view kProgressWords[] = {"waiter", "background"};

// In the order of Knob.
constexpr KnobInfo kInfos[kKnobCount] = {
    {"small_bytes", 4, kSmallValues, {}, false, "operations up to here travel with their records"},
    {"chunk_bytes", 3, kChunkValues, {}, false, "pieces of large ones in shared memory"},
    {"part_bytes", 3, kPartValues, {}, false, "pieces of large ones between hosts"},
    {"pace", 2, {}, kPaceWords, false, "how far pieces between hosts overlap"},
    {"one_shot_bytes",
     2,
     kOneShotValues,
     {},
     false,
     "pieces up to here are sent whole to every host"},
    {"spin_count", 3, kSpinValues, {}, false, "looks of a waiting thread before it sleeps"},
    {"yield_count", 2, kYieldValues, {}, false, "yields of a waiting thread before it sleeps"},
    {"progress", 2, {}, kProgressWords, false, "who advances operations that handles wait for"},
    {"library_bytes",
     3,
     kLibraryValues,
     {},
     true,
     "reductions from here on are run by the library between hosts"},
};

constexpr int all_bits() {
  int bits = 0;
  for (const KnobInfo& info : kInfos) bits += info.bits;
  return bits;
}
static_assert(all_bits() == kCodeBits);

constexpr bool all_fit() {
  for (const KnobInfo& info : kInfos) {
    if (info.level_count() > size_t{1} << info.bits) return false;
  }
  return true;
}
static_assert(all_fit());

std::optional<size_t> find_knob(std::string_view name) {
  for (size_t k = 0; k < kKnobCount; ++k) {
    if (kInfos[k].name == name) return k;
  }
  return std::nullopt;
}

std::string one_level_text(const KnobInfo& info, uint8_t level) {
  if (level == 0) return "auto";
  if (!info.words.empty()) return std::string(info.words[level - 1u]);
  const int64_t value = info.values[level - 1u];
  return value == INT64_MAX ? "never" : std::to_string(value);
}

std::string levels_text(const KnobInfo& info) {
  std::string text;
  for (size_t level = 0; level < info.level_count(); ++level) {
    text += concat(level > 0 ? ", " : "", one_level_text(info, static_cast<uint8_t>(level)));
  }
  return text;
}

Status read_word(std::string_view word, Tuning& tuning) {
  const size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const auto knob = find_knob(name);
  if (equals == std::string_view::npos || !knob) {
    return invalid_argument(
        concat("tuning: expected NAME=VALUE with a known name, got '", word, "'"));
  }
  const std::string_view value = word.substr(equals + 1);
  const KnobInfo& info = kInfos[*knob];
  for (size_t level = 0; level < info.level_count(); ++level) {
    if (one_level_text(info, static_cast<uint8_t>(level)) != value) continue;
    tuning.levels[*knob] = static_cast<uint8_t>(level);
    return Status::ok();
  }
  return invalid_argument(
      concat("tuning: ", name, ": expected one of ", levels_text(info), ", got '", value, "'"));
}

}  // namespace

const KnobInfo& info_of(Knob knob) { return kInfos[static_cast<size_t>(knob)]; }

int64_t Tuning::value(Knob knob) const { return info_of(knob).values[level(knob) - 1u]; }

uint32_t encode(const Tuning& tuning) {
  uint32_t code = 0;
  int shift = 0;
  for (size_t k = 0; k < kKnobCount; shift += kInfos[k++].bits)
    code |= static_cast<uint32_t>(tuning.levels[k]) << shift;
  return code;
}

Result<Tuning> decode(uint32_t code) {
  Tuning tuning;
  uint32_t rest = code;
  for (size_t k = 0; k < kKnobCount; ++k) {
    const uint32_t level = rest & ((1u << kInfos[k].bits) - 1);
    rest >>= kInfos[k].bits;
    if (level >= kInfos[k].level_count()) {
      return Status(StatusCode::kCorrupted,
                    concat("tuning ", code, ": ", kInfos[k].name, " has ", kInfos[k].level_count(),
                           " levels, got level ", level));
    }
    tuning.levels[k] = static_cast<uint8_t>(level);
  }
  if (rest != 0)
    return Status(StatusCode::kCorrupted, concat("tuning ", code, ": more than 24 bits"));
  return tuning;
}

Result<Tuning> parse_tuning(std::string_view text) {
  Tuning tuning;
  constexpr std::string_view kSpace = " \t\r\n,";
  while (true) {
    const size_t begin = text.find_first_not_of(kSpace);
    if (begin == std::string_view::npos) return tuning;
    text.remove_prefix(begin);
    const size_t end = std::min(text.find_first_of(kSpace), text.size());
    HVD_TRY(read_word(text.substr(0, end), tuning));
    text.remove_prefix(end);
  }
}

std::string level_text(const Tuning& tuning, Knob knob) {
  return one_level_text(info_of(knob), tuning.level(knob));
}

std::string to_text(const Tuning& tuning) {
  std::string text;
  for (size_t k = 0; k < kKnobCount; ++k) {
    if (tuning.levels[k] == 0) continue;
    text += concat(text.empty() ? "" : " ", kInfos[k].name, "=",
                   one_level_text(kInfos[k], tuning.levels[k]));
  }
  return text.empty() ? "automatic" : text;
}

}  // namespace hvd::tune
