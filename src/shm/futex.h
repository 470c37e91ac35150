// futex.h - sleeping on a word that several processes share. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace hvd::shm {

enum class FutexResult { kWoken, kTimedOut };

// Sleeps while *word == expected, at most `span`. Returns early on a wake, a change or a signal.
FutexResult futex_wait(std::atomic<uint32_t>& word, uint32_t expected, Nanoseconds span);
void futex_wake(std::atomic<uint32_t>& word, int count);

}  // namespace hvd::shm
