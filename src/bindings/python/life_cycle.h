// life_cycle.h - which life of the engine this is. Thread: any.
#pragma once

#include <cstdint>

namespace hvd::python {

// Counts inits and shutdowns: memory of an earlier life must not be given to the engine of a later
// one.
uint64_t current_life();

}  // namespace hvd::python
