// rank_text.h - how messages name the ranks of this host. Pure.
#pragma once

#include <cstring>
#include <string_view>

#include "shm/job_layout.h"

namespace hvd::engine {

inline std::string_view host_of(const shm::RankBlock& block) {
  return {block.hostname, strnlen(block.hostname, sizeof block.hostname)};
}

}  // namespace hvd::engine
