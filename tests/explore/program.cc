#include "tests/explore/program.h"

#include <algorithm>
#include <random>
#include <sstream>

namespace hvd::explore {
namespace {

constexpr std::string_view kLetters = "relzuGpgbtsBJPQ";

std::optional<Word> parse_word(std::string text) {
  Word word;
  if (text == "*") {
    word.what = Word::What::kWaitAll;
    return word;
  }
  if (text.front() == 'T') {
    word.what = Word::What::kTune;
    word.name = std::stoi(text.substr(1));
    return word;
  }
  if (text.front() == '+') {
    word.in_second_set = true;
    text.erase(0, 1);
  }
  if (text.empty() || kLetters.find(text.front()) == std::string_view::npos) return std::nullopt;
  word.kind = static_cast<Kind>(text.front());
  text.erase(0, 1);
  if (!text.empty() && text.back() == '!') {
    word.waits = true;
    text.pop_back();
  } else if (!text.empty() && text.back() == '?') {
    word.what = Word::What::kWait;
    text.pop_back();
  }
  if (!text.empty()) word.name = std::stoi(text);
  return word;
}

constexpr int kLateName = 9;

Word late_word(Kind kind) {
  Word word;
  word.kind = kind;
  word.name = kLateName;
  return word;
}

// All ranks know it; then some submit it again, and go on.
void submit_early(std::mt19937_64& random, Program& program) {
  const Kind kind = random() % 2 == 0 ? Kind::kEager : Kind::kAllreduce;
  const uint64_t early = random() % program.words.size();
  for (size_t rank = 0; rank < program.words.size(); ++rank) {
    Word word = late_word(kind);
    word.waits = true;
    program.words[rank].push_back(word);
    word.waits = false;
    if (rank == early || random() % 2 == 0) program.words[rank].push_back(word);
  }
}

// Those that did not submit it early do it now.
void submit_late(Program& program) {
  const Kind kind = program.words[0][0].kind;
  for (auto& words : program.words) {
    if (words.size() < 2 || !(words[1] == late_word(kind))) words.push_back(late_word(kind));
  }
}

// The operations of one window, in an order of each rank's own.
class Window {
 public:
  Window(std::mt19937_64& random, const Shape& shape, bool has_second_set)
      : random_(random), shape_(shape), has_second_set_(has_second_set) {
    const auto most = static_cast<uint64_t>(shape.batch);
    fill(first_, 1 + draw(most));
    fill(second_, draw(most));
  }

  void append_to(std::vector<Word>& words) {
    std::vector<Word> early = first_, late;
    for (const Word& word : second_) (draw(2) == 0 ? early : late).push_back(word);
    std::shuffle(early.begin(), early.end(), random_);
    std::shuffle(late.begin(), late.end(), random_);
    words.insert(words.end(), early.begin(), early.end());
    for (Word word : first_) {
      if (draw(3) != 0) continue;
      word.what = Word::What::kWait;
      words.push_back(word);
    }
    words.insert(words.end(), late.begin(), late.end());
  }

  // For everything of this window, but not for what is late.
  void append_waits_to(std::vector<Word>& words) const {
    for (const std::vector<Word>& batch : {first_, second_}) {
      for (Word word : batch) {
        word.what = Word::What::kWait;
        words.push_back(word);
      }
    }
  }

 private:
  uint64_t draw(uint64_t below) { return random_() % below; }

  void fill(std::vector<Word>& batch, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      Word word;
      word.kind = static_cast<Kind>(shape_.kinds[draw(shape_.kinds.size())]);
      if (shape_.groups && draw(8) == 0) word.kind = Kind::kGroup;
      if (word.kind != Kind::kBarrier) word.name = static_cast<int>(draw(4));
      word.in_second_set = has_second_set_ && draw(3) == 0;
      if (is_used(word)) continue;
      batch.push_back(word);
    }
  }
  // A name is in flight once, and unnamed operations of a kind match by their order.
  bool is_used(const Word& word) const {
    const auto clashes = [&](const Word& other) {
      return other.in_second_set == word.in_second_set && other.kind == word.kind &&
             (other.name == word.name || word.kind == Kind::kUnnamed ||
              word.kind == Kind::kBarrier);
    };
    return std::any_of(first_.begin(), first_.end(), clashes) ||
           std::any_of(second_.begin(), second_.end(), clashes);
  }

  std::mt19937_64& random_;
  const Shape& shape_;
  const bool has_second_set_;
  std::vector<Word> first_, second_;
};

}  // namespace

bool changes_sets(const Word& word) {
  return word.kind == Kind::kAddSet || word.kind == Kind::kRemoveSet;
}

std::string to_text(const Word& word) {
  if (word.what == Word::What::kWaitAll) return "*";
  if (word.what == Word::What::kTune) return "T" + std::to_string(word.name);
  std::string text = word.in_second_set ? "+" : "";
  text += static_cast<char>(word.kind);
  if (word.kind != Kind::kBarrier && word.kind != Kind::kJoin && !changes_sets(word))
    text += std::to_string(word.name);
  if (word.what == Word::What::kWait) return text + "?";
  return word.waits ? text + "!" : text;
}

std::string to_text(const Program& program) {
  std::ostringstream text;
  text << "np=" << program.ranks << " cap=" << program.capacity;
  if (program.hosts > 1) text << " hosts=" << program.hosts;
  text << " :";
  for (size_t rank = 0; rank < program.words.size(); ++rank) {
    if (rank > 0) text << " |";
    for (const Word& word : program.words[rank]) text << ' ' << to_text(word);
  }
  return text.str();
}

