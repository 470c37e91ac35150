#include "tests/explore/explore.h"

#include <sstream>
#include <utility>

#include "base/text.h"
#include "tests/explore/strategies.h"

namespace hvd::explore {
namespace {

// Fibers are numbered: ranks, then their drivers ("d"), then directions of streams ("n").
std::string fiber_text(int fiber, int ranks) {
  if (fiber < ranks) return std::to_string(fiber);
  if (fiber < 2 * ranks) return concat(fiber - ranks, "d");
  return concat("n", fiber - 2 * ranks);
}

int fiber_of(const std::string& text, int ranks) {
  if (text[0] == 'n') return 2 * ranks + std::stoi(text.substr(1));
  const int rank = std::stoi(text);
  return text.back() == 'd' ? ranks + rank : rank;
}

// "0 0d*3 1": a fiber, and how often in a row.
std::string schedule_text(const std::vector<int>& schedule, int ranks) {
  std::string text;
  for (size_t at = 0; at < schedule.size();) {
    size_t end = at;
    while (end < schedule.size() && schedule[end] == schedule[at]) ++end;
    if (!text.empty()) text += ' ';
    text += fiber_text(schedule[at], ranks);
    if (end - at > 1) text += concat("*", end - at);
    at = end;
  }
  return text;
}

std::vector<int> parse_schedule(const std::string& text, int ranks) {
  std::vector<int> schedule;
  std::istringstream in(text);
  std::string token;
  while (in >> token) {
    const size_t star = token.find('*');
    const int times = star == std::string::npos ? 1 : std::stoi(token.substr(star + 1));
    schedule.insert(schedule.end(), static_cast<size_t>(times),
                    fiber_of(token.substr(0, star), ranks));
  }
  return schedule;
}

size_t changes_in(const std::vector<int>& schedule) {
  size_t changes = 0;
  for (size_t i = 1; i < schedule.size(); ++i) changes += schedule[i] != schedule[i - 1] ? 1 : 0;
  return changes;
}

// A schedule of the program that shows a problem of this kind.
std::optional<Outcome> find_again(const Program& program, Grain grain, const std::string& kind,
                                  uint64_t tries) {
  for (uint64_t seed = 0; seed < tries; ++seed) {
    RandomStrategy strategy(seed);
    Outcome outcome = run(program, grain, strategy);
    if (outcome.kind == kind) return outcome;
  }
  return std::nullopt;
}

// Parts of the schedule that are not needed are left out, large ones first.
std::vector<int> shorten(const Program& program, Grain grain, const Outcome& outcome) {
  std::vector<int> schedule = outcome.schedule;
  for (size_t part = schedule.size() / 2; part > 0; part /= 2) {
    for (size_t at = 0; at + part <= schedule.size();) {
      std::vector<int> shorter(schedule.begin(), schedule.begin() + static_cast<long>(at));
      shorter.insert(shorter.end(), schedule.begin() + static_cast<long>(at + part),
                     schedule.end());
      ReplayStrategy strategy(shorter);
      if (run(program, grain, strategy).kind == outcome.kind) {
        schedule = std::move(shorter);
      } else {
        at += part;
      }
    }
  }
  return schedule;
}

}  // namespace

std::string Finding::text() const {
  return concat(outcome.problem, "\n  found after ", tried, " schedules; to see it again:\n  ",
                "HVD_EXPLORE_REPLAY='", to_text(program), " / ",
                grain == Grain::kSteps ? "steps" : "points", " / ",
                schedule_text(outcome.schedule, program.ranks), "'\n");
}

Outcome replay(const std::string& text) {
  const size_t first = text.find(" / "), second = text.find(" / ", first + 1);
  const auto program = second == std::string::npos ? std::nullopt : parse(text.substr(0, first));
  if (!program) return {"this is no schedule: " + text, "text", {}, 0};
  const Grain grain =
      text.substr(first + 3, second - first - 3) == "points" ? Grain::kPoints : Grain::kSteps;
  ReplayStrategy strategy(parse_schedule(text.substr(second + 3), program->ranks));
  return run(*program, grain, strategy);
}

Search try_every_schedule(const Program& program, uint64_t most_runs) {
  Search search;
  EveryStrategy strategy;
  do {
    Outcome outcome = run(program, Grain::kSteps, strategy);
    ++search.schedules;
    search.ends += outcome.has_ended ? 1 : 0;
    search.states = strategy.states();
    if (!outcome.is_ok()) {
      search.finding = Finding{program, Grain::kSteps, std::move(outcome), search.schedules};
      return search;
    }
    if (search.schedules == most_runs) return search;
  } while (strategy.advance());
  search.is_complete = true;
  return search;
}

Search try_random_schedules(const RandomSearch& wanted) {
  Search search;
  for (uint64_t seed = wanted.first_seed;; ++seed) {
    const Program program = wanted.program ? *wanted.program : random_program(seed, wanted.shape);
    for (uint64_t nth = 0; nth < wanted.schedules_per_program; ++nth) {
      if (search.schedules == wanted.most_schedules ||
          (search.schedules % 16 == 0 && std::chrono::steady_clock::now() >= wanted.end))
        return search;
      const Grain grain = nth % 2 == 0 ? Grain::kPoints : Grain::kSteps;
      RandomStrategy strategy(seed * 1'000'003 + nth);
      Outcome outcome = run(program, grain, strategy);
      ++search.schedules;
      if (outcome.is_ok()) continue;
      search.finding = Finding{program, grain, std::move(outcome), search.schedules};
      return search;
    }
  }
}

Finding shrink(const Finding& finding) {
  Finding best = finding;
  constexpr uint64_t kTries = 400;
  for (bool is_smaller = true; is_smaller;) {
    is_smaller = false;
    for (const Program& candidate : simpler(best.program)) {
      // Without a wait a program may be one that ends nowhere by itself.
      if (best.outcome.kind == "stuck" && candidate.words == best.program.words) continue;
      auto outcome = find_again(candidate, best.grain, best.outcome.kind, kTries);
      if (!outcome) continue;
      best.program = candidate;
      best.outcome = std::move(*outcome);
      is_smaller = true;
      break;
    }
  }
  const std::vector<int> schedule = shorten(best.program, best.grain, best.outcome);
  ReplayStrategy strategy(schedule);
  Outcome outcome = run(best.program, best.grain, strategy);
  if (outcome.kind == best.outcome.kind &&
      changes_in(schedule) <= changes_in(best.outcome.schedule)) {
    outcome.schedule = schedule;
    best.outcome = std::move(outcome);
  }
  return best;
}

}  // namespace hvd::explore
