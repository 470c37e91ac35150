// pair_mesh.h - the meshes of ranks that are threads of one process, over socket pairs, for tests;
// a link can be cut in the two ways a network fails. Any thread; never blocks.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "net/mesh.h"

namespace hvd::net {

enum class Cut {
  kClosed,  // both ends see the connection end, as when a process dies
  kSilent,  // nothing comes through any more, as when a cable is pulled
};

class PairNetwork {
 public:
  explicit PairNetwork(int32_t size);
  ~PairNetwork();
  PairNetwork(const PairNetwork&) = delete;
  PairNetwork& operator=(const PairNetwork&) = delete;

  // The mesh of `rank`; may outlive this object, like its streams.
  std::unique_ptr<Mesh> mesh(int32_t rank);
  // Cuts every stream between the two, those that are opened later included. Their objects must
  // still exist or never be used again.
  void cut(int32_t a, int32_t b, Cut how);

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the meshes and streams
};

}  // namespace hvd::net
