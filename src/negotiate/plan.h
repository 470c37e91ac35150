// plan.h - sizes that follow from requests that fit together. Internal to negotiate/. Pure; any
// thread.
#pragma once

#include <span>

#include "negotiate/validate.h"

namespace hvd::negotiate {

// `first` is any request of the list; the others have passed every rule of validate() against it.
// Null entries are ranks that have joined.
Plan make_plan(const wire::Request& first, std::span<const wire::Request* const> requests);

}  // namespace hvd::negotiate
