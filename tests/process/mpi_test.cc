// Jobs that mpirun starts, under every MPI that is installed: what brings the ranks together, what
// carries their data, and that our declarations are those of the library. Hosts are simulated by
// names, so that data crosses MPI on one machine too; mpi_hosts_test.cc has real ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "horovod/hvd.h"
#include "mpi/join.h"
#include "mpi/process.h"
#include "tests/process/launched_job.h"
#include "tests/process/mpi_runs.h"
#include "tests/support/host_worker.h"

namespace hvd::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// $R must survive the outer shell.
constexpr char kOwnHosts[] = "HOROVOD_HOSTNAME=host\\$R";
constexpr char kTwoHosts[] = "HOROVOD_HOSTNAME=host\\$((R / 2))";

class Mpi : public ::testing::TestWithParam<MpiInstallation> {
 protected:
  void SetUp() override {
    if (!GetParam().is_installed()) GTEST_SKIP() << GetParam().mpirun << " is not installed";
  }
  // `word` of worker_main() below.
  static Ended run_worker(int ranks, const std::string& setting, const std::string& word) {
    return run_under(GetParam(), ranks, setting, program() + " worker " + word);
  }
  static std::string program() {
    char path[4096] = {};
    return readlink("/proc/self/exe", path, sizeof path - 1) > 0 ? path : "";
  }
};

TEST_P(Mpi, DeclarationsAreThoseOfTheLibrary) {
  const Ended ended = run_worker(2, "", "library");

  EXPECT_EQ(ended.code, 0) << ended.text;
}

TEST_P(Mpi, CarriesTheDataBetweenHosts) {
  const Ended ended = run_worker(2, std::string(kOwnHosts) + " HOROVOD_CPU_OPERATIONS=mpi", "job");

  EXPECT_EQ(ended.code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("rank 0 of 2, local 0 of 1, cross 0 of 2, MPI 1\n"));
  EXPECT_THAT(ended.text, HasSubstr("rank 1 of 2, local 0 of 1, cross 1 of 2, MPI 1\n"));
}

TEST_P(Mpi, KeepsSharedMemoryInsideAHost) {
  const Ended ended = run_worker(4, std::string(kTwoHosts) + " HOROVOD_CPU_OPERATIONS=mpi", "job");

  EXPECT_EQ(ended.code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("rank 3 of 4, local 1 of 2, cross 1 of 2, MPI 1\n"));
}

TEST_P(Mpi, TakesRanksOfUnevenHostsInAnyOrder) {
  const Ended ended =
      run_worker(3, "HOROVOD_HOSTNAME=host\\$((R % 2)) HOROVOD_CPU_OPERATIONS=mpi", "job");

  EXPECT_EQ(ended.code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("rank 2 of 3, local 1 of 2, cross 0 of 1, MPI 1\n"));
}

TEST_P(Mpi, BringsTheKeyOfOurOwnLink) {
  const Ended ended = run_worker(
      2, std::string(kOwnHosts) + " HOROVOD_CONTROLLER=mpi HOROVOD_CPU_OPERATIONS=native", "job");

  EXPECT_EQ(ended.code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("rank 1 of 2, local 0 of 1, cross 1 of 2, MPI 1\n"));
}

TEST_P(Mpi, IsNotLoadedForAJobOnOneHost) {
  const Ended ended = run_worker(2, "", "job");

  EXPECT_EQ(ended.code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("rank 1 of 2, local 1 of 2, cross 0 of 1, MPI -1\n"));
}

TEST_P(Mpi, SurvivesShutdownAndANewInit) {
  const Ended ended =
      run_worker(2, std::string(kOwnHosts) + " HOROVOD_CPU_OPERATIONS=mpi", "again");

  EXPECT_EQ(ended.code, 0) << ended.text;
}

TEST_P(Mpi, FormsAJobOfSomeRanks) {
  const Ended ended = run_worker(3, kOwnHosts, "ranks");

  EXPECT_EQ(ended.code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("rank 1 of 2, local 0 of 1, cross 1 of 2, MPI 1\n"));
  EXPECT_THAT(ended.text, HasSubstr("comm [2, 0] does not have this process, which is rank 1 of "
                                    "MPI_COMM_WORLD"));
}

TEST_P(Mpi, RefusesEncryptionThatItDoesNotHave) {
  const Ended ended =
      run_worker(2, std::string(kOwnHosts) + " HOROVOD_CPU_OPERATIONS=mpi HOROVOD_TLS=1", "job");

  EXPECT_NE(ended.code, 0);
  EXPECT_THAT(ended.text, HasSubstr("HOROVOD_TLS is set, but MPI carries the data"));
}

