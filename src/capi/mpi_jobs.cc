#include "capi/mpi_jobs.h"

#include <cstddef>
#include <span>
#include <utility>

#include "base/text.h"
#include "mpi/find_library.h"
#include "mpi/take_leave.h"
#include "topology/variables.h"

namespace hvd::capi {
namespace {

bool has_mpi_fields(const hvd_init_options* o) {
  constexpr uint32_t kEnd = offsetof(hvd_init_options, mpi_rank_count) + sizeof(int32_t);
  return o != nullptr && o->struct_size >= kEnd;
}
const void* comm_of(const hvd_init_options* o) { return has_mpi_fields(o) ? o->mpi_comm : nullptr; }
std::span<const int32_t> ranks_of(const hvd_init_options* o) {
  if (!has_mpi_fields(o) || o->mpi_ranks == nullptr || o->mpi_rank_count <= 0) return {};
  return {o->mpi_ranks, static_cast<size_t>(o->mpi_rank_count)};
}

// mpirun of one MPI and the library of another: every process is a job of its own.
Status check_world(const Environment& environment, mpi::Api& api) {
  HVD_TRY_ASSIGN(const int size, api.size(api.world()));
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "HOROVOD_SIZE"}) {
    HVD_TRY_ASSIGN(const auto expected, topology::integer_variable(environment, name, 1));
    if (!expected || *expected == size || size > 1) continue;
    return precondition_error(concat(
        "init: ", api.name(), " says that this process is alone, but ", name, " is ", *expected,
        ": the launcher is not the one of this library; start the job with its "
        "mpirun, or name the other library in HOROVOD_MPI_LIBRARY"));
  }
  return Status::ok();
}

}  // namespace

Result<mpi::Choice> MpiJobs::choose(const hvd_init_options* options,
                                    const Environment& environment) {
  const bool has_comm = comm_of(options) != nullptr;
  // A caller who says where it stands wants no other answer.
  if (options != nullptr && options->topology.size != -1 && !has_comm) return mpi::Choice{};
  return mpi::choose(environment, {.has_comm = has_comm,
                                   .has_ranks = !ranks_of(options).empty(),
                                   .is_loaded = mpi::is_loaded()});
}

Result<mpi::Group*> MpiJobs::group_for(const hvd_init_options* options, Deadline deadline) {
  mpi::Api& api = process_->api();
  mpi::Comm base = api.world();
  if (const void* address = comm_of(options)) {
    base = api.comm_at(address);
  } else if (const auto ranks = ranks_of(options); !ranks.empty()) {
    HVD_TRY_ASSIGN(base, mpi::comm_of_ranks(api, ranks));
  }
  const bool is_world = base == api.world();
  if (is_world && world_ != nullptr) return world_;
  HVD_TRY_ASSIGN(auto group, mpi::Group::open(api, base, deadline));
  groups_.push_back(std::move(group));
  if (is_world) world_ = groups_.back().get();
  return groups_.back().get();
}

Result<mpi::Joined> MpiJobs::join(const hvd_init_options* options, const Environment& environment,
                                  const mpi::Choice& choice, uint64_t epoch, Deadline deadline) {
  if (process_ == nullptr) {
    auto process = mpi::Process::start(environment);
    if (!process) {
      return Status(process.status().code(), concat("init: MPI is to be used (", choice.reason,
                                                    "), but ", process.status().message()));
    }
    process_ = std::move(*process);
    HVD_TRY(check_world(environment, process_->api()));
  }
  HVD_TRY_ASSIGN(mpi::Group* const group, group_for(options, deadline));
  return mpi::join(*group, environment, choice.carrier, epoch, deadline);
}

void MpiJobs::finalize(int exit_status) {
  if (process_ == nullptr || !process_->is_ours() || !may_finalize_) return;
  if (process_->api().is_finalized()) return;
  std::vector<mpi::Group*> groups;
  for (const auto& group : groups_) groups.push_back(group.get());
  mpi::take_leave(process_->api(), groups, exit_status);
}

}  // namespace hvd::capi
