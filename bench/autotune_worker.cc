// A rank of the benchmark of the autotuner: gradients of mixed sizes, step after step. Rank 0
// prints
//   seconds_until_tuned S rate_until_tuned R final_rate R
// with rates in steps per second; the first two only with --until-tuned FILE, the profile that the
// autotuner writes.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <horovod/hvd.hpp>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

bool is_tuned(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) && line.find("Found by the autotuner") != std::string::npos;
}

// A small network's: some large ones, many small ones.
std::vector<std::vector<float>> gradients() {
  std::vector<std::vector<float>> all;
  for (int layer = 0; layer < 8; ++layer) {
    all.emplace_back(layer % 4 == 0 ? 500'000 : 60'000, 1.0f);
    all.emplace_back(2'000, 1.0f);
    all.emplace_back(250, 1.0f);
  }
  return all;
}

// Until rank 0 says stop; it is asked every few steps. Returns steps per second.
template <typename Stop>
double train(std::vector<std::vector<float>>& values, const Stop& stop) {
  constexpr int kAskEvery = 20;
  const auto begin = Clock::now();
  int steps = 0;
  for (std::vector<float> flag(1, 0.0f); flag[0] == 0;) {
    for (auto& gradient : values) horovod::allreduce(gradient);
    if (++steps % kAskEvery != 0) continue;
    flag[0] = stop() ? 1.0f : 0.0f;
    horovod::allreduce(flag);
  }
  return steps / since(begin);
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
  const std::string profile = argc > 3 && std::string(argv[2]) == "--until-tuned" ? argv[3] : "";
  const horovod::Session session;
  const bool decides = session.rank() == 0;
  auto values = gradients();
  auto begin = Clock::now();
  if (!profile.empty()) {
    const double rate = train(values, [&] { return decides && is_tuned(profile); });
    if (decides) std::printf("seconds_until_tuned %.2f rate_until_tuned %.2f ", since(begin), rate);
  }
  begin = Clock::now();
  const double rate = train(values, [&] { return decides && since(begin) > seconds; });
  if (decides) std::printf("final_rate %.2f\n", rate);
}
