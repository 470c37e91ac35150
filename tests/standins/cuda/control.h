// control.h - knobs and counters of the stand-in for libcuda, for tests. Any thread.
// By environment, read once: STANDIN_<NAME IN UPPER CASE>.
#pragma once

#include <cstdint>

extern "C" {

// Knobs: "devices", "item_delay_us" (every item of every stream), "copy_mib_per_s" (0: as quick as
// memory), "copy_engine" (1: a copy takes the time of its rate, no processor, and moves nothing:
// for measurements), "capturing" (1: every stream is being captured).
void standin_set(const char* knob, int64_t value);
// A knob, or a counter: "events_alive", "streams_alive", "allocations_alive", "pinned_alive",
// "host_blocks" (calls that waited for a stream), "items" (run by streams), "kernels" (launched),
// "questions" (how far an event is).
int64_t standin_get(const char* name);
// The nth call of a function from now on (1: the next) returns `code`.
void standin_fail(const char* function, int64_t nth, int code);

// Where a thread of a stream touches device memory; null: not device memory.
void* standin_view(const void* device_pointer);
// Runs `work` in stream order. For the other stand-ins.
void standin_enqueue(void* stream, void (*work)(void*), void* argument);
}
