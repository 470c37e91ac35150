#include "world.h"

#include <mpi.h>

#include <cstdio>
#include <cstdlib>

namespace hvd::bench {

World::World(int* argc, char*** argv, Threads threads) {
  int provided = 0;
  MPI_Init_thread(argc, argv, threads == Threads::kMany ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                  &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

World::~World() { MPI_Finalize(); }

void World::barrier() const { MPI_Barrier(MPI_COMM_WORLD); }

double World::largest(double value) const {
  double result = 0;
  MPI_Allreduce(&value, &result, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return result;
}

double World::from_first(double value) const {
  MPI_Bcast(&value, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return value;
}

std::string World::from_first(const std::string& text) const {
  int length = static_cast<int>(text.size());
  MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD);
  std::string result = text;
  result.resize(length);
  MPI_Bcast(result.data(), length, MPI_CHAR, 0, MPI_COMM_WORLD);
  return result;
}

bool World::all(bool value) const {
  int mine = value ? 1 : 0;
  int everyone = 0;
  MPI_Allreduce(&mine, &everyone, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return everyone == 1;
}

std::vector<double> World::gather(const std::vector<double>& samples) const {
  std::vector<double> together(is_first() ? samples.size() * size_ : 0);
  const int count = static_cast<int>(samples.size());
  MPI_Gather(samples.data(), count, MPI_DOUBLE, together.data(), count, MPI_DOUBLE, 0,
             MPI_COMM_WORLD);
  return together;
}

void World::give_up(const std::string& message) {
  int rank = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::fprintf(stderr, "bench: rank %d: %s\n", rank, message.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();  // MPI_Abort does not return, but is not declared so
}

}  // namespace hvd::bench
