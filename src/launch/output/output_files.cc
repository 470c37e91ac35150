#include "launch/output/output_files.h"

#include "base/own_file.h"
#include "base/parse.h"
#include "base/text.h"

namespace hvd::launch {
namespace {

Result<UniqueFd> create_output_file(const std::string& path) {
  Result<UniqueFd> file = create_own_file(path, 0666);
  if (!file) return blame(concat("--output-filename: '", path, "'"), file.status());
  return file;
}

}  // namespace

Result<OutputFiles> open_output_files(const std::string& directory) {
  if (const Status made = make_own_folders(directory, 0777); !made) {
    return blame("--output-filename", made);
  }
  HVD_TRY_ASSIGN(UniqueFd out, create_output_file(concat(directory, "/stdout")));
  HVD_TRY_ASSIGN(UniqueFd err, create_output_file(concat(directory, "/stderr")));
  return OutputFiles{.out = std::move(out), .err = std::move(err)};
}

}  // namespace hvd::launch
