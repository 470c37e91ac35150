// library.h - the plug-in libhorovod_gloo.so: where it is, and its table once it is loaded. Any
// thread. Loading reads files, and may block as the file system does.
#pragma once

#include <string>
#include <vector>

#include "base/settings.h"
#include "base/status.h"
#include "gloo/choice.h"
#include "gloo/plugin.h"

namespace hvd::gloo {

// HOROVOD_GLOO_PLUGIN, or the places beside the file that holds this code: its folder, and the
// folders in which packages put libraries for a program.
std::vector<std::string> plugin_candidates(const Environment& environment,
                                           const std::string& own_file);

// Loads it, once per process, so that neither it nor its Gloo is bound to another Gloo in the
// process (torch brings one). PRECONDITION_ERROR: it is not there, its Gloo is missing or too old,
// or its table is of another version; the text says what was tried.
Result<const hvd_gloo_plugin*> load(const Environment& environment);

// What this rank can offer the job; loads the plug-in where it is asked for.
Offer make_offer(const Environment& environment);

// The checks of a table that was found. Pure.
Result<const hvd_gloo_plugin*> check_table(const hvd_gloo_plugin* table, const std::string& path);

}  // namespace hvd::gloo
