// The public headers compile in the languages they promise, and programs link with the library
// alone.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/package/support.h"

namespace hvd::package {
namespace {

constexpr const char* kStrict = " -Wall -Wextra -Werror -pedantic -I" HVD_INCLUDE_DIR " ";

void expect_compiles(const std::string& compiler, const std::string& include) {
  const ScratchFolder folder;
  const std::string source = folder.write("probe.txt", "#include <" + include + ">\n");

  const CommandResult result = run_command(compiler + kStrict + "-fsyntax-only " + source);

  EXPECT_EQ(result.exit_code, 0) << compiler << '\n' << result.output;
}

TEST(PublicHeaders, TheCHeaderCompilesAsC11) {
  expect_compiles(HVD_CC " -std=c11 -x c", "horovod/hvd.h");
}

TEST(PublicHeaders, TheCHeaderCompilesAsCpp17) {
  expect_compiles(HVD_CXX " -std=c++17 -x c++", "horovod/hvd.h");
}

TEST(PublicHeaders, TheCppHeaderCompilesAsCpp17AndCpp20) {
  for (const char* standard : {"c++17", "c++20"}) {
    SCOPED_TRACE(standard);
    expect_compiles(HVD_CXX " -x c++ -std=" + std::string(standard), "horovod/hvd.hpp");
  }
}

std::string library_folder() { return std::filesystem::path(HVD_LIBRARY).parent_path().string(); }

void expect_links_and_runs(const std::string& compiler, const std::string& name,
                           const std::string& text) {
  const ScratchFolder folder;
  const std::string source = folder.write(name, text);
  const std::string program = folder.path("program");

  const CommandResult build =
      run_command(compiler + kStrict + source + " -o " + program + " -L" + library_folder() +
                  " -lhorovod -Wl,-rpath," + library_folder());
  ASSERT_EQ(build.exit_code, 0) << build.output;
  const CommandResult run = run_command("env -u HOROVOD_SIZE -u HOROVOD_RANK " + program);

  EXPECT_EQ(run.exit_code, 0) << run.output;
}

TEST(Programs, InCLinkWithTheLibraryAndReduceAtSizeOne) {
  expect_links_and_runs(HVD_CC " -std=c11", "program.c", R"(
#include <horovod/hvd.h>
#include <stdio.h>
int main(void) {
  float value = 3.0f;
  const int64_t shape[1] = {1};
  hvd_request request;
  if (hvd_init(NULL) != HVD_OK) return puts(hvd_last_error()), 1;
  hvd_request_init(&request);
  request.kind = HVD_ALLREDUCE;
  request.dtype = HVD_FLOAT32;
  request.reduce_op = HVD_OP_SUM;
  request.ndim = 1;
  request.shape = shape;
  request.input = &value;
  request.output = &value;
  request.name = "value";
  if (hvd_run(&request, HVD_FOREVER) != HVD_OK) return puts(hvd_last_error()), 1;
  if (hvd_shutdown() != HVD_OK) return puts(hvd_last_error()), 1;
  return value == 3.0f ? 0 : 2;
}
)");
}

TEST(Programs, TheExampleOfTheReadmeLinksAndRuns) {
  std::ifstream file(HVD_README);
  const std::string readme((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
  const size_t begin = readme.find("```cpp\n");
  ASSERT_NE(begin, std::string::npos);
  const size_t first = begin + 7;

  const std::string example = readme.substr(first, readme.find("```", first) - first);

  expect_links_and_runs(HVD_CXX " -std=c++17", "program.cc", example);
}

}  // namespace
}  // namespace hvd::package
