#include "gloo_peer.h"

#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sched.h>
#include <unistd.h>

namespace hvd::bench {
namespace {

// Gloo's event loop is a thread. Under mpirun a rank is bound to one core, where that thread would
// fight with the rank itself; it gets all cores, as it would have without mpirun.
class AllCores {
 public:
  AllCores() {
    sched_getaffinity(0, sizeof(before_), &before_);
    cpu_set_t all;
    CPU_ZERO(&all);
    for (long cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); ++cpu) CPU_SET(cpu, &all);
    sched_setaffinity(0, sizeof(all), &all);
  }
  ~AllCores() { sched_setaffinity(0, sizeof(before_), &before_); }
  AllCores(const AllCores&) = delete;
  AllCores& operator=(const AllCores&) = delete;

 private:
  cpu_set_t before_;
};

class TcpGlooPeer final : public GlooPeer {
 public:
  explicit TcpGlooPeer(const Place& place)
      : context_(std::make_shared<gloo::rendezvous::Context>(place.rank, place.size)) {
    const AllCores while_the_thread_starts;
    gloo::rendezvous::FileStore store(place.directory);
    const bool on_loopback = place.interface.empty();
    gloo::transport::tcp::attr address(on_loopback ? "127.0.0.1" : "");
    address.iface = place.interface;
    auto device = gloo::transport::tcp::CreateDevice(address);
    context_->connectFullMesh(store, device);
  }

  std::function<void()> allreduce(float* data, size_t count) override {
    // shared_ptr: std::function wants a copyable callable, the options are not.
    auto options = std::make_shared<gloo::AllreduceOptions>(context_);
    options->setOutput(data, count);
    options->setReduceFunction(
        [](void* c, const void* a, const void* b, size_t n) { gloo::sum<float>(c, a, b, n); });
    return [options] { gloo::allreduce(*options); };
  }

 private:
  std::shared_ptr<gloo::rendezvous::Context> context_;  // shared with Gloo's options
};

}  // namespace

std::unique_ptr<GlooPeer> GlooPeer::connect(const Place& place) {
  return std::make_unique<TcpGlooPeer>(place);
}

}  // namespace hvd::bench
