#include "tests/explore/elastic/search.h"

#include <algorithm>
#include <functional>
#include <random>
#include <sstream>

#include "base/text.h"

namespace hvd::explore_elastic {
namespace {

// Far more than any of these jobs needs; one that gets here goes round in circles.
constexpr int kMostSteps = 4000;
constexpr int kPlainChoice = -1;

// Of the events that happen by themselves the next in turn; time passes when nothing else can.
// None: nothing happens by itself any more.
std::optional<int> plain_choice(const std::vector<Event>& events, int step) {
  const auto inside = static_cast<int>(std::count_if(
      events.begin(), events.end(), [](const Event& e) { return !is_from_outside(e); }));
  if (inside > 0) return step % inside;  // they stand before those from outside
  for (size_t i = 0; i < events.size(); ++i) {
    if (events[i].what == What::kTimePasses) return static_cast<int>(i);
  }
  return std::nullopt;
}

// Which event comes next; kPlainChoice: the plain one.
using Chooser = std::function<int(const std::vector<Event>& events, int step)>;

Outcome run(const Scenario& scenario, const Chooser& choose) {
  Model model(scenario);
  Outcome result;
  int step = 0;
  while (!model.is_over() && model.violation().empty() && step < kMostSteps) {
    const std::vector<Event> events = model.possible();
    const auto plain = plain_choice(events, step);
    if (events.empty() || is_from_outside(events.front())) model.check_rest();
    if (!plain || !model.violation().empty()) break;
    const int chosen = choose(events, step);
    const int taken = chosen == kPlainChoice ? *plain : chosen % static_cast<int>(events.size());
    if (taken != *plain) result.taken[step] = taken;
    result.choices_per_step.push_back(static_cast<int>(events.size()));
    model.happen(events[static_cast<size_t>(taken)]);
    ++step;
  }
  result.violation = model.violation();
  if (result.violation.empty() && !model.is_over() && !model.is_excused()) {
    result.violation = step < kMostSteps ? "stuck: nothing can happen, and the job has not ended"
                                         : concat("no end after ", step, " steps");
  }
  result.history = model.history();
  return result;
}

// Leaves out what is not needed for a violation, in ever smaller parts.
Schedule shorten(const Scenario& scenario, Schedule schedule) {
  for (size_t part = std::max<size_t>(schedule.size() / 2, 1); part > 0; part /= 2) {
    for (size_t begin = 0; begin < schedule.size();) {
      Schedule fewer;
      size_t i = 0;
      for (const auto& item : schedule) {
        if (i < begin || i >= begin + part) fewer.insert(item);
        ++i;
      }
      if (run_schedule(scenario, fewer).violation.empty()) {
        begin += part;
      } else {
        schedule = fewer;
      }
    }
  }
  return schedule;
}

Finding make_finding(const Scenario& scenario, const Outcome& found) {
  const Schedule schedule = shorten(scenario, found.taken);
  const Outcome shortest = run_schedule(scenario, schedule);
  Finding finding{
      .violation = shortest.violation, .replay = scenario.name + " /", .history = shortest.history};
  for (const auto& [step, choice] : schedule) finding.replay += concat(" ", step, ":", choice);
  return finding;
}

}  // namespace

Outcome run_schedule(const Scenario& scenario, const Schedule& schedule) {
  return run(scenario, [&schedule](const std::vector<Event>&, int step) {
    const auto found = schedule.find(step);
    return found == schedule.end() ? kPlainChoice : found->second;
  });
}

Outcome run_random(const Scenario& scenario, uint64_t seed) {
  std::mt19937_64 random(seed);
  // Some jobs are unlucky at once, others late; time flies in some.
  const uint64_t outside_every = 4 + random() % 60;
  return run(scenario, [&](const std::vector<Event>& events, int) {
    std::vector<int> inside, outside;
    for (size_t i = 0; i < events.size(); ++i) {
      (is_from_outside(events[i]) ? outside : inside).push_back(static_cast<int>(i));
    }
    const bool takes_outside =
        inside.empty() || (!outside.empty() && random() % outside_every == 0);
    const std::vector<int>& list = takes_outside ? outside : inside;
    return list[random() % list.size()];
  });
}

Search try_random(const Scenario& scenario, uint64_t first_seed, int64_t most, Until end) {
  Search search;
  for (; search.schedules < most && std::chrono::steady_clock::now() < end; ++search.schedules) {
    const Outcome one = run_random(scenario, first_seed + static_cast<uint64_t>(search.schedules));
    if (one.violation.empty()) continue;
    search.finding = make_finding(scenario, one);
    break;
  }
  return search;
}

Search try_deviations(const Scenario& scenario, Until end) {
  Search search;
  const auto try_all = [&](const Schedule& base, int from, auto&& next) {
    const std::vector<int> choices = run_schedule(scenario, base).choices_per_step;
    for (int step = from; step < static_cast<int>(choices.size()) && !search.finding; ++step) {
      for (int choice = 0; choice < choices[static_cast<size_t>(step)]; ++choice) {
        if (std::chrono::steady_clock::now() >= end) return;
        Schedule schedule = base;
        schedule[step] = choice;
        const Outcome one = run_schedule(scenario, schedule);
        ++search.schedules;
        if (!one.violation.empty()) {
          search.finding = make_finding(scenario, one);
          return;
        }
        next(one.taken, step + 1);
        if (search.finding) return;
      }
    }
  };
  const auto nothing = [](const Schedule&, int) {};
  try_all({}, 0, nothing);
  if (search.finding) return search;
  try_all({}, 0, [&](const Schedule& base, int from) { try_all(base, from, nothing); });
  return search;
}

std::optional<Outcome> replay(const std::string& text) {
  std::istringstream words(text);
  std::string name, word;
  words >> name >> word;
  const auto& scenarios = all_scenarios();
  const auto scenario = std::find_if(scenarios.begin(), scenarios.end(),
                                     [&name](const Scenario& one) { return one.name == name; });
  if (scenario == scenarios.end() || word != "/") return std::nullopt;
  Schedule schedule;
  while (words >> word) {
    int step = 0, choice = 0;
    char colon = 0;
    std::istringstream numbers(word);
    if (!(numbers >> step >> colon >> choice) || colon != ':' || choice < 0) return std::nullopt;
    schedule[step] = choice;
  }
  return run_schedule(*scenario, schedule);
}

std::string describe(const Finding& finding) {
  std::string text = finding.violation + "\n";
  for (const std::string& line : finding.history) text += "  " + line + "\n";
  return text + "again: HVD_EXPLORE_ELASTIC_REPLAY='" + finding.replay +
         "' with --gtest_filter='ElasticReplay.*'\n";
}

}  // namespace hvd::explore_elastic
