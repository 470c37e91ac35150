// library.h - the library that was found, seen through the ABI family it belongs to. Any thread.
#pragma once

#include <memory>
#include <string>

#include "base/dtype.h"
#include "base/status.h"
#include "mpi/abi/symbols.h"
#include "mpi/api.h"

namespace hvd::mpi {

enum class Family { kOpenMpi, kMpich, kStandard };

// What a library says about itself, before it is initialized: its family, and its name and version.
struct Identity {
  Family family;
  std::string name;
};
// A library of no known family: PRECONDITION_ERROR that quotes its version text.
Result<Identity> identify(const Symbols& symbols);

Result<std::unique_ptr<Api>> load_library(const Symbols& symbols);

// One per family.
Result<std::unique_ptr<Api>> load_open_mpi(const Symbols& symbols, std::string name);
Result<std::unique_ptr<Api>> load_mpich(const Symbols& symbols, std::string name);
Result<std::unique_ptr<Api>> load_standard(const Symbols& symbols, std::string name);

// Has every library a type of its own for these elements? 16-bit floats are none of C, and a sum of
// bools is not defined.
constexpr bool is_mpi_type(DType dtype) {
  return dtype != DType::kFloat16 && dtype != DType::kBfloat16 && dtype != DType::kBool;
}

}  // namespace hvd::mpi
