// Which way device memory travels, from what the members say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "collective/gpu/agreement.h"

namespace hvd::collective::gpu {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Facts member(int version, const char* device, const char* host = "a") {
  Facts facts;
  facts.nccl_version = version;
  facts.host = host[0];
  std::strcpy(facts.host_name, host);  // NOLINT: short texts
  std::strcpy(facts.device, device);   // NOLINT
  return facts;
}

TEST(GpuAgreement, NcclIsUsedWhereAllHaveItAndADeviceOfTheirOwn) {
  const Facts all[] = {member(21605, "0000:01:00.0"), member(22005, "0000:02:00.0"),
                       member(21605, "0000:01:00.0", "b")};

  EXPECT_TRUE(decide(all).use_nccl);
}

TEST(GpuAgreement, OneMemberWithoutNcclIsEnoughAndIsNamed) {
  Facts all[] = {member(21605, "0000:01:00.0"), member(0, "0000:02:00.0")};
  std::strcpy(all[1].why, "libnccl.so.2: cannot open");  // NOLINT: short text

  const Decision decision = decide(all);

  EXPECT_FALSE(decision.use_nccl);
  EXPECT_THAT(decision.reason, HasSubstr("member 1"));
  EXPECT_THAT(decision.reason, HasSubstr("cannot open"));
  EXPECT_THAT(decision.reason, HasSubstr("pip install"));
}

TEST(GpuAgreement, StreamsAreAsManyAsEachMemberHas) {
  Facts all[] = {member(21605, "0000:01:00.0"), member(21605, "0000:02:00.0"),
                 member(21605, "0000:03:00.0")};
  EXPECT_EQ(decide(all).nccl_streams, 1);
  all[0].nccl_streams = 4;
  all[1].nccl_streams = 2;
  all[2].nccl_streams = 3;

  EXPECT_EQ(decide(all).nccl_streams, 2);
}

TEST(GpuAgreement, NothingTravelsUnprotectedBetweenHostsWhereTlsIsAskedFor) {
  Facts all[] = {member(21605, "0000:01:00.0"), member(21605, "0000:01:00.0", "b")};
  EXPECT_TRUE(decide(all).use_nccl);

  all[1].protects_all = 1;

  EXPECT_FALSE(decide(all).use_nccl);
  EXPECT_THAT(decide(all).reason, HasSubstr("HOROVOD_TLS=1"));
}

TEST(GpuAgreement, HostsAreTheirNumbersWhateverTheirNames) {
  Facts all[] = {member(21605, "0000:01:00.0"), member(21605, "0000:01:00.0", "b")};
  std::strcpy(all[1].host_name, all[0].host_name);  // NOLINT: short text
  EXPECT_TRUE(decide(all).use_nccl) << "two devices at the same place of two machines";

  all[1].protects_all = 1;

  EXPECT_FALSE(decide(all).use_nccl) << "what leaves the host is not protected";
}

TEST(GpuAgreement, SettingsAboutLevelsThatAreOnAreFound) {
  const auto environment = [](const char* name) -> std::optional<std::string> {
    if (std::strcmp(name, "HOROVOD_HIERARCHICAL_ALLREDUCE") == 0) return "1";
    if (std::strcmp(name, "HOROVOD_HIERARCHICAL_ALLGATHER") == 0) return "0";
    if (std::strcmp(name, "HOROVOD_TORUS_ALLREDUCE") == 0) return "2";
    return std::nullopt;
  };

  EXPECT_EQ(asked_levels(environment), kAsksHierarchical | kAsksTorus);
  EXPECT_EQ(asked_levels([](const char*) { return std::nullopt; }), 0);
}

// Two members on each of two hosts, in turn.
std::vector<Facts> two_hosts(int32_t asks) {
  std::vector<Facts> all = {member(21605, "0000:01:00.0"), member(21605, "0000:01:00.0", "b"),
                            member(21605, "0000:02:00.0"), member(21605, "0000:02:00.0", "b")};
  all[3].asks = asks;  // one is enough
  return all;
}

TEST(GpuAgreement, LevelsAreThoseThatOneMemberAsksForAndTheTorusGoesFirst) {
  EXPECT_EQ(decide(two_hosts(0)).levels, Levels::kNone);
  EXPECT_EQ(decide(two_hosts(kAsksGather)).levels, Levels::kNone);
  EXPECT_EQ(decide(two_hosts(kAsksHierarchical)).levels, Levels::kHierarchical);
  EXPECT_EQ(decide(two_hosts(kAsksTorus)).levels, Levels::kTorus);
  EXPECT_EQ(decide(two_hosts(kAsksHierarchical | kAsksTorus)).levels, Levels::kTorus);
  EXPECT_TRUE(decide(two_hosts(kAsksTorus)).use_nccl);
  EXPECT_EQ(decide(two_hosts(kAsksTorus)).without_levels, "");
}

TEST(GpuAgreement, WhatStandsAgainstLevelsIsSaid) {
  std::vector<Facts> uneven = two_hosts(kAsksTorus | kAsksHierarchical);
  uneven.push_back(member(21605, "0000:03:00.0", "b"));
  std::vector<Facts> one_host = {uneven[3], uneven[1]};
  std::vector<Facts> one_each = {uneven[0], uneven[3]};

  EXPECT_EQ(decide(uneven).levels, Levels::kNone);
  EXPECT_TRUE(decide(uneven).use_nccl);
  EXPECT_THAT(decide(uneven).without_levels, HasSubstr("a has 2, b 3"));
  EXPECT_THAT(decide(uneven).without_levels,
              HasSubstr("HOROVOD_HIERARCHICAL_ALLREDUCE, HOROVOD_TORUS_ALLREDUCE: no effect"));
  EXPECT_THAT(decide(one_host).without_levels, HasSubstr("all members are on one host"));
  EXPECT_THAT(decide(one_each).without_levels, HasSubstr("each host has one member"));
}

TEST(GpuAgreement, UnderTlsNcclStaysInsideOfHosts) {
  const auto under_tls = [](int32_t asks) {
    std::vector<Facts> all = two_hosts(asks);
    all[0].protects_all = 1;
    return decide(all);
  };

  EXPECT_TRUE(under_tls(kAsksHierarchical).use_nccl);
  EXPECT_FALSE(under_tls(kAsksHierarchical).may_leave_host);
  EXPECT_EQ(under_tls(kAsksHierarchical | kAsksTorus).levels, Levels::kHierarchical);
  EXPECT_FALSE(under_tls(kAsksTorus).use_nccl);
  EXPECT_THAT(under_tls(kAsksTorus).reason, HasSubstr("HOROVOD_HIERARCHICAL_ALLREDUCE=1"));
  EXPECT_TRUE(decide(two_hosts(kAsksHierarchical)).may_leave_host);
}

TEST(GpuAgreement, AnOldNcclIsNotUsed) {
  const Facts all[] = {member(21500, "0000:01:00.0"), member(21605, "0000:02:00.0")};

  EXPECT_FALSE(decide(all).use_nccl);
}

TEST(GpuAgreement, MembersThatShareADeviceAreNamed) {
  const Facts all[] = {member(21605, "0000:01:00.0"), member(21605, "0000:01:00.0")};

  const Decision decision = decide(all);

  EXPECT_FALSE(decision.use_nccl);
  EXPECT_THAT(decision.reason, HasSubstr("members 0 and 1"));
  EXPECT_THAT(decision.reason, HasSubstr("local_rank"));
}

TEST(GpuAgreement, AMissingLibraryDoesNotHideThatADeviceIsShared) {
  const Facts all[] = {member(0, "0000:01:00.0"), member(0, "0000:01:00.0")};

  const Decision decision = decide(all);

  EXPECT_THAT(decision.reason, HasSubstr("pip install"));
  EXPECT_THAT(decision.reason, HasSubstr("members 0 and 1"));
}

TEST(GpuAgreement, MembersWithoutADeviceShareNothing) {
  const Facts all[] = {member(0, ""), member(0, "")};

  EXPECT_THAT(decide(all).reason, Not(HasSubstr("share")));
}

}  // namespace
}  // namespace hvd::collective::gpu
