#include "base/status.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hvd {

const char* status_code_text(StatusCode code) {
  switch (code) {
#define HVD_STATUS_CODE(name, c_name, value, text) \
  case StatusCode::k##name:                        \
    return text;
#include "base/status_codes.def"
#undef HVD_STATUS_CODE
  }
  return "unknown status code";
}

Status errno_status(const std::string& what, int error_number) {
  char buffer[128];
  const char* text = strerror_r(error_number, buffer, sizeof buffer);  // GNU form: returns the text
  const StatusCode code = error_number == ENOMEM || error_number == ENOSPC
                              ? StatusCode::kOutOfMemory
                              : StatusCode::kUnknownError;
  return {code, what + ": " + text};
}

void assertion_failed(const char* condition, const char* why, const char* file, int line) {
  std::fprintf(stderr, "horovod: assertion failed: %s (%s) at %s:%d\n", condition, why, file, line);
  std::abort();
}

}  // namespace hvd
