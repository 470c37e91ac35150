#include "mpi/library.h"

#include <dlfcn.h>

#include <cstring>
#include <string_view>

#include "base/text.h"

namespace hvd::mpi {
namespace {

// Both may be called before MPI is initialized, and have no handles in their signatures.
using VersionText = int (*)(char*, int*);
using AbiVersion = int (*)(int*, int*);

template <typename Function>
Function function_at(void* address) {
  Function function = nullptr;
  std::memcpy(&function, &address, sizeof function);
  return function;
}

Result<std::string> version_text(const Symbols& symbols) {
  HVD_TRY_ASSIGN(void* const address, symbols.get("MPI_Get_library_version"));
  char text[8192] = {};  // the largest that any family asks for
  int length = 0;
  if (function_at<VersionText>(address)(text, &length) != 0)
    return unknown_error(concat(symbols.path, ": MPI_Get_library_version failed"));
  return std::string(text);
}

// Libraries with the function but another ABI answer -1.
bool has_standard_abi(const Symbols& symbols) {
  void* const address = symbols.find("MPI_Abi_get_version");
  int major = -1, minor = -1;
  return address != nullptr && function_at<AbiVersion>(address)(&major, &minor) == 0 && major > 0;
}

bool is_mpich_like(std::string_view text) {
  for (const std::string_view word : {"MPICH", "Intel(R) MPI", "MVAPICH", "CRAY"}) {
    if (text.find(word) != std::string_view::npos) return true;
  }
  return false;
}

// "Open MPI v4.1.4" and "MPICH 4.0.2" of texts with much more behind.
std::string short_name(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, text.find_first_of(",\n"))) {
    const char one = c == '\t' || c == ':' ? ' ' : c;
    if (one != ' ' || (!out.empty() && out.back() != ' ')) out += one;
  }
  return out;
}

}  // namespace

void* Symbols::find(const char* name) const { return dlsym(handle, name); }

Result<void*> Symbols::get(const char* name) const {
  void* const address = find(name);
  if (address != nullptr) return address;
  return precondition_error(concat("MPI library ", path, " has no ", name));
}

Result<Identity> identify(const Symbols& symbols) {
  HVD_TRY_ASSIGN(const std::string text, version_text(symbols));
  std::string name = concat(short_name(text), " (", symbols.path, ")");
  if (has_standard_abi(symbols)) return Identity{Family::kStandard, std::move(name)};
  if (symbols.find("ompi_mpi_comm_world") != nullptr)
    return Identity{Family::kOpenMpi, std::move(name)};
  if (is_mpich_like(text)) return Identity{Family::kMpich, std::move(name)};
  return precondition_error(concat("MPI library ", symbols.path, " says it is '", short_name(text),
                                   "'; expected Open MPI, a relative of MPICH, or a library with "
                                   "the ABI of the MPI standard"));
}

Result<std::unique_ptr<Api>> load_library(const Symbols& symbols) {
  HVD_TRY_ASSIGN(Identity identity, identify(symbols));
  switch (identity.family) {
    case Family::kOpenMpi:
      return load_open_mpi(symbols, std::move(identity.name));
    case Family::kMpich:
      return load_mpich(symbols, std::move(identity.name));
    case Family::kStandard:
      break;
  }
  return load_standard(symbols, std::move(identity.name));
}

}  // namespace hvd::mpi
