// report.cc - hvd_bench_report: readings of one bench in, table, JSON and plots out.
#include <iostream>
#include <string>

#include "error.h"
#include "report/output.h"

namespace hvd::bench {
namespace {

constexpr const char* kUsage = "usage: hvd_bench_report --json FILE READINGS...";

std::string without_suffix(const std::string& path, const std::string& suffix) {
  if (path.size() < suffix.size()) return path;
  const size_t at = path.size() - suffix.size();
  return path.compare(at, suffix.size(), suffix) == 0 ? path.substr(0, at) : path;
}

void report(int argc, char** argv) {
  std::string json_path;
  std::vector<Readings> runs;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--json" && i + 1 < argc) {
      json_path = argv[++i];
    } else {
      runs.push_back(load(argument));
    }
  }
  if (json_path.empty() || runs.empty()) throw BenchError(kUsage);
  const std::string bench = runs.front().bench;
  const Machine machine = this_machine();
  const std::vector<Row> rows = make_rows(runs);

  print_table(std::cout, bench, machine, rows);
  write_json(json_path, bench, machine, rows);
  std::cout << "JSON: " << json_path << '\n';
  for (const std::string& png : draw(without_suffix(json_path, ".json"), bench, rows)) {
    std::cout << "plot: " << png << '\n';
  }
}

}  // namespace
}  // namespace hvd::bench

int main(int argc, char** argv) {
  try {
    hvd::bench::report(argc, argv);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "bench: " << error.what() << '\n';
    return 1;
  }
}
