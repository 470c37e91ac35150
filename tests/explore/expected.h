// expected.h - what a word of a program submits, and what its result must be: computed from the
// program alone.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/status.h"
#include "engine/operation/submission.h"
#include "tests/explore/program.h"

namespace hvd::explore {

// One submission of one rank.
class Call {
 public:
  Call(const Word& word, int rank, int ranks, int phase, int occurrence);
  const std::vector<int32_t>& input() const { return input_; }
  void set_buffers(const int32_t* input, int32_t* output);
  engine::Submission submission() const;

 private:
  const Word word_;
  std::vector<int32_t> input_;
  std::vector<std::string> names_;
  std::vector<int64_t> shape_;
  std::vector<int32_t> splits_;
  std::vector<int32_t> set_ranks_;
  std::vector<engine::TensorArg> tensors_;
};

struct Answer {
  Status status;
  const void* data;  // what the core allocated, where it did
  size_t bytes;
  const std::vector<int32_t>& output;  // the caller's buffer
};

class Expected {
 public:
  explicit Expected(const Program& program);

  // What is wrong with the result of a rank's n-th submission of a word; empty: nothing.
  std::string complaint(int rank, const Word& word, int phase, int occurrence,
                        const Answer& answer) const;
  // Some ranks have a tensor in a group and others alone: those operations are refused.
  bool has_other_groupings() const { return has_other_groupings_; }

 private:
  std::vector<int32_t> result(int rank, const Word& word, int phase, int occurrence) const;

  const int ranks_;
  bool has_other_groupings_ = false;
  bool removes_sets_ = false;
  // Who submits a word for the n-th time between two joins: a bit per rank.
  std::map<std::tuple<bool, Kind, int, int, int>, uint32_t> takes_part_;
};

}  // namespace hvd::explore
