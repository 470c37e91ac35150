// open_mpi.h - what Open MPI 4 and 5 (libmpi.so.40) agree on: handles are addresses of objects, the
// predefined ones under symbols of their own.
#pragma once

#include <cstddef>

#include "mpi/abi/symbols.h"

namespace hvd::mpi {

struct OpenMpiAbi {
  using Handle = void*;
  struct Status {
    int source, tag, error;
    int cancelled;
    size_t count;
  };

  static constexpr int kAnySource = -1;
  static constexpr int kTagUpperBound = 0;
  static constexpr int kThreadLevels[] = {0, 1, 2, 3};
  static void* in_place() { return reinterpret_cast<void*>(1); }

  struct Name {
    const char* symbol;
    Result<Handle> in(const Symbols& symbols) const { return symbols.get(symbol); }
  };
  static constexpr Name kWorld{"ompi_mpi_comm_world"};
  static constexpr Name kErrorsReturn{"ompi_mpi_errors_return"};
  static constexpr Name kByte{"ompi_mpi_byte"};
  // In the order of DType; none for the 16-bit floats, which C does not have, and bool.
  static constexpr Name kTypes[] = {{"ompi_mpi_uint8_t"},
                                    {"ompi_mpi_int8_t"},
                                    {"ompi_mpi_uint16_t"},
                                    {"ompi_mpi_int16_t"},
                                    {"ompi_mpi_int32_t"},
                                    {"ompi_mpi_int64_t"},
                                    {nullptr},
                                    {"ompi_mpi_float"},
                                    {"ompi_mpi_double"},
                                    {nullptr},
                                    {nullptr}};
  static constexpr Name kSum{"ompi_mpi_op_sum"}, kMin{"ompi_mpi_op_min"}, kMax{"ompi_mpi_op_max"},
      kProduct{"ompi_mpi_op_prod"};
};

}  // namespace hvd::mpi
