#include "launch/near_word.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace hvd::launch {
namespace {

// A misspelling is worth a guess up to this many edits; beyond it guesses are noise.
constexpr size_t kGuessEdits = 2;

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

}  // namespace

std::string_view near_word(std::string_view word, std::span<const std::string_view> known) {
  std::string_view best;
  size_t best_distance = kGuessEdits + 1;
  for (std::string_view candidate : known) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance && candidate.size() > 2 * distance + 1) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace hvd::launch
