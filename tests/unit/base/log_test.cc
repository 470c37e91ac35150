#include "base/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace hvd {
namespace {

using ::testing::IsEmpty;
using ::testing::MatchesRegex;

// Each test captures both streams and starts from known options.
class LogTest : public ::testing::Test {
 protected:
  LogTest() {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
  }
  ~LogTest() override {
    set_log_options({});
    if (!taken_) take();
  }
  void take() {
    out_ = ::testing::internal::GetCapturedStdout();
    err_ = ::testing::internal::GetCapturedStderr();
    taken_ = true;
  }

  std::string out_, err_;

 private:
  bool taken_ = false;
};

TEST_F(LogTest, LineHasTimeLevelPlaceRankAndText) {
  set_log_options({.level = LogLevel::kWarning, .rank = 3});

  write_log(LogLevel::kWarning, "/long/path/stall.cc", 17, "rank 2 is late");
  take();

  EXPECT_THAT(err_,
              MatchesRegex("\\[[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6}: "
                           "W stall\\.cc:17\\] \\[3\\]: rank 2 is late\n"));
}

TEST_F(LogTest, LineHasNoTimeWhenHidden) {
  set_log_options({.level = LogLevel::kWarning, .hide_time = true, .rank = 0});

  write_log(LogLevel::kError, "a.cc", 1, "text");
  take();

  EXPECT_EQ(err_, "[E a.cc:1] [0]: text\n");
}

TEST_F(LogTest, LineHasNoRankBeforeItIsKnown) {
  set_log_options({.hide_time = true});

  write_log(LogLevel::kError, "a.cc", 1, "text");
  take();

  EXPECT_EQ(err_, "[E a.cc:1] text\n");
}

TEST_F(LogTest, LevelsBelowWarningGoToStdoutTheOthersToStderr) {
  set_log_options({.level = LogLevel::kTrace, .hide_time = true});

  for (const LogLevel level : {LogLevel::kTrace, LogLevel::kDebug, LogLevel::kInfo,
                               LogLevel::kWarning, LogLevel::kError, LogLevel::kFatal}) {
    write_log(level, "a.cc", 1, "x");
  }
  take();

  EXPECT_EQ(out_, "[T a.cc:1] x\n[D a.cc:1] x\n[I a.cc:1] x\n");
  EXPECT_EQ(err_, "[W a.cc:1] x\n[E a.cc:1] x\n[F a.cc:1] x\n");
}

std::string count_call(int& calls) {
  ++calls;
  return "text";
}

TEST_F(LogTest, MacroFormatsOnlyWhatIsLogged) {
  set_log_options({.level = LogLevel::kError, .hide_time = true});
  int calls = 0;

  HVD_LOG(kWarning, count_call(calls));
  EXPECT_EQ(calls, 0);

  const int line = __LINE__ + 1;
  HVD_LOG(kError, count_call(calls), " and ", 5);
  take();

  EXPECT_EQ(calls, 1);
  EXPECT_THAT(out_, IsEmpty());
  EXPECT_EQ(err_, concat("[E log_test.cc:", line, "] text and 5\n"));
}

TEST_F(LogTest, DefaultLevelIsWarning) {
  set_log_options({});

  EXPECT_FALSE(log_enabled(LogLevel::kInfo));
  EXPECT_TRUE(log_enabled(LogLevel::kWarning));
  EXPECT_TRUE(log_enabled(LogLevel::kFatal));
}

TEST_F(LogTest, TimeIsLocal) {
  const std::time_t before = std::time(nullptr);
  write_log(LogLevel::kError, "a.cc", 1, "x");
  const std::time_t after = std::time(nullptr);
  take();

  std::tm parsed{};
  ASSERT_NE(::strptime(err_.c_str() + 1, "%Y-%m-%d %H:%M:%S", &parsed), nullptr);
  parsed.tm_isdst = -1;
  const std::time_t logged = std::mktime(&parsed);
  EXPECT_GE(logged, before);
  EXPECT_LE(logged, after);
}

TEST_F(LogTest, LeavesErrnoAlone) {
  errno = EAGAIN;

  write_log(LogLevel::kError, "a.cc", 1, "x");

  EXPECT_EQ(errno, EAGAIN);
}

// Under O_APPEND lines from several writers stay whole only if each is a single write.
TEST_F(LogTest, LinesOfSeveralThreadsStayWhole) {
  constexpr int kThreads = 4, kLines = 200;
  set_log_options({.level = LogLevel::kTrace, .hide_time = true});
  std::set<std::string> expected;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      for (int i = 0; i < kLines; ++i) {
        expected.insert(concat("[I a.cc:", i, "] ", std::string(100, static_cast<char>('a' + t))));
      }
      threads.emplace_back([t] {
        for (int i = 0; i < kLines; ++i) {
          write_log(LogLevel::kInfo, "a.cc", i, std::string(100, static_cast<char>('a' + t)));
          set_log_options({.level = LogLevel::kTrace, .hide_time = true});
        }
      });
    }
  }
  take();

  std::set<std::string> lines;
  std::istringstream text(out_);
  for (std::string line; std::getline(text, line);) lines.insert(line);
  EXPECT_EQ(lines, expected);
}

TEST_F(LogTest, OptionsChangeAsAWhole) {
  set_log_options({.level = LogLevel::kTrace, .hide_time = true, .rank = 1});
  {
    std::jthread changer([](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        set_log_options({.level = LogLevel::kTrace, .hide_time = true, .rank = 1});
        set_log_options({.level = LogLevel::kTrace, .hide_time = false, .rank = 2});
      }
    });
    for (int i = 0; i < 500; ++i) write_log(LogLevel::kInfo, "a.cc", 1, "x");
  }
  take();

  std::istringstream text(out_);
  for (std::string line; std::getline(text, line);) {
    const bool hidden = line.starts_with("[I ");
    EXPECT_EQ(line.ends_with(hidden ? "] [1]: x" : "] [2]: x"), true) << line;
  }
}

}  // namespace
}  // namespace hvd
