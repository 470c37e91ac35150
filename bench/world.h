// world.h - MPI as the harness itself needs it: who am I, meet, agree, give up.
// The only header besides mpi_peer.h that leads to mpi.h; compiled once per MPI. One thread.
#pragma once

#include <string>
#include <vector>

namespace hvd::bench {

class World {
 public:
  // Several threads only where our engine over MPI takes part: they cost the bare calls time.
  enum class Threads { kOne, kMany };
  World(int* argc, char*** argv, Threads threads);  // MPI_Init
  ~World();                                         // MPI_Finalize
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool is_first() const { return rank_ == 0; }

  void barrier() const;
  double largest(double value) const;     // over all ranks, on all ranks
  double from_first(double value) const;  // rank 0's value, on all ranks
  std::string from_first(const std::string& text) const;
  bool all(bool value) const;  // true if true on every rank
  // Rank 0: the samples of all ranks, one after the other; other ranks: empty. Equal counts.
  std::vector<double> gather(const std::vector<double>& samples) const;
  // Prints the message with the rank and ends all ranks.
  [[noreturn]] static void give_up(const std::string& message);

 private:
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace hvd::bench
