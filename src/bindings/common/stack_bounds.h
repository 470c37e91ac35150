// stack_bounds.h - whether an object lies on the stack of the calling thread.
//
// Frameworks pass callbacks by the address of an object that may be on the caller's stack and gone
// when the adapter's function returns; one that is must be copied.
#pragma once

namespace hvd::bindings {

// On the thread whose stack is meant. False also when the system does not tell.
bool is_on_my_stack(const void* address);

}  // namespace hvd::bindings
