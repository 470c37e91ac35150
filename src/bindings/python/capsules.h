// capsules.h - memory of the core as a DLPack capsule, which owns it until a framework takes it
// over.
#pragma once

#include "bindings/python/api.h"

#include <cstdint>
#include <span>

#include "bindings/python/dlpack.h"

namespace hvd::python {

// Frees the memory of a tensor. Runs on any thread, with or without the GIL, also after shutdown.
using FreeMemory = void (*)(void* data, uint64_t life);

struct Memory {
  void* data = nullptr;
  FreeMemory free = nullptr;
  uint64_t life = 0;  // passed to free: which init the memory belongs to
};

// Null: no dtype of hvd.h.
const DlDataType* dl_type(int32_t dtype);
// Takes the memory over, also on failure. A new reference, or null with an exception set.
// `device`: number of the GPU that the memory belongs to; -1: host memory.
PyObject* make_capsule(Memory memory, int32_t dtype, std::span<const int64_t> shape,
                       int32_t device = -1);

}  // namespace hvd::python
