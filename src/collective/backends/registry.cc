#include "collective/backends/registry.h"

#include "collective/gloo/backend.h"
#include "collective/gpu/backend.h"
#include "collective/hosts/backend.h"
#include "collective/library/backend.h"
#include "collective/shared_memory/backend.h"

namespace hvd::collective {
namespace {

std::unique_ptr<Backend> make_gloo(const Surroundings& around) {
  if (around.hosts == nullptr || around.gloo == nullptr) return nullptr;
  return std::make_unique<gloo::GlooBackend>(around.local, *around.hosts, *around.gloo);
}

std::unique_ptr<Backend> make_library(const Surroundings& around) {
  if (around.hosts == nullptr || around.hosts->library() == nullptr) return nullptr;
  return std::make_unique<library::LibraryBackend>(around.local, *around.hosts);
}

std::unique_ptr<Backend> make_hosts(const Surroundings& around) {
  if (around.hosts == nullptr) return nullptr;
  return std::make_unique<hosts::HostsBackend>(around.local, *around.hosts);
}

std::unique_ptr<Backend> make_shared_memory(const Surroundings& around) {
  if (around.hosts != nullptr) return nullptr;  // it reaches the members of one host alone
  return std::make_unique<shared_memory::SharedMemoryBackend>(around.local);
}

// Moves device memory by NCCL, or with the backends before it.
void add_gpu(const Surroundings& around, std::vector<std::unique_ptr<Backend>>& backends) {
  std::vector<Backend*> hosts;
  for (const auto& backend : backends) hosts.push_back(backend.get());
  backends.push_back(std::make_unique<gpu::GpuBackend>(around.local, around.gpu, std::move(hosts)));
}

}  // namespace

std::span<const MakeBackend> registered_backends() {
  static constexpr MakeBackend kBackends[] = {make_gloo, make_library, make_hosts,
                                              make_shared_memory};
  return kBackends;
}

std::vector<std::unique_ptr<Backend>> make_backends(const Surroundings& around,
                                                    std::span<const MakeBackend> makers) {
  std::vector<std::unique_ptr<Backend>> backends;
  for (const MakeBackend make : makers) {
    if (auto backend = make(around)) backends.push_back(std::move(backend));
  }
  add_gpu(around, backends);
  return backends;
}

}  // namespace hvd::collective
