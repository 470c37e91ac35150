#include "bindings/jax/attributes.h"

#include <cstring>
#include <string_view>

namespace hvd::jax {
namespace {

template <typename Number>
Number number(const void* attribute) {
  Number value{};
  std::memcpy(&value, static_cast<const Scalar*>(attribute)->value, sizeof(value));
  return value;
}

void read_scalar(std::string_view name, const void* attribute, Wish& wish) {
  if (name == "kind") wish.kind = number<int32_t>(attribute);
  if (name == "op") wish.reduce_op = number<int32_t>(attribute);
  if (name == "wire") wish.wire_dtype = number<int32_t>(attribute);
  if (name == "process_set") wish.process_set = number<int32_t>(attribute);
  if (name == "root") wish.root_rank = number<int32_t>(attribute);
  if (name == "group") wish.is_group = number<int32_t>(attribute);
  if (name == "prescale") wish.prescale = number<double>(attribute);
  if (name == "postscale") wish.postscale = number<double>(attribute);
}

}  // namespace

Wish read_attributes(const Attributes& attributes) {
  Wish wish;
  for (int64_t i = 0; i < attributes.size; ++i) {
    const std::string_view name(attributes.names[i]->data, attributes.names[i]->size);
    const void* const value = attributes.values[i];
    if (attributes.types[i] == kScalar) {
      read_scalar(name, value, wish);
    } else if (attributes.types[i] == kString && name == "name") {
      const auto* const text = static_cast<const ByteSpan*>(value);
      wish.name.assign(text->data, text->size);
    } else if (attributes.types[i] == kArray && name == "splits") {
      const auto* const array = static_cast<const Array*>(value);
      const auto* const rows = static_cast<const int32_t*>(array->data);
      wish.splits.assign(rows, rows + array->size);
    }
  }
  return wish;
}

}  // namespace hvd::jax
