// fake_environment.h - an Environment that is a table. Any thread.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "base/settings.h"

namespace hvd {

inline Environment fake_environment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

}  // namespace hvd
