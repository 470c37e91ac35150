#include "launch/os/command_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace hvd::launch {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Two directories, as in PATH, below a fresh one.
class CommandPathTest : public ::testing::Test {
 protected:
  CommandPathTest() {
    std::string pattern = (fs::temp_directory_path() / "hvd_command_path_XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    fs::create_directories(root_ / "first");
    fs::create_directories(root_ / "second");
  }
  ~CommandPathTest() override { fs::remove_all(root_); }

  std::string add_file(const char* name, fs::perms permissions) {
    const fs::path path = root_ / name;
    std::ofstream(path) << "#!/bin/sh\n";
    fs::permissions(path, permissions);
    return path.string();
  }
  std::string search_path() const {
    return (root_ / "first").string() + ":" + (root_ / "second").string();
  }

  fs::path root_;
};

TEST_F(CommandPathTest, TakesTheFirstThatCanBeExecuted) {
  add_file("first/tool", fs::perms::owner_read);
  const std::string good = add_file("second/tool", fs::perms::owner_all);

  EXPECT_EQ(find_command("tool", search_path()).path, good);
  EXPECT_EQ(find_command(good, "").path, good);
}

TEST_F(CommandPathTest, SaysThatAFileCannotBeExecuted) {
  const std::string plain = add_file("first/tool", fs::perms::owner_read);

  for (const std::string& name : {std::string("tool"), plain}) {
    const CommandPath found = find_command(name, search_path());
    EXPECT_EQ(found.problem, CommandProblem::kNotExecutable);
    EXPECT_THAT(found.reason, HasSubstr(plain + "': Permission denied"));
  }
  EXPECT_THAT(find_command((root_ / "first").string(), "").reason, HasSubstr("Is a directory"));
}

TEST_F(CommandPathTest, SaysWhereItLooked) {
  const CommandPath found = find_command("no-such-tool", search_path());

  EXPECT_EQ(found.problem, CommandProblem::kNotFound);
  EXPECT_THAT(found.reason,
              HasSubstr("command 'no-such-tool' not found in PATH (" + search_path() + ")"));
  EXPECT_EQ(find_command("./no-such-tool", search_path()).problem, CommandProblem::kNotFound);
}

}  // namespace
}  // namespace hvd::launch
