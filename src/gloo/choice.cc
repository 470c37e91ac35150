#include "gloo/choice.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "topology/variables.h"

namespace hvd::gloo {
namespace {

std::string lower_case(const Environment& environment, const char* name) {
  std::string text = topology::text_variable(environment, name).value_or("");
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

constexpr char kOwnEngine[] = "; horovod's own TCP engine carries the data between hosts";

}  // namespace

bool is_wanted(const Environment& environment) {
  const std::string operations = lower_case(environment, "HOROVOD_CPU_OPERATIONS");
  if (operations == "gloo") return true;
  const bool is_open = operations.empty() || operations == "auto" || operations == "ccl";
  return is_open && lower_case(environment, "HOROVOD_CONTROLLER") == "gloo";
}

Result<Decision> decide(std::span<const RankOffer> ranks, bool encrypts_everything) {
  const auto wants = [](const RankOffer& rank) { return rank.offer.is_wanted; };
  if (std::none_of(ranks.begin(), ranks.end(), wants)) return Decision{};
  for (const RankOffer& rank : ranks) {
    if (rank.offer.is_wanted) continue;
    return Decision{false, concat("Gloo is not used: ", rank.who,
                                  " does not ask for it (HOROVOD_CPU_OPERATIONS)", kOwnEngine)};
  }
  for (const RankOffer& rank : ranks) {
    if (rank.offer.problem.empty()) continue;
    return Decision{false,
                    concat("Gloo is not used: ", rank.who, ": ", rank.offer.problem, kOwnEngine)};
  }
  if (encrypts_everything) {
    return precondition_error(
        "HOROVOD_TLS=1, but Gloo carries the data (HOROVOD_CPU_OPERATIONS=gloo, horovodrun "
        "--gloo), and does not encrypt it; set HOROVOD_CPU_OPERATIONS=native as well, or unset "
        "HOROVOD_TLS");
  }
  return Decision{true, {}};
}

}  // namespace hvd::gloo