std::optional<Program> parse(const std::string& text) {
  Program program;
  std::istringstream in(text);
  std::string token;
  bool has_begun = false;
  while (in >> token) {
    if (token == ":") {
      has_begun = true;
      program.words.emplace_back();
    } else if (!has_begun) {
      const size_t equals = token.find('=');
      if (equals == std::string::npos) return std::nullopt;
      const int value = std::stoi(token.substr(equals + 1));
      const std::string name = token.substr(0, equals);
      if (name == "np") program.ranks = value;
      if (name == "cap") program.capacity = value;
      if (name == "hosts") program.hosts = value;
    } else if (token == "|") {
      program.words.emplace_back();
    } else {
      const auto word = parse_word(token);
      if (!word) return std::nullopt;
      program.words.back().push_back(*word);
    }
  }
  if (program.words.size() != static_cast<size_t>(program.ranks)) return std::nullopt;
  return program;
}

namespace {

void append_to_all(Kind kind, Program& program) {
  Word word;
  word.kind = kind;
  word.waits = true;
  for (auto& words : program.words) words.push_back(word);
}

void tune_now_and_then(std::mt19937_64& random, Program& program) {
  std::vector<Word> words;
  for (const Word& word : program.words[0]) {
    if (random() % 3 == 0) {
      Word tune;
      tune.what = Word::What::kTune;
      tune.name = static_cast<int>(random() % 5);
      words.push_back(tune);
    }
    words.push_back(word);
  }
  program.words[0] = std::move(words);
}

}  // namespace

Program random_program(uint64_t seed, const Shape& shape) {
  std::mt19937_64 random(seed);
  Program program;
  program.ranks = shape.ranks;
  program.hosts = shape.hosts;
  program.capacity = shape.capacity;
  program.words.resize(static_cast<size_t>(shape.ranks));
  if (shape.late) submit_early(random, program);
  bool has_second_set = false;
  std::optional<Window> before;
  for (int number = 0; number < shape.windows; ++number) {
    if (shape.sets && !has_second_set && random() % 2 == 0) {
      has_second_set = true;
      append_to_all(Kind::kAddSet, program);
    }
    Window window(random, shape, has_second_set);
    for (auto& words : program.words) {
      window.append_to(words);
      if (!shape.overlaps) window.append_waits_to(words);
      if (before) before->append_waits_to(words);
    }
    if (shape.overlaps) before.emplace(window);
    // Nothing of the set is in flight: every rank has waited for all of the window.
    if (shape.removes_sets && has_second_set && random() % 2 == 0) {
      has_second_set = false;
      append_to_all(Kind::kRemoveSet, program);
    }
    if (shape.joins && random() % 3 == 0) {
      // Some ranks have one allreduce more than those that join at once.
      for (auto& words : program.words) {
        Word word;
        if (random() % 2 == 0) {
          word.name = 7;
          word.waits = random() % 2 == 0;
          words.push_back(word);
        }
        word = Word{};
        word.kind = Kind::kJoin;
        word.waits = true;
        words.push_back(word);
        word = Word{};
        word.what = Word::What::kWaitAll;
        words.push_back(word);
      }
    }
  }
  if (shape.late) submit_late(program);
  if (shape.tunes) tune_now_and_then(random, program);
  return program;
}

std::vector<Program> simpler(const Program& program) {
  std::vector<Program> found;
  // Everything that one word names, on all ranks.
  std::vector<Word> named;
  for (const auto& words : program.words) {
    for (Word word : words) {
      if (word.what != Word::What::kSubmit || changes_sets(word)) continue;
      word.waits = false;
      if (std::find(named.begin(), named.end(), word) == named.end()) named.push_back(word);
    }
  }
  for (const Word& gone : named) {
    Program smaller = program;
    for (auto& words : smaller.words) {
      std::erase_if(words, [&](const Word& word) {
        return word.what != Word::What::kWaitAll && word.kind == gone.kind &&
               word.name == gone.name && word.in_second_set == gone.in_second_set;
      });
    }
    found.push_back(smaller);
  }
  // The n-th time that each rank submits it.
  for (const Word& gone : named) {
    for (int nth = 0; nth < 4; ++nth) {
      Program smaller = program;
      bool everywhere = true;
      for (auto& words : smaller.words) {
        int seen = 0;
        const auto at = std::find_if(words.begin(), words.end(), [&](const Word& word) {
          return word.what == Word::What::kSubmit && word.kind == gone.kind &&
                 word.name == gone.name && word.in_second_set == gone.in_second_set &&
                 seen++ == nth;
        });
        if (at == words.end()) {
          everywhere = false;
        } else {
          words.erase(at);
        }
      }
      if (everywhere) found.push_back(smaller);
    }
  }
  // One word that only waits.
  for (size_t rank = 0; rank < program.words.size(); ++rank) {
    for (size_t at = 0; at < program.words[rank].size(); ++at) {
      const Word& word = program.words[rank][at];
      Program smaller = program;
      if (word.what != Word::What::kSubmit) {
        smaller.words[rank].erase(smaller.words[rank].begin() + static_cast<long>(at));
      } else if (word.waits && !changes_sets(word)) {
        smaller.words[rank][at].waits = false;
      } else {
        continue;
      }
      found.push_back(smaller);
    }
  }
  return found;
}

}  // namespace hvd::explore
