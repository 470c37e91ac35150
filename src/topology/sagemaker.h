// sagemaker.h - the place of a container in a SageMaker training job. Pure; any thread.
#pragma once

#include "topology/launcher.h"

namespace hvd::topology {

inline constexpr char kResourceFile[] = "/opt/ml/input/config/resourceconfig.json";

// From the resource file that every container has, or SM_HOSTS and SM_CURRENT_HOST, which only the
// training toolkit sets. None for a job of one host. Rank 0 is on the first host, algo-1; one rank
// per host, or as many as HOROVOD_LOCAL_SIZE says.
Result<std::optional<LauncherFacts>> sagemaker_facts(const Environment& environment,
                                                     const FileReader& files);

}  // namespace hvd::topology
