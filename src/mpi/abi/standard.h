// standard.h - the ABI of the MPI standard, version 5.0, chapter 20 (libmpi_abi.so.1; MPICH 5, Open
// MPI 6): handles are pointers, the predefined ones small numbers.
#pragma once

#include <cstdint>

#include "mpi/abi/symbols.h"

namespace hvd::mpi {

struct StandardAbi {
  using Handle = void*;
  struct Status {
    int source, tag, error;
    int reserved[5];
  };

  static constexpr int kAnySource = -1;
  static constexpr int kTagUpperBound = 501;
  static constexpr int kThreadLevels[] = {0, 1024, 2048, 4096};
  static void* in_place() { return reinterpret_cast<void*>(1); }

  struct Name {
    uintptr_t number;
    Result<Handle> in(const Symbols&) const { return reinterpret_cast<Handle>(number); }
  };
  static constexpr Name kWorld{0x101};
  static constexpr Name kErrorsReturn{0x143};
  static constexpr Name kByte{0x247};
  // In the order of DType; none for the 16-bit floats, which C does not have, and bool.
  static constexpr Name kTypes[] = {{0x241}, {0x240}, {0x249}, {0x248}, {0x250}, {0x258},
                                    {0},     {0x210}, {0x214}, {0},     {0}};
  static constexpr Name kSum{0x21}, kMin{0x22}, kMax{0x23}, kProduct{0x24};
};

}  // namespace hvd::mpi