TEST_P(Mpi, AKeyOnSomeRanksOnlyIsAnError) {
  if (GetParam().name != "DebianOpenMpi") GTEST_SKIP() << "one library tells";
  const TemporaryDirectory folder;
  const std::string key = folder / "key";
  std::ofstream(key) << "this is the 32 byte key of a job";
  std::filesystem::permissions(key, std::filesystem::perms::owner_read);
  const Ended ended = run_worker(2,
                                 std::string(kOwnHosts) +
                                     " HOROVOD_CPU_OPERATIONS=mpi HOROVOD_GLOO_TIMEOUT_SECONDS=8 " +
                                     "HOROVOD_KEY_FILE=\\$(test \\$R = 1 && echo " + key + ")",
                                 "job");

  EXPECT_NE(ended.code, 0);
  EXPECT_THAT(ended.text, HasSubstr("rank 1 has a key from its environment"));
}

TEST_P(Mpi, PassesTheConformanceSuite) {
  const char* build = std::getenv("HVD_BUILD_DIR");
  ASSERT_NE(build, nullptr) << "the tests run by ctest";
  const std::string suite = std::string(build) + "/tests/conformance/hvd_conformance_tests";
  for (const int hosts : {2, 4}) {
    const Ended ended =
        run_under(GetParam(), 4, "HVD_TEST_MPI=1 HVD_TEST_HOSTS=" + std::to_string(hosts),
                  suite +
                      " --gtest_brief=1 "
                      "--gtest_filter=WorldSize/Operations.*/3:WorldSize/Numbers.*/2:LargeBlocks.*",
                  200);

    EXPECT_EQ(ended.code, 0) << hosts << " hosts\n" << ended.text;
    EXPECT_THAT(ended.text, Not(HasSubstr("FAILED"))) << hosts << " hosts";
  }
}

INSTANTIATE_TEST_SUITE_P(, Mpi, ::testing::ValuesIn(mpi_installations()),
                         [](const auto& one) { return one.param.name; });

TEST(MpiMissing, IsAnErrorThatSaysWhatWasLookedFor) {
  const Ended ended =
      run_shell("HOROVOD_CPU_OPERATIONS=mpi HOROVOD_MPI_LIBRARY=/nowhere/libmpi.so.40 /proc/" +
                std::to_string(getpid()) + "/exe worker job");

  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.text, HasSubstr("init: MPI is to be used (HOROVOD_CPU_OPERATIONS is mpi), but "
                                    "HOROVOD_MPI_LIBRARY: /nowhere/libmpi.so.40"));
}

// ---- what the ranks do

int fail(const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", what.c_str(), hvd_last_error());
  return 1;
}

template <typename T>
bool reduce_and_check(size_t count, hvd_dtype dtype) {
  std::vector<T> data(count, static_cast<T>(hvd_rank() + 1));
  const auto length = static_cast<int64_t>(count);
  const std::string name = "t" + std::to_string(dtype) + "." + std::to_string(count);
  hvd_request request;
  hvd_request_init(&request);
  request.kind = HVD_ALLREDUCE;
  request.dtype = dtype;
  request.reduce_op = HVD_OP_SUM;
  request.ndim = 1;
  request.shape = &length;
  request.input = request.output = data.data();
  request.name = name.c_str();
  hvd_handle handle = 0;
  if (hvd_submit(&request, &handle) != HVD_OK) return false;
  const hvd_status status = hvd_wait(handle, int64_t{60} * 1000 * 1000 * 1000);
  hvd_release(handle);
  const auto sum = static_cast<T>(hvd_size() * (hvd_size() + 1) / 2);
  return status == HVD_OK &&
         std::all_of(data.begin(), data.end(), [&](T value) { return value == sum; });
}

int run_job(const hvd_init_options* options) {
  if (hvd_init(options) != HVD_OK) return fail("init");
  std::printf("rank %d of %d, local %d of %d, cross %d of %d, MPI %d\n", hvd_rank(), hvd_size(),
              hvd_local_rank(), hvd_local_size(), hvd_cross_rank(), hvd_cross_size(),
              hvd_mpi_threads());
  std::fflush(stdout);
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (const size_t count : {size_t{1}, size_t{5000}, size_t{300000}, size_t{2000000}}) {
      if (!reduce_and_check<float>(count, HVD_FLOAT32) ||
          !reduce_and_check<int64_t>(count, HVD_INT64))
        return fail("allreduce of " + std::to_string(count));
    }
  }
  const int rank = hvd_rank();
  if (hvd_shutdown() != HVD_OK) return fail("shutdown");
  std::printf("rank %d is done\n", rank);
  std::fflush(stdout);
  return 0;
}

