#include "mpi/process.h"

#include <unistd.h>

#include "base/text.h"
#include "mpi/find_library.h"
#include "mpi/library.h"
#include "topology/variables.h"

namespace hvd::mpi {
namespace {

Result<ThreadLevel> wanted_level(const Environment& environment) {
  HVD_TRY_ASSIGN(const auto disable,
                 topology::integer_variable(environment, "HOROVOD_MPI_THREADS_DISABLE", INT32_MIN));
  // Our threads call MPI, but never two at a time.
  return disable.value_or(0) > 0 ? ThreadLevel::kSerialized : ThreadLevel::kMultiple;
}

}  // namespace

Result<std::unique_ptr<Process>> Process::start(const Environment& environment) {
  HVD_TRY_ASSIGN(const Symbols symbols, find_library(environment));
  HVD_TRY_ASSIGN(std::unique_ptr<Api> api, load_library(symbols));
  if (api->is_finalized())
    return precondition_error(concat(api->name(), " is finalized; it cannot be used again"));
  const bool is_ours = !api->is_initialized();
  ThreadLevel level = ThreadLevel::kSingle;
  if (is_ours) {
    HVD_TRY_ASSIGN(const ThreadLevel wanted, wanted_level(environment));
    HVD_TRY_ASSIGN(level, api->init(wanted));
  } else {
    HVD_TRY_ASSIGN(level, api->thread_level());
  }
  if (level < ThreadLevel::kSerialized) {
    return precondition_error(
        concat(api->name(), " was initialized ", is_ours ? "" : "by the program ",
               "with MPI_THREAD_", level == ThreadLevel::kSingle ? "SINGLE" : "FUNNELED",
               "; Horovod calls it from threads of its own and needs MPI_THREAD_MULTIPLE (or "
               "MPI_THREAD_SERIALIZED, if the program makes no MPI calls meanwhile)"));
  }
  if (level == ThreadLevel::kSerialized) api->set_one_at_a_time();
  return std::unique_ptr<Process>(new Process(std::move(api), level, is_ours ? getpid() : 0));
}

bool Process::is_ours() const { return initializer_ == getpid(); }

}  // namespace hvd::mpi
