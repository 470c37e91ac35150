// tuning.h - what can be changed in a running engine, as one value: knobs with a few levels each.
// Level 0 of every knob is "automatic": what the engine decides from ranks, hosts and cores. The
// code of a tuning is a number of 24 bits, so that it fits beside the flags of a record: that is
// how all members of a process set get it at the same place of their order (engine/channel.h).
// Codes are between the ranks of one job, never in a file; files hold the text. Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace hvd::tune {

enum class Knob : uint8_t {
  kSmallBytes,    // up to here every rank combines everybody's payload itself
  kChunkBytes,    // of large operations, as they pass through shared memory
  kPartBytes,     // of a block between hosts, that one host combines
  kPace,          // how far blocks between hosts overlap
  kOneShotBytes,  // up to here every host sends everything to every other
  kSpinCount,     // looks before a waiting thread yields or sleeps
  kYieldCount,    // yields before it sleeps
  kProgress,  // who advances gradients: the thread that waits for them, or the background thread
  kLibraryBytes,  // from here reductions go to the library below, where there is one
};
inline constexpr size_t kKnobCount = 9;
inline constexpr int kCodeBits = 24;

// Between hosts; the levels of kPace behind "automatic".
enum class Pace : uint8_t { kAutomatic, kLockstep, kDeep };
// The levels of kProgress.
enum class Progress : uint8_t { kAsSubmitted, kWaiter, kBackground };

struct KnobInfo {
  std::string_view name;
  int bits;
  std::span<const int64_t> values;          // by level - 1; sizes and counts
  std::span<const std::string_view> words;  // by level - 1; choices instead
  bool may_change_bits;                     // of results, in their last digits
  std::string_view meaning;

  constexpr size_t level_count() const {
    return 1 + (words.empty() ? values.size() : words.size());
  }
  bool is_ordered() const { return words.empty(); }
};
const KnobInfo& info_of(Knob knob);

struct Tuning {
  std::array<uint8_t, kKnobCount> levels{};

  uint8_t level(Knob knob) const { return levels[static_cast<size_t>(knob)]; }
  void set_level(Knob knob, uint8_t level) { levels[static_cast<size_t>(knob)] = level; }
  bool is_automatic(Knob knob) const { return level(knob) == 0; }
  // Only where the level is not automatic and the knob has numbers.
  int64_t value(Knob knob) const;
  int64_t value_or(Knob knob, int64_t automatic) const {
    return is_automatic(knob) ? automatic : value(knob);
  }
  bool operator==(const Tuning&) const = default;
};

uint32_t encode(const Tuning& tuning);
// CORRUPTED: a knob has no such level, or the code has more than kCodeBits.
Result<Tuning> decode(uint32_t code);

// "small_bytes=8192 spin_count=auto": knobs that are left out are automatic.
Result<Tuning> parse_tuning(std::string_view text);
// The knobs that are not automatic; "automatic" if all are.
std::string to_text(const Tuning& tuning);
// "auto", "65536", "deep".
std::string level_text(const Tuning& tuning, Knob knob);

}  // namespace hvd::tune
