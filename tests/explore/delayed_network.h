// delayed_network.h - streams between ranks whose bytes come when the scheduler lets them: each
// direction of each stream is a fiber, so that messages overtake those of other streams and never
// those of their own.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "net/mesh.h"
#include "tests/explore/scheduler.h"

namespace hvd::explore {

class DelayedNetwork {
 public:
  explicit DelayedNetwork(Scheduler& scheduler) : scheduler_(scheduler) {}

  std::unique_ptr<net::Mesh> mesh(int32_t rank);
  // Bytes have come for `rank` that it has not taken.
  bool has_news(int32_t rank) const;
  // Lets everything through; true: there was something.
  bool deliver_all();
  // Of what is on its way and has come: part of the state of a run.
  uint64_t digest() const;

  struct Pipe {
    int32_t to = 0;
    std::deque<std::vector<std::byte>> on_its_way;  // a part per send
    std::deque<std::byte> here;
    // Bytes in all: how far sender and receiver are, which keep that to themselves.
    uint64_t sent = 0, taken = 0;
  };

 private:
  struct Ends {
    std::shared_ptr<Pipe> up, down;  // from the lower rank to the higher one, and back
    int given = 0;                   // to one rank, or both
    int32_t first_owner = -1;
  };
  class DelayedMesh;
  Result<std::unique_ptr<net::Stream>> connect(int32_t rank, int32_t peer, uint64_t purpose);
  std::shared_ptr<Pipe> make_pipe(int32_t to);
  static void deliver(Pipe& pipe);

  Scheduler& scheduler_;
  std::map<std::tuple<int32_t, int32_t, uint64_t>, std::deque<Ends>> ends_;
  std::vector<std::shared_ptr<Pipe>> pipes_;
};

}  // namespace hvd::explore
