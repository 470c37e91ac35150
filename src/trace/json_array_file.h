// json_array_file.h - a file that holds a JSON array and is valid after every append: the closing
// bracket is overwritten in place. One thread; blocks on the disk.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/status.h"

namespace hvd::trace {

class JsonArrayFile {
 public:
  // Creates or empties the file.
  static Result<JsonArrayFile> create(const std::string& path);

  const std::string& path() const { return path_; }
  // `records` continue the array, with their leading comma where one is needed. On failure the file
  // is put back to what it was before, as far as the system lets us.
  Status append(std::string_view records);

 private:
  JsonArrayFile(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  Status write_at(uint64_t offset, std::string_view bytes);

  std::string path_;
  UniqueFd fd_;
  uint64_t end_ = 0;  // where the closing bracket starts
};

}  // namespace hvd::trace
