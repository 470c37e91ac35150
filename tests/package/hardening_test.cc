// How the built files are protected against mistakes in them: see cmake/CompilerOptions.cmake.
#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/package/support.h"

namespace hvd::package {
namespace {

using testing::AnyOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

std::string output_of(const std::string& command) {
  const CommandResult result = run_command(command);
  EXPECT_EQ(result.exit_code, 0) << command << "\n" << result.output;
  return result.output;
}

// The files that frameworks load.
std::vector<std::string> modules() {
  std::vector<std::string> files;
  std::istringstream all(HVD_MODULES);
  for (std::string file; std::getline(all, file, ':');) files.push_back(file);
  return files;
}

std::string test_name(const std::string& file) {
  std::string name = std::filesystem::path(file).stem().stem();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

class Hardening : public testing::TestWithParam<std::string> {};
class HardeningOfCalls : public Hardening {};

TEST_P(Hardening, TablesAreReadOnlyBeforeTheFirstCall) {
  EXPECT_THAT(output_of(std::string("readelf --segments --wide ") + GetParam()),
              HasSubstr("GNU_RELRO"));
  EXPECT_THAT(output_of(std::string("readelf --dynamic --wide ") + GetParam()),
              AnyOf(HasSubstr("BIND_NOW"), ContainsRegex("FLAGS_1.*NOW")));
}

TEST_P(Hardening, StackAndHeapAreNotExecutable) {
  const std::string segments = output_of(std::string("readelf --segments --wide ") + GetParam());

  EXPECT_THAT(segments, ContainsRegex("GNU_STACK .* RW +0x"));
  EXPECT_THAT(segments, Not(ContainsRegex("LOAD .* RWE ")));
}

TEST_P(Hardening, IsLoadedAtARandomAddress) {
  EXPECT_THAT(output_of(std::string("readelf --file-header --wide ") + GetParam()),
              ContainsRegex("Type: +DYN"));
}

#ifdef __OPTIMIZE__  // what checks buffers needs it
TEST_P(HardeningOfCalls, ChecksItsStackAndItsBuffers) {
  const std::string needed =
      output_of(std::string("nm --dynamic --undefined-only --format=posix ") + GetParam());

  EXPECT_THAT(needed, HasSubstr("__stack_chk_fail"));
  EXPECT_THAT(needed, ContainsRegex("__(mem(cpy|move|set)|read|recv|snprintf|vsnprintf|poll|ppoll|"
                                    "str(ncpy|cpy|cat))_chk"));
}
#endif

const auto kName = [](const auto& info) { return test_name(info.param); };
const auto kOurs = testing::Values(HVD_LIBRARY, HVD_HOROVODRUN);
INSTANTIATE_TEST_SUITE_P(Files, Hardening, kOurs, kName);
INSTANTIATE_TEST_SUITE_P(Modules, Hardening, testing::ValuesIn(modules()), kName);
#ifdef __OPTIMIZE__  // what checks buffers needs it
// Modules may have no call that can be checked.
INSTANTIATE_TEST_SUITE_P(Files, HardeningOfCalls, kOurs, kName);
#endif
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(HardeningOfCalls);

}  // namespace
}  // namespace hvd::package
