// symbols.h - an MPI library that dlopen() has found, and its symbols by name. Never closed: MPI
// libraries start threads and handlers that cannot be taken back. Any thread.
#pragma once

#include <string>

#include "base/status.h"

namespace hvd::mpi {

struct Symbols {
  void* handle = nullptr;
  std::string path{};  // as it was opened, for messages

  // Null: it has none of this name.
  void* find(const char* name) const;
  Result<void*> get(const char* name) const;
};

}  // namespace hvd::mpi
