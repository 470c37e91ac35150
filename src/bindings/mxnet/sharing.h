// sharing.h - which handles stand for the same memory.
//
// The engine waits for ever if one push names the memory of an array twice: by the same handle, or
// by a view (a slice, a reshaped array), which has a handle of its own. An NDArray begins with the
// pointer to its memory, shared with its views; learn_sharing() makes sure that this is so.
#pragma once

#include <vector>

#include "bindings/mxnet/api.h"

namespace hvd::mxnet {

// Shown an array, a view of it, and another array. False: views cannot be recognized, and only
// equal handles count as shared.
bool learn_sharing(Handle array, Handle view, Handle other);

bool is_shared(Handle handle, const std::vector<Handle>& handles);
void add_unless_shared(Handle handle, std::vector<Handle>& handles);

}  // namespace hvd::mxnet
