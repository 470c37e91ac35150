#include "topology/variables.h"

#include <limits>

#include "base/parse.h"
#include "base/text.h"

namespace hvd::topology {

std::optional<std::string> text_variable(const Environment& environment, const char* name) {
  const auto value = environment(name);
  if (!value || trim(*value).empty()) return std::nullopt;
  return std::string(trim(*value));
}

Result<std::optional<int32_t>> integer_variable(const Environment& environment, const char* name,
                                                int32_t least) {
  const auto text = text_variable(environment, name);
  if (!text) return std::optional<int32_t>();
  const auto value = parse_integer(*text, {least, std::numeric_limits<int32_t>::max()});
  if (!value) return blame(name, value.status());
  return std::optional<int32_t>(static_cast<int32_t>(value.value()));
}

Result<std::optional<Position>> position_variables(const Environment& environment,
                                                   const char* rank_name, const char* size_name) {
  HVD_TRY_ASSIGN(const auto rank, integer_variable(environment, rank_name, 0));
  HVD_TRY_ASSIGN(const auto size, integer_variable(environment, size_name, 1));
  if (!rank && !size) return std::optional<Position>();
  if (!rank) return invalid_argument(concat(size_name, " is set, but ", rank_name, " is not"));
  if (!size) return invalid_argument(concat(rank_name, " is set, but ", size_name, " is not"));
  if (*rank >= *size) {
    return invalid_argument(concat(rank_name, ": expected 0 to ", *size - 1, " (", size_name,
                                   " is ", *size, "), got ", *rank));
  }
  return std::optional(Position{*rank, *size, rank_name, size_name});
}

std::string name_from_variables(const Environment& environment, const char* prefix,
                                std::initializer_list<const char*> names) {
  std::string out;
  for (const char* name : names) {
    if (const auto value = text_variable(environment, name)) out += "-" + *value;
  }
  return out.empty() ? out : prefix + out;
}

}  // namespace hvd::topology
