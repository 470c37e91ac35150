#include "mpi/take_leave.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace hvd::mpi {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::ExitedWithCode;

// The peers of a job of two as far as a leaving rank sees them: they come to the meeting after
// `looks` more looks, and MPI_Finalize takes `finalize_time`.
class LeavingApi final : public Api {
 public:
  int looks = 0;
  milliseconds finalize_time{0};
  bool breaks_at_meeting = false;
  int meetings = 0;
  int finalized = 0;
  steady_clock::time_point last_look, finalized_at;

  const std::string& name() const override { return name_; }
  void set_one_at_a_time() override {}
  bool is_initialized() override { return true; }
  bool is_finalized() override { return finalized > 0; }
  Result<ThreadLevel> init(ThreadLevel wanted) override { return wanted; }
  Result<ThreadLevel> thread_level() override { return ThreadLevel::kMultiple; }
  Status finalize() override {
    finalized_at = steady_clock::now();
    std::this_thread::sleep_for(finalize_time);
    ++finalized;
    return Status::ok();
  }
  Comm world() override { return Comm{1}; }
  Comm comm_at(const void*) override { return Comm{1}; }
  Status duplicate(Comm, Comm* out, Request&) override {
    *out = Comm{2};
    return Status::ok();
  }
  Status return_errors(Comm) override { return Status::ok(); }
  Result<Comm> subset(Comm comm, std::span<const int>) override { return comm; }
  Result<int> rank(Comm) override { return 0; }
  Result<int> size(Comm) override { return 2; }
  Result<int> largest_tag(Comm) override { return 1 << 20; }
  Status send(Comm, std::span<const std::byte>, int, int, Request&) override {
    return Status::ok();
  }
  Status receive(Comm, std::span<std::byte>, int, int, Request&) override { return Status::ok(); }
  Result<std::optional<Arrival>> probe(Comm, int) override { return std::optional<Arrival>(); }
  Result<bool> test(Request&, Arrival*) override {
    last_look = steady_clock::now();
    if (meetings == 0) return true;
    if (breaks_at_meeting) return corrupted("the peer is gone");
    return looks-- <= 0;
  }
  Status cancel(Request&) override { return Status::ok(); }
  bool can_reduce(DType, ReduceOp) const override { return true; }
  Status allreduce(Comm, const void*, void*, size_t, DType, ReduceOp, Request&) override {
    ++meetings;
    return Status::ok();
  }

 private:
  const std::string name_ = "an MPI (libmpi.so)";
};

class TakeLeave : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = Group::open(api_, Comm{1}, Deadline::after(std::chrono::seconds(10)));
    ASSERT_TRUE(opened) << opened.status().message();
    group_ = *std::move(opened);
  }
  void leave(const LeaveTimes& times) {
    Group* const groups[] = {group_.get()};
    take_leave(api_, groups, 7, times);
  }

  LeavingApi api_;
  std::unique_ptr<Group> group_;
};

TEST_F(TakeLeave, WaitsForPeersThatComeLate) {
  api_.looks = 200;  // longer than it drains
  leave({.drain = milliseconds(5)});
  EXPECT_EQ(api_.looks, -1);
  EXPECT_EQ(api_.finalized, 1);
}

TEST_F(TakeLeave, LooksAwayForAWhileBeforeItFinalizes) {
  leave({.settle = milliseconds(30)});
  EXPECT_EQ(api_.meetings, 1);
  EXPECT_GE(api_.finalized_at - api_.last_look, milliseconds(30));
}

TEST_F(TakeLeave, LeavesFinalizingOutIfAPeerIsGone) {
  api_.breaks_at_meeting = true;
  leave({});
  EXPECT_EQ(api_.finalized, 0);
}

TEST_F(TakeLeave, EndsTheProcessWithItsStatusIfFinalizeHangs) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  api_.finalize_time = std::chrono::minutes(10);
  EXPECT_EXIT(leave({.finalize = milliseconds(100)}), ExitedWithCode(7),
              "MPI_Finalize of an MPI \\(libmpi.so\\) has not returned for 0.1 s");
}

}  // namespace
}  // namespace hvd::mpi
