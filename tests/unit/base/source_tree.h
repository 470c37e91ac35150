// source_tree.h - files of the source tree, for tests that compare code with text.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/settings.h"

namespace hvd {

inline std::filesystem::path source_path(const std::string& relative) {
  const auto root = process_environment()("HVD_SOURCE_DIR");  // set by ctest
  if (root) return std::filesystem::path(*root) / relative;
  return std::filesystem::path(__FILE__).parent_path() / "../../.." / relative;
}

inline std::string read_source(const std::string& relative) {
  std::ifstream file(source_path(relative));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace hvd
