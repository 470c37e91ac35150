#include "wire/request.h"

#include "base/text.h"

namespace hvd::wire {
namespace {

// A group of a thousand gradients must not turn one message into a page.
constexpr size_t kShownGroupMembers = 2;
constexpr size_t kShownNameBytes = 256;

constexpr std::string_view kUpperNames[kKindCount] = {
    "ALLREDUCE",       "ALLGATHER",         "BROADCAST", "JOIN",
    "ADASUM",          "ALLTOALL",          "BARRIER",   "REDUCESCATTER",
    "PROCESS_SET_ADD", "PROCESS_SET_REMOVE"};
constexpr std::string_view kLowerNames[kKindCount] = {
    "allreduce",       "allgather",         "broadcast", "join",
    "adasum",          "alltoall",          "barrier",   "reducescatter",
    "process_set_add", "process_set_remove"};

std::string quoted(std::string_view name) {
  if (name.size() <= kShownNameBytes) return concat('\'', name, '\'');
  return concat('\'', name.substr(0, kShownNameBytes), "...'");
}

std::string group_name(const Request& request) {
  std::string out = "group [";
  for (size_t i = 0; i < request.tensors.size(); ++i) {
    if (i > 0) out += ", ";
    if (i == kShownGroupMembers) {
      out += "...";
      break;
    }
    out += quoted(request.tensors[i].name);
  }
  return concat(out, "] (", request.tensors.size(), ')');
}

bool has_name(const Request& request) {
  for (const TensorSpec& tensor : request.tensors) {
    if (!tensor.name.empty()) return true;
  }
  return false;
}

}  // namespace

std::string_view kind_name(Kind kind) { return kUpperNames[static_cast<int>(kind)]; }

std::string_view kind_lower_name(Kind kind) { return kLowerNames[static_cast<int>(kind)]; }

uint64_t TensorSpec::element_count() const {
  uint64_t count = 1;
  for (int64_t dimension : shape) count *= static_cast<uint64_t>(dimension);
  return count;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return concat('[', join_text(shape), ']');
}

std::string unnamed_text(Kind kind, uint64_t ordinal) {
  return concat(kind_lower_name(kind), ".noname.", ordinal);
}

std::string display_name(const Request& request, uint64_t ordinal) {
  const size_t count = request.tensors.size();
  if (count == 0) return concat('#', ordinal);
  if (!has_name(request)) {
    const std::string name = concat('\'', unnamed_text(request.kind, ordinal), '\'');
    return count == 1 ? name : concat("group ", name, " (", count, ')');
  }
  return count == 1 ? quoted(request.tensors[0].name) : group_name(request);
}

}  // namespace hvd::wire
