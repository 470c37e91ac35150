// admission.h - what a channel lets in: checks a submission as far as one rank can, looks up what
// was agreed before under its names, and knows which names are in flight. Never blocks.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "base/engine_role.h"
#include "base/status.h"
#include "engine/channel/channel_tuning.h"
#include "engine/channel/membership.h"
#include "engine/operation/name_table.h"
#include "engine/operation/operation.h"
#include "engine/operation/statistics.h"
#include "engine/operation/submission.h"

namespace hvd::engine {

class Admission {
 public:
  using UnnamedCounts = std::array<uint64_t, wire::kKindCount>;  // by kind

  Admission(const Membership& members, const ChannelTuning& tuning, Statistics& statistics)
      : members_(members), tuning_(tuning), statistics_(statistics) {}

  // Fills `op`. On failure nothing has changed. op.channel is the caller's.
  Status admit(const Submission& submission, Operation& op) HVD_REQUIRES(submit_side);
  // The same for a submission that was looked up before.
  Status admit_prepared(const CachedPtr& slot, NameState* name, const Submission& submission,
                        Operation& op) HVD_REQUIRES(submit_side);
  // Numbers an unnamed operation. Once per operation, when it is submitted.
  void number(Operation& op) HVD_REQUIRES(submit_side) {
    if (HVD_UNLIKELY(op.is_unnamed && !op.buffers.empty()))
      op.unnamed_number = ++unnamed_[static_cast<size_t>(op.kind)];
  }

  // From now on submissions that say the same find this slot; evicted ones are forgotten.
  void learn(const CachedPtr& slot, const std::vector<negotiate::SlotPtr>& evicted)
      HVD_REQUIRES(submit_side);
  // The names of an operation that has ended and has no slot.
  void forget_names(const Operation& op) HVD_REQUIRES(submit_side);

  // Joining is over: the own join, null if there is none. What the others agreed on meanwhile
  // counts here too, so that numbers stay equal.
  Operation* end_join(const UnnamedCounts& agreed) HVD_REQUIRES(submit_side);
  void forget_join() HVD_REQUIRES(submit_side);

  // Nothing is let in any more; the first reason stays.
  void close(const Status& status) HVD_REQUIRES(submit_side);
  bool is_closed() const { return is_closed_.load(std::memory_order_relaxed); }

 private:
  Status admit_miss(const Submission& submission, Operation& op) HVD_REQUIRES(submit_side);
  Status take_names(const Submission& submission, Operation& op) HVD_REQUIRES(submit_side);
  void fill(const Submission& submission, Operation& op) const;

  const Membership& members_;
  const ChannelTuning& tuning_;
  Statistics& statistics_;
  NameTable names_ HVD_GUARDED_BY(submit_side);
  UnnamedCounts unnamed_ HVD_GUARDED_BY(submit_side) = {};
  Operation* join_operation_ HVD_GUARDED_BY(submit_side) = nullptr;
  bool is_joining_ HVD_GUARDED_BY(submit_side) = false;
  std::atomic<bool> is_closed_{false};  // closed_status_ is set
  Status closed_status_ HVD_GUARDED_BY(submit_side);
};

}  // namespace hvd::engine
