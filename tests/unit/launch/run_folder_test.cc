#include "launch/link/run_folder.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/text.h"
#include "launch/link/agent_message.h"

namespace hvd::launch {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RunFolders : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = (fs::temp_directory_path() / "hvd-run-folder-XXXXXX").string();
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    place_ = path;
  }
  void TearDown() override { fs::remove_all(place_); }

  static void write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  static std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  fs::path place_;
};

TEST_F(RunFolders, TheFunctionLiesInAFolderForThisUserAloneUntilTheOwnerGoes) {
  std::string path;
  {
    const auto folder = RunFolder::create(place_, "the function");
    ASSERT_TRUE(folder) << folder.status().message();
    path = folder->path();

    EXPECT_EQ(read(path + "/function"), "the function");
    struct stat info {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    ASSERT_EQ(::stat((path + "/function").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(RunFolders, WhatRanksLeaveTravelsInPiecesAndAppearsAsAWhole) {
  const auto folder = RunFolder::create(place_, "f");
  ASSERT_TRUE(folder);
  const std::string large(1'000'000, 'r');
  write(folder->path() + "/result.3", large);
  write(folder->path() + "/failure.4", "");
  const fs::path home = place_ / "home";
  fs::create_directory(home);
  ReturnedFiles returned(home);

  for (const int32_t rank : {3, 4, 5}) {
    folder->read_files(rank, [&](const FilePiece& piece) {
      const std::string payload = encode(piece);
      const auto back = decode_file(payload);
      EXPECT_TRUE(back && returned.take(*back).is_ok());
      EXPECT_EQ(fs::exists(home / "result.3"), rank != 3 || piece.is_last);
      return true;
    });
  }

  EXPECT_EQ(read(home / "result.3"), large);
  EXPECT_TRUE(fs::exists(home / "failure.4"));
  EXPECT_EQ(std::distance(fs::directory_iterator(home), fs::directory_iterator()), 2);
}

TEST_F(RunFolders, AFileThatIsThereAlreadyIsNotWrittenOver) {
  write(place_ / "result.0.incoming", "somebody else's");
  ReturnedFiles returned(place_);

  const Status taken = returned.take({.rank = 0, .file = RunFile::kResult, .bytes = "x"});

  EXPECT_THAT(taken.message(), HasSubstr("result.0.incoming"));
  EXPECT_EQ(read(place_ / "result.0.incoming"), "somebody else's");
}

TEST_F(RunFolders, AFunctionThatIsTooLongOrMissingIsAnError) {
  EXPECT_THAT(read_function(place_).status().message(), HasSubstr("HOROVOD_RUN_FOLDER"));
  write(place_ / "function", "short");
  EXPECT_EQ(*read_function(place_), "short");
  fs::resize_file(place_ / "function", kMaxFrameBytes / 2 + 1);
  EXPECT_THAT(read_function(place_).status().message(), HasSubstr("HOROVOD_RUN_DIRECTORY"));
}

TEST(FilePieces, DamagedOnesAreRefused) {
  const std::string good = encode(FilePiece{.rank = 1, .bytes = "abc", .is_last = true});
  ASSERT_TRUE(decode_file(good));
  EXPECT_EQ(decode_file(good)->bytes, "abc");
  EXPECT_FALSE(decode_file(good.substr(0, 5)));
  for (const size_t place : {4, 5}) {
    std::string bad = good;
    bad[place] = 7;
    EXPECT_FALSE(decode_file(bad)) << place;
  }
}

}  // namespace
}  // namespace hvd::launch
