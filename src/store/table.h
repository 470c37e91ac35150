// table.h - what a store server remembers: values by epoch and key, written once, bounded in number
// and size. One thread at a time; never blocks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "store/protocol.h"

namespace hvd::store {

struct TableLimits {
  size_t bytes = 64u << 20;  // keys and values of all epochs together
  size_t keys = 1u << 17;
};

class Table {
 public:
  explicit Table(const TableLimits& limits) : limits_(limits) {}

  Outcome set(uint64_t epoch, std::string_view key, std::string_view value);
  // Null: nobody has set it.
  const std::string* find(uint64_t epoch, std::string_view key) const;
  void forget_before(uint64_t epoch);
  size_t bytes() const { return bytes_; }

 private:
  using Values = std::map<std::string, std::string, std::less<>>;

  TableLimits limits_;
  std::map<uint64_t, Values> epochs_;
  size_t bytes_ = 0, keys_ = 0;
};

}  // namespace hvd::store
