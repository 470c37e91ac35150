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
  std::strcpy(facts.host, host);      // NOLINT: short texts
  std::strcpy(facts.device, device);  // NOLINT
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

TEST(GpuAgreement, NothingTravelsUnprotectedBetweenHostsWhereTlsIsAskedFor) {
  Facts all[] = {member(21605, "0000:01:00.0"), member(21605, "0000:01:00.0", "b")};
  EXPECT_TRUE(decide(all).use_nccl);

  all[1].protects_all = 1;

  EXPECT_FALSE(decide(all).use_nccl);
  EXPECT_THAT(decide(all).reason, HasSubstr("HOROVOD_TLS=1"));
}

TEST(GpuAgreement, SettingsAboutLevelsThatAreOnAreNamed) {
  const auto environment = [](const char* name) -> std::optional<std::string> {
    if (std::strcmp(name, "HOROVOD_HIERARCHICAL_ALLREDUCE") == 0) return "1";
    if (std::strcmp(name, "HOROVOD_HIERARCHICAL_ALLGATHER") == 0) return "0";
    if (std::strcmp(name, "HOROVOD_TORUS_ALLREDUCE") == 0) return "2";
    return std::nullopt;
  };

  EXPECT_EQ(settings_about_levels(environment),
            "HOROVOD_HIERARCHICAL_ALLREDUCE, HOROVOD_TORUS_ALLREDUCE");
  EXPECT_EQ(settings_about_levels([](const char*) { return std::nullopt; }), "");
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
