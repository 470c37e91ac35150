// Does the explorer of resets see what it is for? Each fault of faults/ is planted, and has to be
// found, made short, and found again from what was written down.
#include <gtest/gtest.h>

#include <iostream>

#include "tests/explore/elastic/search.h"

namespace hvd::explore {
int planted_fault = 0;  // read by the sources with faults; 0: none
}

namespace hvd::explore_elastic {
namespace {

struct Fault {
  int number;
  const char* name;
  const char* sentence;
};
constexpr Fault kFaults[] = {
#include "elastic_faults/planted_faults.inc.h"
};

std::optional<Finding> search_for(std::chrono::seconds span) {
  const Until end = std::chrono::steady_clock::now() + span;
  for (uint64_t round = 0; std::chrono::steady_clock::now() < end; ++round) {
    for (const Scenario& scenario : all_scenarios()) {
      const Search search = try_random(scenario, 1 + round * 200, 200, end);
      if (search.finding) return search.finding;
    }
  }
  return std::nullopt;
}

class EachElasticFault : public ::testing::TestWithParam<Fault> {
 protected:
  void TearDown() override { explore::planted_fault = 0; }
};

TEST_P(EachElasticFault, IsFound) {
  explore::planted_fault = GetParam().number;
  std::cout << GetParam().sentence << "\n";

  const auto finding = search_for(std::chrono::seconds(60));

  ASSERT_TRUE(finding) << "not found";
  std::cout << "  " << finding->violation << ": " << finding->replay << "\n";
  const auto again = replay(finding->replay);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->violation, finding->violation);
}

INSTANTIATE_TEST_SUITE_P(Faults, EachElasticFault, ::testing::ValuesIn(kFaults),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(NoElasticFault, NothingIsFoundWithoutAFault) {
  for (const Scenario& scenario : all_scenarios()) {
    const Search search = try_random(scenario, 1, 100, Until::max());
    EXPECT_FALSE(search.finding) << describe(*search.finding);
  }
}

}  // namespace
}  // namespace hvd::explore_elastic
