#include "engine/operation/flight.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/clock.h"
#include "base/text.h"

namespace hvd::engine {

void Flight::end(uint32_t number, FlightState state) {
  shm::FlightEntry& entry = mine_.flight[number % shm::kFlightEntries];
  if (entry.number.load(std::memory_order_relaxed) != number) return;
  entry.done.store(ticks_now(), std::memory_order_relaxed);
  entry.state.store(static_cast<uint8_t>(state), std::memory_order_relaxed);
}

std::string Flight::describe_entry(const shm::FlightEntry& entry) const {
  constexpr std::string_view kStates[] = {"submitted", "running", "done", "failed"};
  const uint64_t now = ticks_now();
  const auto seconds_ago = [&](uint64_t ticks) {
    return ticks == 0 || ticks > now ? 0.0 : static_cast<double>(now - ticks) / ticks_per_second();
  };
  std::string name(entry.name, std::min<size_t>(entry.name_length, sizeof entry.name));
  const uint64_t unnamed = entry.unnamed_number.load(std::memory_order_relaxed);
  if (name.empty() && unnamed != 0 && entry.kind < wire::kKindCount)
    name = wire::unnamed_text(static_cast<wire::Kind>(entry.kind), unnamed);
  const auto kind = entry.kind < wire::kKindCount
                        ? wire::kind_lower_name(static_cast<wire::Kind>(entry.kind))
                        : "?";
  const uint8_t state = entry.state.load(std::memory_order_relaxed);
  char times[96];
  std::snprintf(times, sizeof times, "submitted %.6f s ago",
                seconds_ago(entry.submitted.load(std::memory_order_relaxed)));
  const uint64_t submitted = entry.submitted.load(std::memory_order_relaxed);
  const uint64_t done = entry.done.load(std::memory_order_relaxed);
  if (done > submitted) {
    const size_t used = std::strlen(times);
    std::snprintf(times + used, sizeof times - used, ", took %.6f s",
                  static_cast<double>(done - submitted) / ticks_per_second());
  }
  return concat("#", entry.number.load(std::memory_order_relaxed), " ", kind,
                name.empty() ? "" : " '", name, name.empty() ? "" : "'", " ",
                entry.bytes.load(std::memory_order_relaxed), " bytes, process set ", entry.channel,
                ", ", state < 4 ? kStates[state] : "?", ", ", std::string_view(times));
}

std::string Flight::describe(int rank, size_t most) const {
  const shm::RankBlock& block = job_.block(rank);
  const uint32_t last = block.flight_next.load(std::memory_order_acquire);
  const uint32_t count = static_cast<uint32_t>(
      std::min<size_t>({most, last, static_cast<size_t>(shm::kFlightEntries)}));
  std::string text;
  for (uint32_t number = last - count + 1; number != last + 1; ++number) {
    const shm::FlightEntry& entry = block.flight[number % shm::kFlightEntries];
    if (entry.number.load(std::memory_order_acquire) != number) continue;
    if (!text.empty()) text += '\n';
    text += describe_entry(entry);
  }
  return text;
}

Nanoseconds Flight::since_submission(int rank, wire::Kind kind, uint32_t channel,
                                     std::string_view name, uint64_t unnamed_number) const {
  const shm::RankBlock& block = job_.block(rank);
  const uint32_t last = block.flight_next.load(std::memory_order_acquire);
  const std::string_view end =
      name.substr(name.size() - std::min(name.size(), sizeof block.flight[0].name));
  for (uint32_t n = 0; n < shm::kFlightEntries && n < last; ++n) {
    const shm::FlightEntry& entry = block.flight[(last - n) % shm::kFlightEntries];
    if (entry.number.load(std::memory_order_acquire) != last - n ||
        entry.kind != static_cast<uint8_t>(kind) || entry.channel != channel ||
        std::string_view(entry.name, std::min<size_t>(entry.name_length, sizeof entry.name)) !=
            end ||
        (end.empty() && entry.unnamed_number.load(std::memory_order_relaxed) != unnamed_number)) {
      continue;
    }
    const uint64_t now = ticks_now();
    const uint64_t then = entry.submitted.load(std::memory_order_relaxed);
    if (then > now) return Nanoseconds(0);
    return Nanoseconds(
        static_cast<int64_t>(static_cast<double>(now - then) / ticks_per_second() * 1e9));
  }
  return Nanoseconds(0);
}

}  // namespace hvd::engine
