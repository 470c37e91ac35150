// What the built files need from the system and show to it.
#include <gmock/gmock.h>

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "tests/package/support.h"

namespace hvd::package {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::Each;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> needed_libraries(const std::string& file) {
  const CommandResult readelf = run_command("readelf --dynamic --wide " + file);
  EXPECT_EQ(readelf.exit_code, 0) << readelf.output;
  static const std::regex needed_line(R"(\(NEEDED\).*\[(.*)\])");
  std::vector<std::string> libraries;
  for (const std::string& line : lines_of(readelf.output)) {
    std::smatch match;
    if (std::regex_search(line, match, needed_line)) libraries.push_back(match[1]);
  }
  return libraries;
}

std::vector<std::string> exported_symbols(const std::string& file) {
  const CommandResult nm = run_command("nm --dynamic --defined-only --format=posix " + file);
  EXPECT_EQ(nm.exit_code, 0) << nm.output;
  std::vector<std::string> symbols;
  for (const std::string& line : lines_of(nm.output))
    symbols.push_back(line.substr(0, line.find(' ')));
  return symbols;
}

// Every function that hvd.h marks as part of the interface.
std::vector<std::string> declared_functions() {
  const CommandResult grep =
      run_command("grep -oE '^HVD_API .*' " HVD_INCLUDE_DIR "/horovod/hvd.h");
  static const std::regex declaration(R"((hvd_\w+)\()");
  std::vector<std::string> functions;
  for (const std::string& line : lines_of(grep.output)) {
    std::smatch match;
    if (std::regex_search(line, match, declaration)) functions.push_back(match[1]);
  }
  return functions;
}

auto is_part_of_glibc() {
  return AnyOf("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1",
               StartsWith("ld-linux"));
}

TEST(LibraryFile, NeedsNothingButGlibc) {
  const std::vector<std::string> needed = needed_libraries(HVD_LIBRARY);

  EXPECT_THAT(needed, Contains("libc.so.6"));
  EXPECT_THAT(needed, Each(is_part_of_glibc()));
}

TEST(LibraryFile, ExportsOnlyItsOwnNames) {
  EXPECT_THAT(exported_symbols(HVD_LIBRARY), Each(StartsWith("hvd_")));
}

TEST(LibraryFile, ExportsEveryFunctionOfTheHeader) {
  const std::vector<std::string> exported = exported_symbols(HVD_LIBRARY);
  const std::vector<std::string> declared = declared_functions();

  ASSERT_THAT(declared, Not(IsEmpty()));
  for (const std::string& function : declared) EXPECT_THAT(exported, Contains(function));
}

// With its table of symbols, which packages leave out (a sixth of it).
TEST(LibraryFile, IsSmallerThanSixMegabytes) {
  EXPECT_LT(std::filesystem::file_size(HVD_LIBRARY), 6'000'000u);
}

TEST(LibraryFile, CarriesItsInterfaceVersionInItsName) {
  const CommandResult readelf = run_command("readelf --dynamic --wide " HVD_LIBRARY);

  EXPECT_THAT(readelf.output, testing::HasSubstr("[libhorovod.so.1]"));
}

#ifdef HVD_HOROVODRUN
TEST(LauncherFile, NeedsNothingButGlibc) {
  EXPECT_THAT(needed_libraries(HVD_HOROVODRUN), Each(is_part_of_glibc()));
}
#endif

}  // namespace
}  // namespace hvd::package
