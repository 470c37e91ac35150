// mpich.h - the common ABI of the MPICH family (libmpi.so.12, Debian's libmpich.so.12; MPICH 3.1 to
// 5, Intel MPI, MVAPICH, Cray): handles are numbers that tell their kind and size.
#pragma once

#include "mpi/abi/symbols.h"

namespace hvd::mpi {

struct MpichAbi {
  using Handle = int;
  struct Status {
    int count_low, count_high_and_cancelled;
    int source, tag, error;
  };

  static constexpr int kAnySource = -2;
  static constexpr int kTagUpperBound = 0x64400001;
  static constexpr int kThreadLevels[] = {0, 1, 2, 3};
  static void* in_place() { return reinterpret_cast<void*>(-1); }

  struct Name {
    unsigned number;
    Result<Handle> in(const Symbols&) const { return static_cast<Handle>(number); }
  };
  static constexpr Name kWorld{0x44000000};
  static constexpr Name kErrorsReturn{0x54000001};
  static constexpr Name kByte{0x4c00010d};
  // In the order of DType; none for the 16-bit floats, which C does not have, and bool.
  static constexpr Name kTypes[] = {{0x4c00013b}, {0x4c000137}, {0x4c00023c}, {0x4c000238},
                                    {0x4c000439}, {0x4c00083a}, {0},          {0x4c00040a},
                                    {0x4c00080b}, {0},          {0}};
  static constexpr Name kSum{0x58000003}, kMin{0x58000002}, kMax{0x58000001}, kProduct{0x58000004};
};

}  // namespace hvd::mpi
