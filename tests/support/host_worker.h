// host_worker.h - what a rank of a job on several hosts does: a test program that horovodrun starts
// again as a rank takes its role from its arguments. Failed EXPECT_s make the rank exit with 1.
#pragma once

#include <optional>

namespace hvd::testing {

// The argument that makes a test program a rank; the role and its arguments follow.
inline constexpr char kRankFlag[] = "--rank";

//   operations           every operation against its reference
//   steps COUNT BYTES    so many allreduces; says "runs" behind the first, "done" behind the last
//   objects COUNT BYTES  so many broadcasts of bytes, with allreduces between; says "got a wrong
//                        object", or "has all objects" at the end
//   until-failure BYTES  allreduces until one fails; says when and why, and exits with 1
//   stubborn BYTES       the same, deaf to SIGTERM and SIGINT
//   one-fails RANK HOW   the same, while that rank ends early: kill, stop, exit-N (without
//                        shutdown), shutdown-N (then exit)
//   resized BYTES        shuts down after some allreduces, and does the same in a second job of all
//                        ranks but the last; says "goes on with N ranks"
//   tuned PROFILE BYTES  allreduces, small and large ones, until the autotuner has written it
//   wait FIFO            waits in a barrier for rank 0, which first reads a line from the pipe;
//                        says how much processor time that took
// Stands in each of those objects.
inline constexpr char kObjectMark[] = "nobody may see this pickle";
// The exit code, or nullopt: this process is no rank.
std::optional<int> run_as_rank(int argc, char** argv);

}  // namespace hvd::testing
