// environment_list.h - an environment as a value: "NAME=value" strings, as execve takes them.
// The launcher hands its own environment down as one of these, so that nothing below main reads
// globals. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hvd::launch {

using EnvironmentList = std::vector<std::string>;

std::optional<std::string> get_variable(const EnvironmentList& environment, std::string_view name);

// Replaces the variable, or adds it at the end.
void set_variable(EnvironmentList& environment, std::string_view name, std::string_view value);

// Null-terminated pointers into `strings`, which must outlive them.
std::vector<char*> exec_pointers(std::vector<std::string>& strings);

}  // namespace hvd::launch
