// combine_by_host.h - a reduction whose payloads all lie on this host, in the order of a large one:
// members of a host first, then the hosts, each rounded once. So the bits of a result do not depend
// on the way that an operation took. Thread: any; uses a scratch block of the thread.
#pragma once

#include "collective/hosts/layout.h"
#include "collective/numeric.h"

namespace hvd::collective::small {

// As combine, which does the same where every host has one member; `slot_out` is not written.
void combine_by_host(const hosts::HostLayout& layout, const Numeric& numeric, const Combine& args);

}  // namespace hvd::collective::small
