// api.h - the few MPI functions that the core uses, whichever library stands behind them. Handles
// are the library's own, kept in a word. Any thread, as far as the level of thread support allows:
// set_one_at_a_time() makes the calls take turns. What may block says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/dtype.h"
#include "base/status.h"

namespace hvd::mpi {

enum class Comm : uintptr_t {};
enum class Request : uintptr_t {};
enum class ThreadLevel { kSingle, kFunneled, kSerialized, kMultiple };

inline constexpr int kAnySource = -1;

struct Arrival {
  int source = 0;
  size_t bytes = 0;
};

class Api {
 public:
  virtual ~Api() = default;

  // "Open MPI v4.1.4 (libmpi.so.40)"
  virtual const std::string& name() const = 0;
  virtual void set_one_at_a_time() = 0;

  // ---- life: these may block until all processes come ----
  virtual bool is_initialized() = 0;
  virtual bool is_finalized() = 0;
  virtual Result<ThreadLevel> init(ThreadLevel wanted) = 0;
  virtual Result<ThreadLevel> thread_level() = 0;
  virtual Status finalize() = 0;

  // ---- communicators ----
  virtual Comm world() = 0;
  // The one that a program keeps at this address, an MPI_Comm of the same library.
  virtual Comm comm_at(const void* address) = 0;
  // A copy. `out` stays where it is, and is good when the request is done.
  virtual Status duplicate(Comm comm, Comm* out, Request& request) = 0;
  // From now on errors are values; by default they end the process.
  virtual Status return_errors(Comm comm) = 0;
  // Of some ranks of `comm`, all of which call; blocks until they do.
  virtual Result<Comm> subset(Comm comm, std::span<const int> ranks) = 0;
  virtual Result<int> rank(Comm comm) = 0;
  virtual Result<int> size(Comm comm) = 0;
  virtual Result<int> largest_tag(Comm comm) = 0;

  // ---- messages: never block; the memory stays until test() says true ----
  // Done when the receiver has begun to take it.
  virtual Status send(Comm comm, std::span<const std::byte> data, int to, int tag,
                      Request& request) = 0;
  virtual Status receive(Comm comm, std::span<std::byte> data, int from, int tag,
                         Request& request) = 0;
  // A message that has come and is not received yet, from anybody.
  virtual Result<std::optional<Arrival>> probe(Comm comm, int tag) = 0;
  // True: done; `arrival` then tells what a receive got, if it is asked for.
  virtual Result<bool> test(Request& request, Arrival* arrival) = 0;
  // Ends a receive that nothing was sent for. May block for a moment.
  virtual Status cancel(Request& request) = 0;

  // ---- reductions ----
  virtual bool can_reduce(DType dtype, ReduceOp op) const = 0;
  // in == out: in place.
  virtual Status allreduce(Comm comm, const void* in, void* out, size_t count, DType dtype,
                           ReduceOp op, Request& request) = 0;
};

}  // namespace hvd::mpi
