// toy_backend.h - the smallest backend that does something: it writes down which works it gets and
// forwards them. Proof that a backend is a folder and a line in a list.
#pragma once

#include <string>
#include <vector>

#include "collective/backends/registry.h"
#include "collective/shared_memory/backend.h"

namespace hvd::collective::toy {

// What all toys of this process were given, in order: "reduce of 3 elements".
std::vector<std::string>& journal();

class ToyBackend final : public Backend {
 public:
  explicit ToyBackend(shared_memory::Link& link) : below_(link) {}

  std::string_view name() const override { return "toy"; }
  const Capabilities& capabilities() const override;  // sums of float32 alone
  Progress advance(std::deque<Work*>& queue, std::vector<Work*>& done) override;
  void abandon() override { below_.abandon(); }
  shm::Want want() const override { return below_.want(); }
  int awaited_here() const override { return below_.awaited_here(); }
  std::vector<int> awaited_elsewhere() const override { return below_.awaited_elsewhere(); }
  bool spans_hosts() const override { return below_.spans_hosts(); }
  void add_descriptors(std::vector<pollfd>& out) override { below_.add_descriptors(out); }
  const Status& status() const override { return below_.status(); }

 private:
  shared_memory::SharedMemoryBackend below_;
  std::deque<Work*> forwarded_;
};

std::unique_ptr<Backend> make_toy(const Surroundings& around);

}  // namespace hvd::collective::toy
