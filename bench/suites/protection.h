// suite_protection.h - what encryption between two hosts costs: the same operations of engines that
// differ in HOROVOD_TLS. Collective; one thread.
#pragma once

#include <vector>

#include "suites/hosts.h"

namespace hvd::bench {

std::vector<CaseReadings> run_protection(const World& world, const HostsOptions& options);

}  // namespace hvd::bench
