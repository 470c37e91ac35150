// host_failures.h - what the ranks of host_worker.h say when their job fails.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

namespace hvd::test {

inline constexpr int64_t kSecond = 1'000'000'000;

// "rank 2 failed at 123: lost peer: rank 3 ..." by rank.
struct Failure {
  int64_t at = 0;
  std::string text;
};
inline std::map<int, Failure> failures_of(const std::string& output) {
  std::map<int, Failure> found;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const size_t word = line.find(" failed at ");
    if (word == std::string::npos) continue;
    const int rank = std::atoi(line.c_str() + line.find("rank ") + 5);
    char* end = nullptr;
    const int64_t at = std::strtoll(line.c_str() + word + 11, &end, 10);
    found[rank] = {at, end};
  }
  return found;
}

}  // namespace hvd::test
