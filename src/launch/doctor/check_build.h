// check_build.h - the table of --check-build. Asks the Python interpreter on PATH which frameworks
// it has, without importing them. One thread; bounded in time.
#pragma once

#include <string>
#include <vector>

#include "launch/os/environment_list.h"

namespace hvd::launch {

struct BuildItem {
  std::string name;
  bool is_available;
};

struct BuildFacts {
  std::vector<BuildItem> frameworks;
  std::vector<BuildItem> controllers;
  std::vector<BuildItem> operations;
  std::vector<std::string> notes;  // how that was found out, for --verbose
};

BuildFacts find_build_facts(const EnvironmentList& environment);

// Pure.
std::string check_build_text(const BuildFacts& facts);

}  // namespace hvd::launch
