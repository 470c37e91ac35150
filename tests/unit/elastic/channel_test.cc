// The worker's end of an elastic job, against a launcher that is the other end of a socket pair.
#include "elastic/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <thread>
#include <utility>

#include "base/text.h"
#include "elastic/leave_signal.h"

namespace hvd::elastic {
namespace {

using ::testing::HasSubstr;

class ElasticChannel : public ::testing::Test {
 protected:
  ElasticChannel() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) std::abort();
    launcher_ = UniqueFd(ends[0]);
    channel_ = std::make_unique<Channel>(UniqueFd(ends[1]));
  }

  void say(const ToWorker& message) const {
    const std::string bytes = encode(message);
    ASSERT_EQ(::send(launcher_.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  }
  ToLauncher hear() const {
    std::array<char, kMaxMessageBytes> buffer{};
    const ssize_t count = ::recv(launcher_.get(), buffer.data(), buffer.size(), 0);
    return *decode_to_launcher({buffer.data(), static_cast<size_t>(count)});
  }

  UniqueFd launcher_;
  std::unique_ptr<Channel> channel_;
};

TEST_F(ElasticChannel, WaitsForItsPlaceUntilTheLauncherSaysIt) {
  std::jthread launcher([this] {
    EXPECT_EQ(hear(), ToLauncher(Ready{.epoch = 3, .why = "it broke"}));
    say(Assign{.epoch = 3});  // the world that it comes from
    say(News{.timestamp_ns = 1, .changes = 1});
    say(Assign{.epoch = 4, .rank = 1, .size = 2});
  });

  const auto place = channel_->await_assignment(3, "it broke");

  ASSERT_TRUE(place.is_ok()) << place.status().message();
  EXPECT_EQ(place->rank, 1);
}

TEST_F(ElasticChannel, ALauncherThatGoesEndsTheWait) {
  std::jthread launcher([this] {
    hear();
    launcher_.reset();
  });

  const auto place = channel_->await_assignment(0, "");

  EXPECT_EQ(place.status().code(), StatusCode::kShutDown);
}

TEST_F(ElasticChannel, ANewcomerThatIsAskedToLeaveGoesAtOnceAndSaysSo) {
  say(Leave{});

  const auto place = channel_->await_assignment(0, "");

  EXPECT_EQ(place.status().code(), StatusCode::kRemoved);
  EXPECT_THAT(place.status().message(), HasSubstr("asked to leave"));
  EXPECT_EQ(hear(), ToLauncher(Ready{}));
  EXPECT_EQ(hear(), ToLauncher(Report{.kind = kReportLeaving}));
}

TEST_F(ElasticChannel, WhoHasBeenInAWorldLeavesFromTheNextOne) {
  say(Leave{});
  say(Assign{.epoch = 2});

  EXPECT_TRUE(channel_->await_assignment(1, "it broke").is_ok());
  EXPECT_TRUE(channel_->is_asked_to_leave());
}

TEST_F(ElasticChannel, ThreadsMayLookWhileOneWaits) {
  constexpr uint64_t kWorlds = 10;
  std::jthread looker([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      channel_->look();
      EXPECT_FALSE(channel_->is_asked_to_leave());
    }
  });
  std::jthread launcher([this] {
    for (uint64_t epoch = 0; epoch < kWorlds; ++epoch) {
      EXPECT_EQ(hear(), ToLauncher(Ready{.epoch = epoch}));
      say(News{.timestamp_ns = 1, .changes = 2});
      say(Assign{.epoch = epoch + 1});
    }
  });

  for (uint64_t epoch = 0; epoch < kWorlds; ++epoch) {
    const auto place = channel_->await_assignment(epoch, "");
    EXPECT_TRUE(place.is_ok() && place->epoch == epoch + 1) << epoch;
  }
}

// In a process of its own, since signals are the process's.
TEST_F(ElasticChannel, SigtermEndsTheWaitOfANewcomer) {
  const pid_t worker = ::fork();
  if (worker == 0) {
    Channel channel(UniqueFd(::dup(channel_->interrupt_for(1).fd)));
    take_leave_signal(0);
    const auto place = channel.await_assignment(0, "");
    ::_exit(place.status().code() == StatusCode::kRemoved ? 17 : 1);
  }
  EXPECT_EQ(hear(), ToLauncher(Ready{}));  // it may not wait yet, which makes no difference

  ::kill(worker, SIGTERM);

  EXPECT_EQ(hear(), ToLauncher(Report{.kind = kReportLeaving}));
  int status = 0;
  ::waitpid(worker, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 17);
}

TEST_F(ElasticChannel, SigtermEndsAChildOfAWorker) {
  const pid_t worker = ::fork();
  if (worker == 0) {
    take_leave_signal(0);
    const pid_t loader = ::fork();
    if (loader == 0) {
      ::raise(SIGTERM);
      ::_exit(1);
    }
    int status = 0;
    ::waitpid(loader, &status, 0);
    ::_exit(WIFSIGNALED(status) && !has_leave_signal_come() ? 17 : 1);
  }
  int status = 0;
  ::waitpid(worker, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 17);
}

}  // namespace
}  // namespace hvd::elastic
