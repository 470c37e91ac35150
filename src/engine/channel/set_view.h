// set_view.h - a process set as the data plane sees it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "collective/hosts/layout.h"

namespace hvd::engine {

struct SetView {
  int size;
  int me;  // set rank
  const std::vector<int32_t>* global_ranks;
  // Where members of several hosts share some of them, and so are combined host by host; else null.
  const collective::hosts::HostLayout* hosts = nullptr;

  // The member with this global rank, which is one.
  size_t place_of(int32_t global_rank) const {
    return static_cast<size_t>(std::find(global_ranks->begin(), global_ranks->end(), global_rank) -
                               global_ranks->begin());
  }
};

}  // namespace hvd::engine
