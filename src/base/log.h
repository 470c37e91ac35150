// log.h - log lines in the format of the original:
// `[<YYYY-mm-dd HH:MM:SS>.<us>: <level letter> <file>:<line>] [<rank>]: text`
// trace, debug and info go to stdout, the rest to stderr; one write per line. Any thread.
// HVD_LOG(kWarning, "rank ", r, " is late") formats only if the level is on.
#pragma once

#include <string>

#include "base/settings.h"
#include "base/text.h"

namespace hvd {

struct LogOptions {
  LogLevel level = LogLevel::kWarning;
  bool hide_time = false;
  int rank = -1;  // -1: no rank part
};
void set_log_options(const LogOptions& options);
bool log_enabled(LogLevel level);
void write_log(LogLevel level, const char* file, int line, const std::string& text);

}  // namespace hvd

#define HVD_LOG(level, ...)                                                                       \
  (::hvd::log_enabled(::hvd::LogLevel::level)                                                     \
       ? ::hvd::write_log(::hvd::LogLevel::level, __FILE__, __LINE__, ::hvd::concat(__VA_ARGS__)) \
       : void(0))
