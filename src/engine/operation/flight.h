// flight.h - the ring of last operations of every rank, always on, in shared memory so that a stall
// report can say what other ranks did last. Reading is racy by design and only for people.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/engine_role.h"
#include "shm/job.h"
#include "wire/request.h"

namespace hvd::engine {

enum class FlightState : uint8_t { kSubmitted = 0, kRunning = 1, kDone = 2, kFailed = 3 };

class Flight {
 public:
  explicit Flight(const shm::Job& job) : job_(job), mine_(job.mine()) {}

  // Returns the number of the entry.
  uint32_t begin(wire::Kind kind, uint32_t channel, uint64_t bytes, std::string_view name,
                 uint64_t unnamed_number) HVD_REQUIRES(submit_side);
  void set_state(uint32_t number, FlightState state) {
    shm::FlightEntry& entry = mine_.flight[number % shm::kFlightEntries];
    if (entry.number.load(std::memory_order_relaxed) == number) {
      entry.state.store(static_cast<uint8_t>(state), std::memory_order_relaxed);
    }
  }
  void end(uint32_t number, FlightState state) HVD_REQUIRES(engine_role);

  // How long ago `rank` submitted its last operation of this kind and name; zero if it is not
  // there.
  Nanoseconds since_submission(int rank, wire::Kind kind, uint32_t channel, std::string_view name,
                               uint64_t unnamed_number) const;

  // One line per operation of `rank`, oldest first, at most `most`; no newline after the last.
  std::string describe(int rank, size_t most) const;

 private:
  std::string describe_entry(const shm::FlightEntry& entry) const;

  const shm::Job& job_;
  shm::RankBlock& mine_;
};

inline uint32_t Flight::begin(wire::Kind kind, uint32_t channel, uint64_t bytes,
                              std::string_view name, uint64_t unnamed_number) {
  const uint32_t number = mine_.flight_next.load(std::memory_order_relaxed) + 1;
  mine_.flight_next.store(number, std::memory_order_relaxed);
  shm::FlightEntry& entry = mine_.flight[number % shm::kFlightEntries];
  entry.kind = static_cast<uint8_t>(kind);
  entry.state.store(static_cast<uint8_t>(FlightState::kSubmitted), std::memory_order_relaxed);
  entry.channel = static_cast<uint16_t>(channel);
  entry.submitted.store(ticks_now(), std::memory_order_relaxed);
  entry.done.store(0, std::memory_order_relaxed);
  entry.bytes.store(bytes, std::memory_order_relaxed);
  // The end of a name tells more than its beginning.
  const size_t length = std::min(name.size(), sizeof entry.name);
  entry.name_length = static_cast<uint8_t>(length);
  if (HVD_LIKELY(length > 0)) {
    std::memcpy(entry.name, name.data() + (name.size() - length), length);
  } else {
    entry.unnamed_number.store(unnamed_number, std::memory_order_relaxed);
  }
  entry.number.store(number, std::memory_order_release);
  return number;
}

}  // namespace hvd::engine
