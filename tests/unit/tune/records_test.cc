#include "tune/records.h"

#include <gmock/gmock.h>

namespace hvd::tune {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(TuneRecords, TheLogBeginsWithTheColumnsOfTheOriginal) {
  EXPECT_THAT(log_header(),
              StartsWith("hierarchical_allreduce,hierarchical_allgather,torus_allreduce,"
                         "cache_enabled,cycle_time_ms,tensor_fusion_threshold,score,small_bytes,"));
  EXPECT_EQ(log_row({.cycle_time_ms = 3.5, .fusion_threshold_mb = 64},
                    *parse_tuning("small_bytes=512 pace=deep"), 123.5),
            "0,0,0,1,3.5,64,123.5,512,auto,auto,deep,auto,auto,auto,auto,auto\n");
}

TEST(TuneRecords, AProfileIsReadBackAsItWas) {
  const Tuning tuning = *parse_tuning("chunk_bytes=65536 spin_count=0 progress=background");
  const std::string text = profile_text(tuning, {.ranks = 4, .hosts = 2},
                                        {.ratio = 1.2, .low = 1.1764, .high = 1.2231, .count = 9});

  EXPECT_EQ(*parse_profile(text), tuning);
  EXPECT_THAT(text, HasSubstr("4 ranks on 2 hosts"));
  EXPECT_THAT(text, HasSubstr("1.200 times the automatic tuning (95 % confidence: 1.176 to 1.223"));
  EXPECT_EQ(*parse_profile(profile_text(Tuning{}, {}, {})), Tuning{});
}

TEST(TuneRecords, AProfileWithNonsenseIsRefused) {
  EXPECT_FALSE(parse_profile("# fine\nchunk_bytes=1\n"));
  EXPECT_FALSE(parse_profile("hello"));
}

}  // namespace
}  // namespace hvd::tune
