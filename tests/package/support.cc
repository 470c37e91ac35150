#include "tests/package/support.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace hvd::package {

CommandResult run_command(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {.exit_code = -1, .output = "popen failed"};
  std::string output;
  std::array<char, 4096> chunk;
  while (size_t count = fread(chunk.data(), 1, chunk.size(), pipe)) {
    output.append(chunk.data(), count);
  }
  const int status = pclose(pipe);
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1, .output = std::move(output)};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

ScratchFolder::ScratchFolder() {
  std::string pattern = testing::TempDir() + "/hvd_package_XXXXXX";
  const char* made = mkdtemp(pattern.data());
  EXPECT_NE(made, nullptr) << "no scratch folder in " << testing::TempDir();
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string ScratchFolder::write(const std::string& name, const std::string& text) const {
  std::ofstream(path(name)) << text;
  return path(name);
}

}  // namespace hvd::package
