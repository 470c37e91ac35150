#include "base/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <memory>
#include <sstream>
#include <string>

#include "horovod/hvd.h"
#include "tests/unit/base/source_tree.h"

namespace hvd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct CodeRow {
  StatusCode code;
  hvd_status public_code;
  int value;
  const char* public_name;
  const char* text;
};

constexpr CodeRow kCodes[] = {
#define HVD_STATUS_CODE(name, c_name, value, text) \
  {StatusCode::k##name, HVD_##c_name, value, "HVD_" #c_name, text},
#include "base/status_codes.def"
#undef HVD_STATUS_CODE
};

TEST(StatusCodes, EqualTheCodesOfThePublicHeader) {
  for (const CodeRow& row : kCodes) {
    EXPECT_EQ(static_cast<int>(row.code), row.value) << row.public_name;
    EXPECT_EQ(static_cast<int>(row.public_code), row.value) << row.public_name;
  }
}

TEST(StatusCodes, LastIsTheHighest) {
  for (const CodeRow& row : kCodes) EXPECT_LE(row.code, kLastStatusCode) << row.public_name;
}

// The table cannot list a code that only the header has, so this reads the header's text.
TEST(StatusCodes, CoverAllOfThePublicHeader) {
  const std::string header = read_source("include/horovod/hvd.h");
  const size_t begin = header.find("typedef enum hvd_status {");
  const std::string body = header.substr(begin, header.find('}', begin) - begin);
  std::map<std::string, int> expected;
  for (const CodeRow& row : kCodes) expected[row.public_name] = row.value;

  std::map<std::string, int> found;
  std::istringstream words(body);
  for (std::string name, equals; words >> name;) {
    if (name.starts_with("HVD_")) words >> equals >> found[name];
  }

  EXPECT_EQ(found, expected);
}

TEST(StatusCodes, HaveTexts) {
  for (const CodeRow& row : kCodes) EXPECT_STREQ(status_code_text(row.code), row.text);
  EXPECT_STREQ(status_code_text(static_cast<StatusCode>(999)), "unknown status code");
}

TEST(Status, IsOkByDefault) {
  const Status status;

  EXPECT_TRUE(status.is_ok());
  EXPECT_EQ(status.code(), StatusCode::kOk);
  EXPECT_EQ(status, Status::ok());
}

TEST(Status, KeepsCodeAndMessage) {
  const Status status = invalid_argument("rank: expected 0 to 3, got 7");

  EXPECT_FALSE(status.is_ok());
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "rank: expected 0 to 3, got 7");
  EXPECT_NE(status, invalid_argument("another"));
}

TEST(Status, OfErrnoSaysWhatFailedAndWhy) {
  const Status status = errno_status("cannot open '/x'", ENOENT);

  EXPECT_EQ(status.message(), "cannot open '/x': No such file or directory");
  EXPECT_EQ(status.code(), StatusCode::kUnknownError);
  EXPECT_EQ(errno_status("map", ENOMEM).code(), StatusCode::kOutOfMemory);
}

Result<int> half_of(int value) {
  if (value % 2 != 0) return invalid_argument("odd");
  return value / 2;
}

Result<int> quarter_of(int value) {
  HVD_TRY_ASSIGN(const int half, half_of(value));
  HVD_TRY_ASSIGN(const int quarter, half_of(half));
  return quarter;
}

Status check_even(int value) {
  HVD_TRY(half_of(value).status());
  return Status::ok();
}

TEST(Result, HoldsAValueOrAFailure) {
  EXPECT_TRUE(half_of(4).is_ok());
  EXPECT_EQ(*half_of(4), 2);
  EXPECT_EQ(half_of(3).status(), invalid_argument("odd"));
}

TEST(Result, TryMacrosReturnTheFirstFailure) {
  EXPECT_EQ(*quarter_of(8), 2);
  EXPECT_EQ(quarter_of(6).status().message(), "odd");
  EXPECT_TRUE(check_even(2).is_ok());
  EXPECT_FALSE(check_even(3).is_ok());
}

TEST(Result, MovesWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(5));

  const std::unique_ptr<int> value = *std::move(result);

  EXPECT_EQ(*value, 5);
}

TEST(AssertDeathTest, StopsTheProcessAndSaysWhy) {
  EXPECT_DEATH(HVD_ASSERT(1 == 2, "numbers differ"),
               AllOf(StartsWith("horovod: assertion failed: 1 == 2"), HasSubstr("numbers differ")));
}

}  // namespace
}  // namespace hvd
