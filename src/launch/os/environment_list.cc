#include "launch/os/environment_list.h"

#include <algorithm>

#include "base/text.h"

namespace hvd::launch {
namespace {

bool defines(std::string_view entry, std::string_view name) {
  return entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name);
}

}  // namespace

std::optional<std::string> get_variable(const EnvironmentList& environment, std::string_view name) {
  for (const std::string& entry : environment) {
    if (defines(entry, name)) return entry.substr(name.size() + 1);
  }
  return std::nullopt;
}

void set_variable(EnvironmentList& environment, std::string_view name, std::string_view value) {
  // All of them: a list with the same name twice would show different values to different readers.
  std::erase_if(environment, [&](const std::string& entry) { return defines(entry, name); });
  environment.push_back(concat(name, "=", value));
}

std::vector<char*> exec_pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace hvd::launch
