// error.h - the one way a benchmark program gives up.
// Thrown where a contestant fails or computes something wrong; main() prints it and ends the job,
// so that a table never holds a figure of an operation that did not work.
#pragma once

#include <stdexcept>
#include <string>

namespace hvd::bench {

class BenchError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace hvd::bench
