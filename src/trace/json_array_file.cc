#include "trace/json_array_file.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/own_file.h"
#include "base/parse.h"
#include "base/text.h"

namespace hvd::trace {
namespace {

constexpr std::string_view kOpening = "[\n";
constexpr std::string_view kClosing = "\n]";

}  // namespace

Result<JsonArrayFile> JsonArrayFile::create(const std::string& path) {
  Result<UniqueFd> fd = create_own_file(path, 0644);
  if (!fd) return blame(concat("cannot open timeline file '", path, "'"), fd.status());
  JsonArrayFile file(path, std::move(*fd));
  HVD_TRY(file.write_at(0, concat(kOpening, kClosing)));
  file.end_ = kOpening.size();
  return file;
}

Status JsonArrayFile::append(std::string_view records) {
  if (records.empty()) return Status::ok();
  const Status written = write_at(end_, concat(records, kClosing));
  if (written.is_ok()) {
    end_ += records.size();
    return written;
  }
  if (::ftruncate(fd_.get(), static_cast<off_t>(end_)) == 0) {
    (void)write_at(end_, kClosing).is_ok();  // the first failure is the one to report
  }
  return written;
}

Status JsonArrayFile::write_at(uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count =
        ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_status(concat("cannot write timeline file '", path_, "'"), errno);
    offset += static_cast<uint64_t>(count);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return Status::ok();
}

}  // namespace hvd::trace
