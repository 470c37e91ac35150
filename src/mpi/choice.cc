#include "mpi/choice.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/text.h"
#include "topology/variables.h"

namespace hvd::mpi {
namespace {

using topology::position_variables;
using topology::text_variable;

std::string lower_case(const Environment& environment, const char* name) {
  std::string text = text_variable(environment, name).value_or("");
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

struct Launch {
  std::string launcher;  // "Open MPI"
  bool has_several_hosts = false;
};

// What mpirun says, unless another launcher started this process inside of it.
Result<std::optional<Launch>> mpirun_launch(const Environment& environment) {
  for (const char* inner : {"HOROVOD_RANK", "TORCHELASTIC_RUN_ID"}) {
    if (text_variable(environment, inner)) return std::optional<Launch>();
  }
  struct Row {
    const char *launcher, *rank, *size, *local_rank, *local_size;
  };
  constexpr Row kRows[] = {
      {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
       "OMPI_COMM_WORLD_LOCAL_SIZE"},
      {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
      {"PMI", "PMI_RANK", "PMI_SIZE", "PMI_LOCAL_RANK", "PMI_LOCAL_SIZE"},
  };
  for (const Row& row : kRows) {
    HVD_TRY_ASSIGN(const auto world, position_variables(environment, row.rank, row.size));
    if (!world) continue;
    HVD_TRY_ASSIGN(const auto local,
                   position_variables(environment, row.local_rank, row.local_size));
    if (local) return std::optional(Launch{row.launcher, local->size < world->size});
  }
  return std::optional<Launch>();
}

// The user or our launcher says where the ranks meet.
bool names_a_store(const Environment& environment) {
  for (const char* name :
       {"HOROVOD_STORE_ADDRESSES", "HOROVOD_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_ADDR"}) {
    if (text_variable(environment, name)) return true;
  }
  return false;
}

}  // namespace

Result<Choice> choose(const Environment& environment, const Wishes& wishes) {
  const std::string controller = lower_case(environment, "HOROVOD_CONTROLLER");
  const std::string operations = lower_case(environment, "HOROVOD_CPU_OPERATIONS");
  const bool is_ruled_out = controller == "native" || controller == "gloo";
  const bool is_native = operations == "native" || operations == "gloo";
  const Carrier carrier = is_native ? Carrier::kNative : Carrier::kMpi;
  if (wishes.has_comm && is_ruled_out) {
    return invalid_argument(
        concat("init: an MPI communicator was given, but HOROVOD_CONTROLLER is ", controller,
               "; leave it unset or set it to mpi"));
  }
  if (is_ruled_out && operations == "mpi") {
    return invalid_argument(concat("HOROVOD_CPU_OPERATIONS is mpi, but HOROVOD_CONTROLLER is ",
                                   controller, "; leave it unset or set it to mpi"));
  }
  if (is_ruled_out) return Choice{false, Carrier::kNative, "HOROVOD_CONTROLLER is " + controller};
  if (wishes.has_comm) return Choice{true, carrier, "init was given a communicator"};
  if (controller == "mpi") return Choice{true, carrier, "HOROVOD_CONTROLLER is mpi"};
  if (operations == "mpi") return Choice{true, carrier, "HOROVOD_CPU_OPERATIONS is mpi"};
  HVD_TRY_ASSIGN(const auto launch, mpirun_launch(environment));
  if (wishes.has_ranks && (launch || wishes.is_loaded))
    return Choice{true, carrier, "init was given ranks of MPI_COMM_WORLD"};
  if (!launch) return Choice{false, Carrier::kNative, "no mpirun has started this process"};
  if (!launch->has_several_hosts)
    return Choice{false, Carrier::kNative, "all ranks of mpirun are on one host"};
  if (names_a_store(environment))
    return Choice{false, Carrier::kNative, "the environment names a rendezvous store"};
  return Choice{true, carrier, launch->launcher + " has started ranks on several hosts"};
}

}  // namespace hvd::mpi
