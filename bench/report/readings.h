// readings.h - what a measuring program writes and the report reads: raw block times, round by
// round. Measuring programs know nothing of ratios or goals; hvd_bench_report knows nothing of MPI.
// A round holds one value per contestant, taken within a few milliseconds of each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hvd::bench {

enum class Role { kOurs, kPeer, kLimit };

struct Entrant {
  std::string name;
  Role role = Role::kPeer;
};

struct Round {
  // Round trip of a cache line before and after the round; 0 where placement does not matter.
  double before_ns = 0;
  double after_ns = 0;
  std::vector<double> values;  // one per entrant; NaN: this entrant sat the round out
};

struct CaseReadings {
  std::string name;             // "np=2 bytes=4"
  std::string metric = "mean";  // mean, p50 or p99 of single operations, or a share
  std::string unit = "us";
  int np = 0;
  uint64_t bytes = 0;  // 0: the case has no size, and is no point of a curve
  std::vector<Entrant> entrants;
  std::vector<Round> rounds;
};

struct Readings {
  std::string bench;   // "allreduce"
  std::string source;  // the MPI this program was built against, or the program
  std::vector<CaseReadings> cases;
};

// Both throw BenchError with the path when the file cannot be written, read or understood.
void save(const Readings& readings, const std::string& path);
Readings load(const std::string& path);

}  // namespace hvd::bench
