// registry.h - the one list of backends, in order of preference. A new one is a folder in
// collective/ and a line in registry.cc.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "collective/backend.h"
#include "collective/gloo/domain.h"
#include "collective/gpu/options.h"
#include "collective/hosts/host_link.h"
#include "collective/shared_memory/link.h"

namespace hvd::collective {

// What there is to move data with in one channel.
struct Surroundings {
  shared_memory::Link& local;    // to the members of this host
  hosts::HostLink* hosts;        // to those of other hosts; null: there are none
  gloo::Domain* gloo = nullptr;  // null: the job does not use Gloo
  gpu::Options gpu{};
};

// Null: nothing for this channel.
using MakeBackend = std::unique_ptr<Backend> (*)(const Surroundings& around);

std::span<const MakeBackend> registered_backends();

// Those that apply, in order of preference.
std::vector<std::unique_ptr<Backend>> make_backends(
    const Surroundings& around, std::span<const MakeBackend> makers = registered_backends());

}  // namespace hvd::collective
