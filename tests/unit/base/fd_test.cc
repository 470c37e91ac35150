#include "base/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <type_traits>
#include <utility>

namespace hvd {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }
UniqueFd open_null() { return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

TEST(UniqueFd, ClosesAtTheEndOfItsLife) {
  int number = -1;
  {
    const UniqueFd fd = open_null();
    number = fd.get();
    EXPECT_TRUE(is_open(number));
  }

  EXPECT_FALSE(is_open(number));
}

TEST(UniqueFd, HandsOverOnMove) {
  UniqueFd first = open_null();
  const int number = first.get();

  UniqueFd second = std::move(first);

  EXPECT_FALSE(first.valid());  // NOLINT: the state after a move is what is tested
  EXPECT_EQ(second.get(), number);
  EXPECT_TRUE(is_open(number));
}

TEST(UniqueFd, ClosesWhatAnAssignmentReplaces) {
  UniqueFd first = open_null();
  UniqueFd second = open_null();
  const int replaced = first.get();
  const int kept = second.get();

  first = std::move(second);

  EXPECT_FALSE(is_open(replaced));
  EXPECT_EQ(first.get(), kept);
  EXPECT_TRUE(is_open(kept));
}

TEST(UniqueFd, ReleaseGivesTheDescriptorAway) {
  UniqueFd fd = open_null();

  const int number = fd.release();

  EXPECT_FALSE(fd.valid());
  EXPECT_TRUE(is_open(number));
  ::close(number);
}

TEST(UniqueFd, HasOneOwner) {
  EXPECT_FALSE(std::is_copy_constructible_v<UniqueFd>);
  EXPECT_FALSE(UniqueFd().valid());
}

}  // namespace
}  // namespace hvd
