#include <string>
#include <vector>

#include "horovodrun/measure_engines.h"
#include "horovodrun/measure_gpus.h"
#include "launch/launch.h"

extern "C" char** environ;

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  // A rank of a job, not a launcher; the launcher knows nothing of the engine.
  if (arguments.size() == 1 && arguments[0] == hvd::measure::kOption)
    return hvd::measure::measure_engines();
  if (arguments.size() == 1 && arguments[0] == hvd::measure::kGpuOption)
    return hvd::measure::measure_gpus();
  hvd::launch::EnvironmentList environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    environment.emplace_back(*entry);
  }
  return hvd::launch::run_launcher(arguments, environment);
}
