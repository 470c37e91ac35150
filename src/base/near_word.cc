#include "base/near_word.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/text.h"

namespace hvd {
namespace {

// A misspelling is worth a guess up to this many edits, in long words up to a sixth of the letters;
// beyond it guesses are noise.
size_t most_edits(std::string_view word) { return std::max<size_t>(2, word.size() / 6); }

std::string plain(std::string_view word) {
  std::string out(word);
  for (char& c : out) {
    if (c == '_') c = '-';
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return out;
}

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
  const std::string wanted = plain(word);
  size_t best_distance = most_edits(word) + 1;
  for (std::string_view candidate : known) {
    const size_t distance = edit_distance(wanted, plain(candidate));
    if (distance < best_distance && candidate.size() > 2 * distance + 1) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string near_word_text(std::string_view word, std::span<const std::string_view> known) {
  const std::string_view near = near_word(word, known);
  return near.empty() ? "" : concat(": did you mean '", near, "'?");
}

}  // namespace hvd
