// elastic_worker.h - what a worker of an elastic job does in the tests: steps with the others, in
// one world after the other, until a file is there. A test program that horovodrun starts again
// takes this role from its arguments.
#pragma once

#include <optional>

namespace hvd::testing {

// The argument that makes a test program an elastic worker; the name of the file follows, then
//   dies-in-init RANK   the worker that is first given this rank dies when it knows its place, so
//                       that the others wait for it in init
//   dies-in-reset RANK  the worker that has this rank when its world is lost dies instead of coming
//                       back
//   cannot-start N      workers from number N on end at once
//   large N             each step also sums N floats
// Says "epoch E rank R of N is P" at the start of each world, where P is its process, and
// "finished after S steps" at the end. Exits with 9 if a sum is wrong.
inline constexpr char kElasticFlag[] = "--elastic-worker";

// The exit code, or nullopt: this process is no such worker.
std::optional<int> run_as_elastic_worker(int argc, char** argv);

}  // namespace hvd::testing
