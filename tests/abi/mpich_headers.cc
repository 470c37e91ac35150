// The declarations of MPICH are those of its header. Compiling is the test.
#include <mpi.h>

#include <cstddef>
#include <type_traits>

#include "mpi/abi/mpich.h"

namespace hvd::mpi {

using Abi = MpichAbi;

constexpr bool is(Abi::Name name, int handle) { return static_cast<int>(name.number) == handle; }

static_assert(std::is_same_v<MPI_Comm, Abi::Handle> && std::is_same_v<MPI_Request, Abi::Handle>);
static_assert(sizeof(Abi::Status) == sizeof(MPI_Status));
static_assert(offsetof(Abi::Status, source) == offsetof(MPI_Status, MPI_SOURCE));
static_assert(offsetof(Abi::Status, tag) == offsetof(MPI_Status, MPI_TAG));
static_assert(offsetof(Abi::Status, error) == offsetof(MPI_Status, MPI_ERROR));
static_assert(Abi::kAnySource == MPI_ANY_SOURCE && Abi::kTagUpperBound == MPI_TAG_UB);
static_assert(Abi::kThreadLevels[2] == MPI_THREAD_SERIALIZED);
static_assert(Abi::kThreadLevels[3] == MPI_THREAD_MULTIPLE);
static_assert(is(Abi::kWorld, MPI_COMM_WORLD) && is(Abi::kErrorsReturn, MPI_ERRORS_RETURN));
static_assert(is(Abi::kByte, MPI_BYTE) && is(Abi::kTypes[0], MPI_UINT8_T));
static_assert(is(Abi::kTypes[1], MPI_INT8_T) && is(Abi::kTypes[2], MPI_UINT16_T));
static_assert(is(Abi::kTypes[3], MPI_INT16_T) && is(Abi::kTypes[4], MPI_INT32_T));
static_assert(is(Abi::kTypes[5], MPI_INT64_T) && is(Abi::kTypes[7], MPI_FLOAT));
static_assert(is(Abi::kTypes[8], MPI_DOUBLE) && is(Abi::kSum, MPI_SUM));
static_assert(is(Abi::kMin, MPI_MIN) && is(Abi::kMax, MPI_MAX) && is(Abi::kProduct, MPI_PROD));

}  // namespace hvd::mpi
