// backend.h - large reductions by the library below the mesh (MPI), where every host has one
// member. It shares the streams of collective/hosts, and with them their order.
#pragma once

#include "collective/hosts/backend.h"

namespace hvd::collective::library {

class LibraryBackend final : public hosts::StreamBackend {
 public:
  // Only where hosts.library() is there.
  LibraryBackend(shared_memory::Link& local, hosts::HostLink& hosts);

  std::string_view name() const override { return "library"; }
  const Capabilities& capabilities() const override { return capabilities_; }

 private:
  std::unique_ptr<Task> make_task(Work& work) override;

  const Capabilities capabilities_;
};

}  // namespace hvd::collective::library
