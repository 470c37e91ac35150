#include "mpi_peer.h"

#include <mpi.h>

#include <utility>

#include "error.h"

namespace hvd::bench {
namespace {

void expect_success(int code, const char* what) {
  if (code != MPI_SUCCESS) [[unlikely]]
    throw BenchError(std::string("MPI: ") + what + " failed");
}

}  // namespace

MpiPeer::MpiPeer(std::string name) : name_(std::move(name)) {
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

void MpiPeer::allreduce(float* data, size_t count) const {
  expect_success(MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                               MPI_COMM_WORLD),
                 "allreduce");
}

void MpiPeer::allgather(const float* input, float* output, size_t count) const {
  expect_success(MPI_Allgather(input, static_cast<int>(count), MPI_FLOAT, output,
                               static_cast<int>(count), MPI_FLOAT, MPI_COMM_WORLD),
                 "allgather");
}

void MpiPeer::broadcast(float* data, size_t count) const {
  expect_success(MPI_Bcast(data, static_cast<int>(count), MPI_FLOAT, 0, MPI_COMM_WORLD),
                 "broadcast");
}

void MpiPeer::alltoall(const float* input, float* output, size_t count) const {
  const int share = static_cast<int>(count) / size_;
  expect_success(MPI_Alltoall(input, share, MPI_FLOAT, output, share, MPI_FLOAT, MPI_COMM_WORLD),
                 "alltoall");
}

void MpiPeer::reducescatter(const float* input, float* output, size_t count) const {
  expect_success(MPI_Reduce_scatter_block(input, output, static_cast<int>(count) / size_, MPI_FLOAT,
                                          MPI_SUM, MPI_COMM_WORLD),
                 "reducescatter");
}

}  // namespace hvd::bench
