// gloo_peer.h - Gloo over TCP as a contestant.
// gloo_peer.cc holds it; gloo_absent.cc is built into programs without Gloo.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace hvd::bench {

class GlooPeer {
 public:
  struct Place {
    int rank = 0;
    int size = 1;
    std::string directory;       // an empty directory, the same on all ranks: Gloo's rendezvous
    std::string interface = {};  // empty: loopback
  };
  // Collective. Null where this program was built without Gloo.
  static std::unique_ptr<GlooPeer> connect(const Place& place);
  virtual ~GlooPeer() = default;

  // The operation "sum of float32 in place"; valid as long as this object and the data live.
  virtual std::function<void()> allreduce(float* data, size_t count) = 0;
};

}  // namespace hvd::bench
