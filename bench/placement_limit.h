// placement_limit.h - where "near" ends. Apart from placement.h, so that the report needs no group.
#pragma once

namespace hvd::bench {

// Below this two cores share a cache: 55 ns for threads of one core, 90-130 ns on one die;
// the next step seen is 300 ns and more.
inline constexpr double kNearLimitNs = 200;
inline bool is_near(double round_trip_ns) { return round_trip_ns < kNearLimitNs; }

}  // namespace hvd::bench
