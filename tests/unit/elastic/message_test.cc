#include "elastic/message.h"

#include <gtest/gtest.h>

#include <random>

namespace hvd::elastic {
namespace {

TEST(ElasticMessage, ComesBackAsItWasSent) {
  const ToLauncher to_launcher[] = {Ready{.epoch = 7, .why = "rank 3 has gone", .missed = {-1, 3}},
                                    Ready{}, Report{.kind = 2, .number = -5}};
  const ToWorker to_worker[] = {Assign{.epoch = 3,
                                       .rank = 5,
                                       .size = 8,
                                       .local_rank = 1,
                                       .local_size = 4,
                                       .cross_rank = 1,
                                       .cross_size = 2},
                                Removed{"host b was removed"}, Broken{4, "rank 1 was killed"},
                                News{.timestamp_ns = 123456789, .changes = 3}, Leave{}};

  for (const ToLauncher& message : to_launcher) {
    const auto back = decode_to_launcher(encode(message));
    ASSERT_TRUE(back.is_ok()) << back.status().message();
    EXPECT_EQ(*back, message);
  }
  for (const ToWorker& message : to_worker) {
    const auto back = decode_to_worker(encode(message));
    ASSERT_TRUE(back.is_ok()) << back.status().message();
    EXPECT_EQ(*back, message);
  }
}

TEST(ElasticMessage, IsRefusedWhenItIsCutOrHasMore) {
  const std::string ready = encode(ToLauncher(Ready{.epoch = 7, .why = "x"}));
  const std::string assign = encode(ToWorker(Assign{.epoch = 1}));

  for (size_t size = 0; size < ready.size(); ++size) {
    EXPECT_FALSE(decode_to_launcher(ready.substr(0, size)).is_ok()) << size;
  }
  for (size_t size = 0; size < assign.size(); ++size) {
    EXPECT_FALSE(decode_to_worker(assign.substr(0, size)).is_ok()) << size;
  }
  EXPECT_FALSE(decode_to_launcher(ready + "x").is_ok());
  EXPECT_FALSE(decode_to_worker(assign + "x").is_ok());
  EXPECT_FALSE(decode_to_worker(ready).is_ok());
  EXPECT_FALSE(decode_to_launcher(assign).is_ok());
}

TEST(ElasticMessage, RefusesPlacesThatNoWorldHas) {
  const Assign wrong[] = {{.epoch = 0},
                          {.epoch = 1, .rank = 2, .size = 2},
                          {.epoch = 1, .rank = -1, .size = 2},
                          {.epoch = 1, .size = 2, .local_rank = 2, .local_size = 2},
                          {.epoch = 1, .size = 2, .local_size = 3},
                          {.epoch = 1, .size = 2, .cross_rank = 1, .cross_size = 1}};

  for (const Assign& assign : wrong) {
    EXPECT_FALSE(decode_to_worker(encode(ToWorker(assign))).is_ok()) << assign.rank;
  }
}

TEST(ElasticMessage, CutsLongReasonsSoThatTheyFit) {
  const std::string bytes = encode(ToWorker(Removed{std::string(100000, 'x')}));

  ASSERT_LE(bytes.size(), kMaxMessageBytes);
  const auto back = decode_to_worker(bytes);
  ASSERT_TRUE(back.is_ok());
  EXPECT_EQ(std::get<Removed>(*back).reason.size(), kMaxReasonBytes);
}

TEST(ElasticMessage, SurvivesAnyBytes) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(random() % 64, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    (void)decode_to_launcher(bytes).is_ok();
    (void)decode_to_worker(bytes).is_ok();
  }
}

}  // namespace
}  // namespace hvd::elastic
