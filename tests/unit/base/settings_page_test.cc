// Compares docs/settings.md with the table of settings; with HVD_UPDATE_DOCS=1 writes it anew.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/settings.h"
#include "base/text.h"
#include "tests/unit/base/source_tree.h"

namespace hvd {
namespace {

constexpr std::string_view kPreamble = R"(# Settings

The core reads these environment variables once, at `init`, or checks them for whoever reads them. This page is generated
from the table in `src/base/settings.cc`.

- A value that was valid for the original Horovod keeps its meaning.
- An empty or blank value counts as unset.
- A value that cannot be understood is an error at `init` that names the variable. The original took many of
  them for 0: `HOROVOD_AUTOTUNE=true` was off, `HOROVOD_FUSION_THRESHOLD=64MB` was 64 bytes.
- Words may be in upper or lower case. Numbers may have blanks around them, but no units.
)";

constexpr std::string_view kPlace = R"(
## Place in the job

Set by the launcher. The first line of the table that finds its first two variables counts; a job without any of them
has one process. What follows for jobs on several hosts: [cluster.md](cluster.md). See `src/topology`.

| Launcher | Rank, size | Local rank, local size | Cross rank, cross size |
| --- | --- | --- | --- |
| Kubernetes Indexed Job (`HOROVOD_RANK` is not set) | `JOB_COMPLETION_INDEX`, `HOROVOD_SIZE` | `HOROVOD_LOCAL_RANK`, `HOROVOD_LOCAL_SIZE`, or one rank per pod | index, pods |
| `horovodrun` | `HOROVOD_RANK`, `HOROVOD_SIZE` | `HOROVOD_LOCAL_RANK`, `HOROVOD_LOCAL_SIZE` | `HOROVOD_CROSS_RANK`, `HOROVOD_CROSS_SIZE` |
| `torchrun` (`TORCHELASTIC_RUN_ID` is set) | `RANK`, `WORLD_SIZE` | `LOCAL_RANK`, `LOCAL_WORLD_SIZE` | `GROUP_RANK`, `GROUP_WORLD_SIZE` |
| Open MPI | `OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE` | `OMPI_COMM_WORLD_LOCAL_RANK`, `OMPI_COMM_WORLD_LOCAL_SIZE` | |
| MPICH, Intel MPI | `PMI_RANK`, `PMI_SIZE` | `MPI_LOCALRANKID`, `MPI_LOCALNRANKS` or `PMI_LOCAL_RANK`, `PMI_LOCAL_SIZE` | |
| `srun` (in a step) | `SLURM_PROCID`, `SLURM_STEP_NUM_TASKS` | `SLURM_LOCALID`, `SLURM_STEP_TASKS_PER_NODE` | `SLURM_NODEID`, `SLURM_STEP_TASKS_PER_NODE` |
| by hand | `RANK`, `WORLD_SIZE` | `LOCAL_RANK`, `LOCAL_WORLD_SIZE` | `GROUP_RANK`, `GROUP_WORLD_SIZE` |
| SageMaker, more than one host | `/opt/ml/input/config/resourceconfig.json`, or `SM_HOSTS`, `SM_CURRENT_HOST` | `HOROVOD_LOCAL_RANK`, `HOROVOD_LOCAL_SIZE`, or one rank per host | index, hosts |

`HOROVOD_CROSS_RANK` and `HOROVOD_CROSS_SIZE` complete any launcher. `HOROVOD_HOSTNAME` replaces the name of the host;
`HOROVOD_JOB_ID` names the job where the launcher gives no name that all its processes share.
)";

std::string settings_page() {
  std::string page(kPreamble);
  std::string group;
  for (const SettingInfo& info : describe_settings()) {
    if (info.group != group) {
      group = info.group;
      page += concat("\n## ", group,
                     "\n\n| Variable | Value | Default | Meaning |\n| --- | --- | --- | --- |\n");
    }
    const std::string shown = info.default_value.empty() ? "unset" : "`" + info.default_value + "`";
    page += concat("| `", info.name, "` | ", info.type, " | ", shown, " | ", info.meaning, " |\n");
  }
  page += kPlace;
  return page;
}

TEST(SettingsPage, EqualsTheTable) {
  if (process_environment()("HVD_UPDATE_DOCS") == "1") {
    std::ofstream(source_path("docs/settings.md")) << settings_page();
  }

  EXPECT_EQ(read_source("docs/settings.md"), settings_page())
      << "run this test with HVD_UPDATE_DOCS=1 to write the page anew";
}

}  // namespace
}  // namespace hvd
