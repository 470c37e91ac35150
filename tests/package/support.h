// support.h - runs a command of the tool chain and gives back what it printed.
#pragma once

#include <string>
#include <vector>

namespace hvd::package {

struct CommandResult {
  int exit_code;
  std::string output;  // stdout and stderr, in the order they were written
};

// `command` goes through the shell. May block as long as the command runs.
CommandResult run_command(const std::string& command);

std::vector<std::string> lines_of(const std::string& text);

// A folder for the files of one test, removed with everything in it.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  // Writes a file into the folder and returns its path.
  std::string write(const std::string& name, const std::string& text) const;
  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace hvd::package
