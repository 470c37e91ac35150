#include "negotiate/rules.h"

#include <limits>

#include "base/text.h"

namespace hvd::negotiate {
namespace {

std::string even_split_problem(int64_t rows, int64_t set_size) {
  if (rows % set_size != 0) {
    return concat("splits are needed because the first dimension, ", rows,
                  ", is not a multiple of the process set size, ", set_size);
  }
  if (rows / set_size > std::numeric_limits<int32_t>::max()) {
    return concat("an even split of ", rows, " rows to ", set_size, " ranks does not fit int32");
  }
  return {};
}

std::string explicit_splits_problem(const std::vector<int32_t>& splits, int64_t rows) {
  int64_t sum = 0;
  for (size_t i = 0; i < splits.size(); ++i) {
    if (splits[i] < 0) return concat("splits[", i, "] is negative: ", splits[i]);
    sum += splits[i];
  }
  if (sum <= rows) return {};
  return concat("splits add up to ", sum, " rows, but the tensor has ", rows);
}

}  // namespace

std::string member_label(const wire::Request& request, size_t index) {
  if (request.tensors.size() == 1) return {};
  const std::string& name = request.tensors[index].name;
  return name.empty() ? concat("tensor ", index, ": ") : concat("tensor '", name, "': ");
}

std::string splits_problem(const wire::TensorSpec& tensor, size_t set_size) {
  const int64_t rows = tensor.shape[0];
  if (tensor.splits.empty()) return even_split_problem(rows, static_cast<int64_t>(set_size));
  if (tensor.splits.size() != set_size) {
    return concat("splits need one entry per rank of the process set: expected ", set_size,
                  ", got ", tensor.splits.size());
  }
  return explicit_splits_problem(tensor.splits, rows);
}

void append_splits(const wire::TensorSpec& tensor, size_t set_size, std::vector<int32_t>& out) {
  if (tensor.splits.empty()) {
    const int64_t each = tensor.shape[0] / static_cast<int64_t>(set_size);
    out.insert(out.end(), set_size, static_cast<int32_t>(each));
  } else {
    out.insert(out.end(), tensor.splits.begin(), tensor.splits.end());
  }
}

}  // namespace hvd::negotiate
