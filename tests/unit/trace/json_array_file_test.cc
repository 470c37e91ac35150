#include "trace/json_array_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <string>

#include "tests/unit/trace/temporary_file.h"

namespace hvd::trace {
namespace {

using ::testing::HasSubstr;

TEST(JsonArrayFile, IsAnArrayAfterEveryAppend) {
  const TemporaryDirectory directory;
  auto file = JsonArrayFile::create(directory.file("t.json"));
  ASSERT_TRUE(file.is_ok());
  EXPECT_EQ(read_file(file->path()), "[\n\n]");

  ASSERT_TRUE(file->append("1").is_ok());
  EXPECT_EQ(read_file(file->path()), "[\n1\n]");

  ASSERT_TRUE(file->append(",\n2,\n3").is_ok());
  EXPECT_EQ(read_file(file->path()), "[\n1,\n2,\n3\n]");

  ASSERT_TRUE(file->append("").is_ok());
  EXPECT_EQ(read_file(file->path()), "[\n1,\n2,\n3\n]");
}

TEST(JsonArrayFile, ReplacesAnOlderFile) {
  const TemporaryDirectory directory;
  std::ofstream(directory.file("t.json")) << std::string(1000, 'x');

  const auto file = JsonArrayFile::create(directory.file("t.json"));

  ASSERT_TRUE(file.is_ok());
  EXPECT_EQ(read_file(directory.file("t.json")), "[\n\n]");
}

TEST(JsonArrayFile, SaysWhichPathCannotBeOpenedAndWhy) {
  EXPECT_EQ(JsonArrayFile::create("/no/such/folder/t.json").status().message(),
            "cannot open timeline file '/no/such/folder/t.json': No such file or directory");
  EXPECT_THAT(JsonArrayFile::create("/tmp").status().message(), HasSubstr("Is a directory"));
}

TEST(JsonArrayFile, SaysWhenTheDiskIsFull) {
  EXPECT_EQ(JsonArrayFile::create("/dev/full").status().message(),
            "cannot write timeline file '/dev/full': No space left on device");
}

TEST(JsonArrayFile, RefusesAPipeInsteadOfHanging) {
  const TemporaryDirectory directory;
  ASSERT_EQ(::mkfifo(directory.file("pipe").c_str(), 0600), 0);

  EXPECT_FALSE(JsonArrayFile::create(directory.file("pipe")).is_ok());
}

// Lets files grow to `bytes` only.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, SIG_DFL);
  }

 private:
  rlimit before_{};
};

TEST(JsonArrayFile, StaysValidWhenAnAppendFailsHalfWay) {
  const TemporaryDirectory directory;
  auto file = JsonArrayFile::create(directory.file("t.json"));
  ASSERT_TRUE(file.is_ok());
  ASSERT_TRUE(file->append("1").is_ok());

  Status status;
  {
    const FileSizeLimit limit(100);
    status = file->append(",\n\"" + std::string(1000, 'x') + "\"");
  }

  EXPECT_THAT(status.message(), HasSubstr("File too large"));
  EXPECT_EQ(read_file(file->path()), "[\n1\n]");
}

}  // namespace
}  // namespace hvd::trace
