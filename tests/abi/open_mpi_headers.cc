// The declarations of Open MPI are those of its header. Compiling is the test.
#include <mpi.h>

#include <cstddef>
#include <type_traits>

#include "mpi/abi/open_mpi.h"

namespace hvd::mpi {

using Abi = OpenMpiAbi;

static_assert(sizeof(Abi::Handle) == sizeof(MPI_Comm) && std::is_pointer_v<MPI_Comm>);
static_assert(sizeof(Abi::Handle) == sizeof(MPI_Request) && sizeof(MPI_Datatype) == 8);
static_assert(sizeof(Abi::Status) == sizeof(MPI_Status));
static_assert(offsetof(Abi::Status, source) == offsetof(MPI_Status, MPI_SOURCE));
static_assert(offsetof(Abi::Status, tag) == offsetof(MPI_Status, MPI_TAG));
static_assert(offsetof(Abi::Status, error) == offsetof(MPI_Status, MPI_ERROR));
static_assert(Abi::kAnySource == MPI_ANY_SOURCE && Abi::kTagUpperBound == MPI_TAG_UB);
static_assert(Abi::kThreadLevels[2] == MPI_THREAD_SERIALIZED);
static_assert(Abi::kThreadLevels[3] == MPI_THREAD_MULTIPLE);

}  // namespace hvd::mpi
