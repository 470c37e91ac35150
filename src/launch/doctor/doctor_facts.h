// doctor_facts.h - what `horovodrun doctor` finds out about one host, by looking at it from inside.
// Runs a Python interpreter; bounded in time. One thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "launch/os/environment_list.h"

namespace hvd::launch {

struct Fact {
  std::string name;
  std::string value;
  std::string advice;  // empty: fine as it is; else one sentence: why not, and what to do
};

struct HostFacts {
  std::vector<Fact> facts;
  std::string probe_addresses;  // where others may try to reach it
};

std::vector<Fact> find_facts(const EnvironmentList& environment);

// What the numbers mean; pure.
std::string shared_memory_advice(uint64_t free_bytes);
std::string open_files_advice(uint64_t soft_limit);

std::string encode(const HostFacts& facts);
Result<HostFacts> decode_facts(std::string_view payload);

}  // namespace hvd::launch
