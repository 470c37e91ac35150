// gloo_facts.h - whether this host has the Gloo plug-in of horovod, beside horovod's own engine.
// Loads it; asks a Python interpreter for the package's folder. Bounded in time; one thread.
#pragma once

#include <string>
#include <vector>

#include "launch/os/environment_list.h"

namespace hvd::launch {

struct GlooFacts {
  bool is_available = false;
  std::string text;  // which Gloo, or why there is none
};

// `pythons`: interpreters to ask where the package is, in this order.
GlooFacts find_gloo(const EnvironmentList& environment, const std::vector<std::string>& pythons);

// The interpreters that may have horovod. The one that this program was installed with comes first:
// its environment need not be activated.
std::vector<std::string> pythons_to_ask();

}  // namespace hvd::launch
