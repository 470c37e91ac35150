// variables.h - reading ranks, sizes and names from the environment. An error names the variable;
// an empty or blank value counts as unset. Pure; any thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "base/settings.h"
#include "base/status.h"

namespace hvd::topology {

// A rank with the size it counts in, and the variables they came from, for messages.
struct Position {
  int32_t rank = 0, size = 1;
  std::string rank_variable{}, size_variable{};
};

std::optional<std::string> text_variable(const Environment& environment, const char* name);
Result<std::optional<int32_t>> integer_variable(const Environment& environment, const char* name,
                                                int32_t least);
// Both variables or none: a rank without its size means that something was lost on the way.
Result<std::optional<Position>> position_variables(const Environment& environment,
                                                   const char* rank_name, const char* size_name);
// "<prefix>-<value>-<value>" of the variables that are set; empty when none is.
std::string name_from_variables(const Environment& environment, const char* prefix,
                                std::initializer_list<const char*> names);

}  // namespace hvd::topology
