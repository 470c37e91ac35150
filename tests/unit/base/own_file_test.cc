#include "base/own_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/text.h"

namespace hvd {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

// A folder of this test, which everybody may write to if asked for.
class OwnFile : public ::testing::Test {
 protected:
  OwnFile() {
    std::string name = concat(::testing::TempDir(), "/hvd-own-file-XXXXXX");
    folder_ = ::mkdtemp(name.data());
  }
  ~OwnFile() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ / name; }
  void share() const { ASSERT_EQ(::chmod(folder_.c_str(), 01777), 0); }
  void write(const std::string& name) const { std::ofstream(path(name)) << "old words"; }
  std::string content(const std::string& name) const {
    std::ostringstream out;
    out << std::ifstream(path(name)).rdbuf();
    return out.str();
  }
  void give_away(const std::string& name) const {
    ASSERT_EQ(::lchown(path(name).c_str(), 65534, 65534), 0);
  }

  fs::path folder_;
};

TEST_F(OwnFile, IsMadeOrEmptied) {
  write("there");

  EXPECT_TRUE(create_own_file(path("new"), 0644));
  EXPECT_TRUE(create_own_file(path("there"), 0644));

  EXPECT_EQ(content("new"), "");
  EXPECT_EQ(content("there"), "");
}

TEST_F(OwnFile, KeepsWhatItHoldsWhereMoreIsAppended) {
  write("there");

  const auto file = append_to_own_file(path("there"), 0644);

  ASSERT_TRUE(file);
  ASSERT_EQ(::write(file->get(), ", new", 5), 5);
  EXPECT_EQ(content("there"), "old words, new");
  EXPECT_TRUE(append_to_own_file(path("new"), 0644));
}

TEST_F(OwnFile, IsNotWrittenThroughALink) {
  write("target");
  fs::create_symlink(path("target"), path("link"));

  const auto file = create_own_file(path("link"), 0644);

  EXPECT_THAT(file.status().message(), HasSubstr("symbolic link"));
  EXPECT_EQ(content("target"), "old words");
}

TEST_F(OwnFile, OfAnotherUserIsNotUsedInASharedFolder) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  share();
  write("trap");
  give_away("trap");

  const auto file = create_own_file(path("trap"), 0644);

  EXPECT_EQ(file.status().code(), StatusCode::kPreconditionError);
  EXPECT_THAT(file.status().message(), HasSubstr("belongs to user 65534"));
  EXPECT_EQ(content("trap"), "old words");
}

TEST_F(OwnFile, OfAnotherUserIsFineInAFolderThatOthersMayNotWriteTo) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  write("squashed");  // as NFS shows files of root
  give_away("squashed");

  EXPECT_TRUE(create_own_file(path("squashed"), 0644));
}

TEST_F(OwnFile, WithASecondNameIsNotUsedInASharedFolder) {
  share();
  write("precious");
  fs::create_hard_link(path("precious"), path("trap"));

  EXPECT_FALSE(create_own_file(path("trap"), 0644));
  EXPECT_EQ(content("precious"), "old words");
}

TEST_F(OwnFile, FoldersOfOthersAreNotUsedInASharedFolder) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  share();
  EXPECT_TRUE(make_own_folders(path("mine/rank.0"), 0777));
  EXPECT_TRUE(make_own_folders(path("mine/rank.0"), 0777)) << "they may be there";
  fs::create_directory(path("theirs"));
  give_away("theirs");

  const Status made = make_own_folders(path("theirs/rank.0"), 0777);

  EXPECT_THAT(made.message(), HasSubstr("theirs"));
  EXPECT_THAT(made.message(), HasSubstr("belongs to user 65534"));
  EXPECT_FALSE(fs::exists(path("theirs/rank.0")));
}

}  // namespace
}  // namespace hvd