int run_twice() {
  const int first = run_job(nullptr);
  return first != 0 ? first : run_job(nullptr);
}

int run_some_ranks() {
  const int32_t ranks[] = {2, 0};
  hvd_init_options options;
  hvd_init_options_init(&options);
  options.mpi_ranks = ranks;
  options.mpi_rank_count = 2;
  if (hvd_init(&options) == HVD_OK) return run_job(&options);
  std::fprintf(stderr, "%s\n", hvd_last_error());
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank == nullptr) rank = std::getenv("PMI_RANK");
  return rank != nullptr && std::string_view(rank) == "1" ? 0 : 1;
}

// Everything of the library that the core uses.
Status use_library() {
  HVD_TRY_ASSIGN(const auto process, mpi::Process::start(process_environment()));
  mpi::Api& api = process->api();
  HVD_TRY_ASSIGN(const auto group,
                 mpi::Group::open(api, api.world(), Deadline::after(std::chrono::seconds(60))));
  const int me = group->rank();
  if (group->size() != 2 || !process->has_thread_multiple())
    return unknown_error(concat(api.name(), ": ", group->size(), " ranks"));
  const auto finish = [&](mpi::Request& request, mpi::Arrival* arrival) -> Status {
    for (;;) {
      HVD_TRY_ASSIGN(const bool is_done, api.test(request, arrival));
      if (is_done) return Status::ok();
    }
  };
  // A message, its source and its size.
  char text[8] = "";
  mpi::Request request{};
  if (me == 0) {
    HVD_TRY(api.send(group->comm(), std::as_bytes(std::span("hello")), 1, 7, request));
    HVD_TRY(finish(request, nullptr));
  } else {
    mpi::Arrival arrival;
    HVD_TRY(api.receive(group->comm(), std::as_writable_bytes(std::span(text)), mpi::kAnySource, 7,
                        request));
    HVD_TRY(finish(request, &arrival));
    if (arrival.source != 0 || arrival.bytes != 6 || std::strcmp(text, "hello") != 0)
      return unknown_error(concat("got ", arrival.bytes, " bytes of rank ", arrival.source));
  }
  // Every type with every operation, on 3 and 5.
  for (int t = 0; t < kDTypeCount; ++t) {
    const auto dtype = static_cast<DType>(t);
    for (const auto& [op, expected] :
         {std::pair(ReduceOp::kSum, 8), std::pair(ReduceOp::kMin, 3), std::pair(ReduceOp::kMax, 5),
          std::pair(ReduceOp::kProduct, 15)}) {
      if (!api.can_reduce(dtype, op)) continue;
      alignas(8) unsigned char value[8] = {}, wanted[8] = {};
      const auto set = [&](unsigned char* to, int number) {
        const float single = static_cast<float>(number);
        const double twice = number;
        const int64_t whole = number;
        if (dtype == DType::kFloat32)
          std::memcpy(to, &single, sizeof single);
        else if (dtype == DType::kFloat64)
          std::memcpy(to, &twice, sizeof twice);
        else
          std::memcpy(to, &whole, dtype_bytes(dtype));
      };
      set(value, me == 0 ? 3 : 5);
      set(wanted, expected);
      HVD_TRY(api.allreduce(group->comm(), value, value, 1, dtype, op, request));
      HVD_TRY(finish(request, nullptr));
      if (std::memcmp(value, wanted, sizeof value) != 0)
        return unknown_error(concat(reduce_op_name(op), " of ", dtype_name(dtype), " is wrong"));
    }
  }
  HVD_TRY_ASSIGN(const int largest, api.largest_tag(group->comm()));
  if (largest < 32767) return unknown_error(concat("largest tag ", largest));
  group->drain_until(Deadline::after(std::chrono::seconds(10)));
  return api.finalize();
}

int worker_main(const std::string& word) {
  if (word == "job") return run_job(nullptr);
  if (word == "again") return run_twice();
  if (word == "ranks") return run_some_ranks();
  const Status status = use_library();
  if (!status.is_ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.is_ok() ? 0 : 1;
}

}  // namespace
}  // namespace hvd::test

// Of all tests of MPI; mpirun starts the program again as a rank.
int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "worker") return hvd::test::worker_main(argv[2]);
  if (const auto code = hvd::testing::run_as_rank(argc, argv)) return *code;
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
