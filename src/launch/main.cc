#include <string>
#include <vector>

#include "launch/launch.h"

extern "C" char** environ;

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  hvd::launch::EnvironmentList environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    environment.emplace_back(*entry);
  }
  return hvd::launch::run_launcher(arguments, environment);
}
