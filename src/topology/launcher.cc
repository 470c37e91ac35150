#include "topology/launcher.h"

#include <fstream>
#include <sstream>

#include "topology/pods.h"
#include "topology/sagemaker.h"
#include "topology/slurm.h"

namespace hvd::topology {
namespace {

using MaybeFacts = Result<std::optional<LauncherFacts>>;

MaybeFacts horovodrun_facts(const Environment& environment) {
  HVD_TRY_ASSIGN(const auto world, position_variables(environment, "HOROVOD_RANK", "HOROVOD_SIZE"));
  if (!world) return std::optional<LauncherFacts>();
  LauncherFacts facts{.launcher = Launcher::kHorovodrun, .world = *world};
  HVD_TRY_ASSIGN(facts.local,
                 position_variables(environment, "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE"));
  facts.job_name = name_from_variables(
      environment, "rendezvous", {"HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT"});
  return std::optional(facts);
}

MaybeFacts open_mpi_facts(const Environment& environment) {
  HVD_TRY_ASSIGN(const auto world,
                 position_variables(environment, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"));
  if (!world) return std::optional<LauncherFacts>();
  LauncherFacts facts{.launcher = Launcher::kOpenMpi, .world = *world};
  HVD_TRY_ASSIGN(facts.local, position_variables(environment, "OMPI_COMM_WORLD_LOCAL_RANK",
                                                 "OMPI_COMM_WORLD_LOCAL_SIZE"));
  facts.job_name = name_from_variables(environment, "ompi", {"PMIX_NAMESPACE"});
  if (facts.job_name.empty()) {
    facts.job_name = name_from_variables(environment, "ompi", {"OMPI_MCA_ess_base_jobid"});
  }
  return std::optional(facts);
}

// Hydra (MPICH, Intel MPI) adds MPI_LOCAL*, others PMI_LOCAL_*; srun --mpi=pmi2 adds only Slurm's
// own.
MaybeFacts pmi_facts(const Environment& environment) {
  HVD_TRY_ASSIGN(const auto world, position_variables(environment, "PMI_RANK", "PMI_SIZE"));
  if (!world) return std::optional<LauncherFacts>();
  LauncherFacts facts{.launcher = Launcher::kPmi, .world = *world};
  facts.job_name = name_from_variables(environment, "pmi", {"PMI_JOBID"});
  HVD_TRY_ASSIGN(facts.local,
                 position_variables(environment, "MPI_LOCALRANKID", "MPI_LOCALNRANKS"));
  if (facts.local) return std::optional(facts);
  HVD_TRY_ASSIGN(facts.local, position_variables(environment, "PMI_LOCAL_RANK", "PMI_LOCAL_SIZE"));
  if (facts.local) return std::optional(facts);
  HVD_TRY_ASSIGN(auto slurm, slurm_facts(environment));
  const bool same_task =
      slurm && slurm->world.rank == world->rank && slurm->world.size == world->size;
  if (!same_task) return std::optional(facts);
  slurm->launcher = Launcher::kPmi;
  return slurm;
}

MaybeFacts torch_facts(const Environment& environment) {
  HVD_TRY_ASSIGN(const auto world, position_variables(environment, "RANK", "WORLD_SIZE"));
  if (!world) return std::optional<LauncherFacts>();
  LauncherFacts facts{.world = *world};
  HVD_TRY_ASSIGN(facts.local, position_variables(environment, "LOCAL_RANK", "LOCAL_WORLD_SIZE"));
  HVD_TRY_ASSIGN(facts.cross, position_variables(environment, "GROUP_RANK", "GROUP_WORLD_SIZE"));
  facts.job_name = name_from_variables(
      environment, "torch",
      {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"});
  return std::optional(facts);
}

// torchrun is often started once per node by srun or mpirun, whose variables its workers inherit.
// This one only torchrun sets.
MaybeFacts torchrun_facts(const Environment& environment) {
  if (!text_variable(environment, "TORCHELASTIC_RUN_ID")) return std::optional<LauncherFacts>();
  HVD_TRY_ASSIGN(auto facts, torch_facts(environment));
  if (facts) facts->launcher = Launcher::kTorchrun;
  return facts;
}

}  // namespace

FileReader file_reader() {
  return [](const std::string& path) -> std::optional<std::string> {
    std::ifstream file(path);
    if (!file) return std::nullopt;
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  };
}

Result<std::optional<LauncherFacts>> launcher_facts(const Environment& environment,
                                                    const FileReader& files) {
  using Source = std::function<MaybeFacts(const Environment&)>;
  // The innermost launcher first. Files come last: they are there whoever started this process.
  const Source sources[] = {
      [&](const Environment& variables) { return indexed_job_facts(variables, files); },
      horovodrun_facts,
      torchrun_facts,
      open_mpi_facts,
      pmi_facts,
      slurm_facts,
      torch_facts,
      [&](const Environment& variables) { return sagemaker_facts(variables, files); },
  };
  for (const Source& source : sources) {
    HVD_TRY_ASSIGN(auto facts, source(environment));
    if (!facts) continue;
    // Wins over what the launcher gives, and is the way out where it gives nothing.
    HVD_TRY_ASSIGN(auto cross,
                   position_variables(environment, "HOROVOD_CROSS_RANK", "HOROVOD_CROSS_SIZE"));
    if (cross) facts->cross = cross;
    return facts;
  }
  return std::optional<LauncherFacts>();
}

}  // namespace hvd::topology
