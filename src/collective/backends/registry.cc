#include "collective/backends/registry.h"

#include "collective/hosts/backend.h"
#include "collective/library/backend.h"
#include "collective/shared_memory/backend.h"

namespace hvd::collective {
namespace {

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

}  // namespace

std::span<const MakeBackend> registered_backends() {
  static constexpr MakeBackend kBackends[] = {make_library, make_hosts, make_shared_memory};
  return kBackends;
}

std::vector<std::unique_ptr<Backend>> make_backends(const Surroundings& around,
                                                    std::span<const MakeBackend> makers) {
  std::vector<std::unique_ptr<Backend>> backends;
  for (const MakeBackend make : makers) {
    if (auto backend = make(around)) backends.push_back(std::move(backend));
  }
  return backends;
}

}  // namespace hvd::collective
