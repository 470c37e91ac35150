#include "store/table.h"

namespace hvd::store {

Outcome Table::set(uint64_t epoch, std::string_view key, std::string_view value) {
  if (const std::string* present = find(epoch, key)) {
    return *present == value ? Outcome::kOk : Outcome::kOtherValue;
  }
  const size_t more = key.size() + value.size();
  if (key.size() > kMostKeyBytes || value.size() > kMostValueBytes || keys_ >= limits_.keys ||
      more > limits_.bytes - bytes_) {
    return Outcome::kNoRoom;
  }
  epochs_[epoch].emplace(key, value);
  bytes_ += more;
  ++keys_;
  return Outcome::kOk;
}

const std::string* Table::find(uint64_t epoch, std::string_view key) const {
  const auto values = epochs_.find(epoch);
  if (values == epochs_.end()) return nullptr;
  const auto at = values->second.find(key);
  return at == values->second.end() ? nullptr : &at->second;
}

void Table::forget_before(uint64_t epoch) {
  while (!epochs_.empty() && epochs_.begin()->first < epoch) {
    for (const auto& [key, value] : epochs_.begin()->second) {
      bytes_ -= key.size() + value.size();
      --keys_;
    }
    epochs_.erase(epochs_.begin());
  }
}

}  // namespace hvd::store
