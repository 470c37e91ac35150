// json_text.h - writes JSON. Only what --plan-json needs: values are put together as text.
// Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hvd::launch {

// With quotes. Bytes that are no UTF-8 become lone surrogates (\udcXX), as Python decodes them with
// "surrogateescape", so that nothing is lost.
std::string json_string(std::string_view text);
std::string json_strings(std::span<const std::string> texts);

// An object, entry by entry; values are JSON already.
class JsonObject {
 public:
  JsonObject& add(std::string_view key, std::string json);
  std::string text() const;  // on one line

 private:
  std::vector<std::string> entries_;
};

std::string json_list(std::span<const std::string> items);  // items are JSON already

}  // namespace hvd::launch
