// How the built files are protected against mistakes in them: see cmake/CompilerOptions.cmake.
#include <gmock/gmock.h>

#include <string>

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

class Hardening : public testing::TestWithParam<const char*> {};

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

#ifdef NDEBUG
TEST_P(Hardening, ChecksItsStackAndItsBuffers) {
  const std::string needed =
      output_of(std::string("nm --dynamic --undefined-only --format=posix ") + GetParam());

  EXPECT_THAT(needed, HasSubstr("__stack_chk_fail"));
  EXPECT_THAT(needed, ContainsRegex("__(mem(cpy|move|set)|read|recv|snprintf|vsnprintf|poll|ppoll|"
                                    "str(ncpy|cpy|cat))_chk"));
}
#endif

INSTANTIATE_TEST_SUITE_P(Files, Hardening, testing::Values(HVD_LIBRARY, HVD_HOROVODRUN),
                         [](const auto& info) { return info.index == 0 ? "Library" : "Launcher"; });

}  // namespace
}  // namespace hvd::package
