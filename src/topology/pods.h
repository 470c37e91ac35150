// pods.h - the place of a pod of a Kubernetes Indexed Job. Pure; any thread.
#pragma once

#include "topology/launcher.h"

namespace hvd::topology {

// Pods get JOB_COMPLETION_INDEX; HOROVOD_SIZE is the sign that they belong together, since an index
// alone is also that of a job whose pods have nothing to do with each other. One rank per pod, or
// as many as HOROVOD_LOCAL_SIZE says. Rank 0 is in the first pod, <job>-0, whose full name follows
// from the own one in /etc/hosts (the pods need a headless service as their subdomain).
Result<std::optional<LauncherFacts>> indexed_job_facts(const Environment& environment,
                                                       const FileReader& files);

}  // namespace hvd::topology
