// output.h - the three faces of a result: table for people, JSON for machines, PNG for both.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "report/rows.h"

namespace hvd::bench {

struct Machine {
  std::string cpu;
  int cores = 0;
  std::string kernel;
};
Machine this_machine();

void print_table(std::ostream& out, const std::string& bench, const Machine& machine,
                 const std::vector<Row>& rows);
// Throws BenchError when the file cannot be written.
void write_json(const std::string& path, const std::string& bench, const Machine& machine,
                const std::vector<Row>& rows);
// One PNG per family of cases (np, operation): curves over bytes, or bars where there are no sizes.
// `stem` is the path without ".png". Returns the files; none when gnuplot is missing or fails.
std::vector<std::string> draw(const std::string& stem, const std::string& bench,
                              const std::vector<Row>& rows);

}  // namespace hvd::bench
