// mpi_peer.h - the MPI this program was built against, as a contestant: plain calls, default
// settings. Operations on float32 over MPI_COMM_WORLD; counts are elements of one rank's input.
#pragma once

#include <cstddef>
#include <string>

namespace hvd::bench {

class MpiPeer {
 public:
  // `name` as it shall stand in tables: "openmpi", "mpich", "openmpi-5.0.11".
  explicit MpiPeer(std::string name);
  const std::string& name() const { return name_; }

  void allreduce(float* data, size_t count) const;  // sum, in place
  void allgather(const float* input, float* output, size_t count) const;
  void broadcast(float* data, size_t count) const;  // from rank 0
  void alltoall(const float* input, float* output, size_t count) const;
  void reducescatter(const float* input, float* output, size_t count) const;  // sum

 private:
  std::string name_;
  int size_ = 1;
};

}  // namespace hvd::bench
