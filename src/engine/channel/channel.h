// channel.h - one process set on this rank, put together from its parts: what is let in
// (Admission), the own stream (Outbox), the agreed order (control::Order), the response cache, what
// the data plane runs (LargeWorks). Submission side: admit() checks and looks up, publish() appends
// a record. Engine side: step() takes what is agreed and runs it. Neither blocks.
#pragma once

#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/engine_role.h"
#include "base/explore.h"
#include "base/status.h"
#include "collective/gloo/domain.h"
#include "collective/hosts/host_link.h"
#include "collective/shared_memory/link.h"
#include "control/board.h"
#include "control/order.h"
#include "engine/channel/admission.h"
#include "engine/channel/channel_tuning.h"
#include "engine/channel/large_works.h"
#include "engine/channel/membership.h"
#include "engine/channel/mirror_line.h"
#include "engine/channel/operation_rows.h"
#include "engine/channel/outbox.h"
#include "engine/channel/set_view.h"
#include "engine/operation/flight.h"
#include "engine/operation/operation.h"
#include "engine/operation/role.h"
#include "engine/operation/statistics.h"
#include "engine/operation/waiting.h"
#include "mirror/mirror.h"
#include "negotiate/slot_table.h"
#include "trace/timeline.h"
#include "tune/tuning.h"

namespace hvd::engine {

class Channel;

// What a channel needs from the engine around it.
class ChannelHost {
 public:
  virtual ~ChannelHost() = default;
  virtual SubmitLock& submit_lock() = 0;
  virtual shm::Job& job() = 0;
  virtual Flight& flight() = 0;
  virtual Statistics& statistics() = 0;
  virtual const std::atomic<trace::Timeline*>& timeline() const = 0;  // null: off
  // The operation is complete: tell whoever waits.
  virtual void completed(Operation& op) HVD_REQUIRES(engine_role) = 0;
  // Operations are about to end with a failure that is not theirs alone.
  virtual void telling_failure(const Status& status) = 0;
  // Agreed operations that concern the engine itself (process sets). Null: nothing to run.
  virtual Status begin_internal(const wire::Request& request, Operation& op)
      HVD_REQUIRES(engine_role) = 0;
  virtual void end_internal(Operation& op) HVD_REQUIRES(engine_role) = 0;
  // This channel is tuned otherwise from the operation on that it runs next.
  virtual void tuned(Channel& channel, const tune::Tuning& tuning) HVD_REQUIRES(engine_role) = 0;
  // Null where the job has one host.
  virtual mirror::Mirror* mirror() = 0;
  virtual net::Mesh* mesh() = 0;
  // Null where Gloo is not used.
  virtual collective::gloo::Domain* gloo() { return nullptr; }
};

enum class StepResult {
  kNothing,
  kAdvanced,      // something was done; look again
  kLargeWaiting,  // agreed large work is left, which a step that must not block did not touch
};

class Channel final : private control::Directory {
 public:
  static uint64_t region_bytes(int size);
  Channel(ChannelHost& host, ChannelOptions options, std::byte* region);

  uint32_t id() const { return members_.id(); }
  int size() const { return members_.size(); }
  int me() const { return members_.me(); }
  const std::vector<int32_t>& ranks() const { return members_.ranks(); }
  int32_t rank_of(int member) const { return members_.rank_of(member); }
  int32_t my_rank() const { return members_.my_rank(); }
  bool spans_hosts() const { return mirror_.is_open(); }

  // ---- submission side ----
  // Checks the submission alone and fills `op`. On failure nothing has changed.
  Status admit(const Submission& submission, Operation& op) HVD_REQUIRES(submit_side) {
    op.channel = this;
    return admission_.admit(submission, op);
  }
  // The same for a submission that was looked up before.
  Status admit_prepared(const CachedPtr& slot, NameState* name, const Submission& submission,
                        Operation& op) HVD_REQUIRES(submit_side) {
    op.channel = this;
    return admission_.admit_prepared(slot, name, submission, op);
  }
  // Enters the operation in the ring of last operations and the timeline, then appends its record.
  void publish(Operation& op) HVD_REQUIRES(submit_side);
  // The same in the other order, for a caller that holds the role as well: peers see the record
  // first, the rest is done while it travels.
  void publish_now(Operation& op) HVD_REQUIRES(submit_side);
  // Anybody who sleeps for these records?
  void ring() {
    if (HVD_UNLIKELY(link_.bell().anybody_sleeps())) ring_sleepers();
  }

  // ---- engine side ----
  enum class Effort { kOne, kAllSmall, kEverything };
  // kOne: one operation or one advance of large work. kAllSmall: all agreed small ones, large ones
  // are left.
  StepResult step(Effort effort) HVD_REQUIRES(engine_role);
  // A step would find nothing: as long as this holds, one line is read and no function called.
  bool is_waiting() const HVD_REQUIRES(engine_role) {
    return !mirror_.is_open() && order_.waits_for_record() && works_.is_idle() &&
           !outbox_.has_queue();
  }
  const Status& failure() const HVD_REQUIRES(engine_role) { return failure_; }
  // Waits for something that rings no bell.
  bool must_poll() const HVD_REQUIRES(engine_role) {
    return !works_.is_idle() && works_.current().must_poll();
  }
  // See Backend::look_cost().
  int look_cost() const HVD_REQUIRES(engine_role) {
    return works_.is_idle() ? 1 : works_.current().look_cost();
  }
  bool is_busy() const HVD_REQUIRES(engine_role) { return !works_.is_idle(); }
  bool has_overflow() const HVD_REQUIRES(engine_role) { return outbox_.has_queue(); }
  shm::Want want() const HVD_REQUIRES(engine_role);
  // Ranks that this one waits for in a data phase and that nobody drives are woken.
  uint64_t ring_late_peers() HVD_REQUIRES(engine_role);
  bool waits_for_driven_peers() const HVD_REQUIRES(engine_role);
  // In a data phase, for a member that takes no further part.
  bool waits_for_closed_member() const HVD_REQUIRES(engine_role);
  bool has_leaving_member() const;
  size_t first_closed_member() const;  // 0 if there is none
  // What a leaving member has read may still be on its way to this host.
  bool lags_behind_leavers() const HVD_REQUIRES(engine_role);
  // Descriptors of data streams that the running work waits for.
  void add_wanted_descriptors(std::vector<pollfd>& out) HVD_REQUIRES(engine_role) {
    works_.plane().add_descriptors(out);
  }
  // A data stream broke, longer ago than a peer that leaves needs to say so.
  Status broken_stream(TimePoint now) HVD_REQUIRES(engine_role) {
    return is_closed() ? Status::ok() : works_.broken_stream(now);
  }
  // Streams still run works that were reported, and may be waited for before the set is closed.
  bool streams_are_late(TimePoint now) HVD_REQUIRES(engine_role) {
    return !is_closed() && works_.streams_are_late(now);
  }
  // Of a closed set too: what streams still run there waits for peers that are gone.
  void abort_streams() HVD_REQUIRES(engine_role) { works_.abort_streams(); }
  // The set is removed: nothing more is sent or taken for it.
  void detach() HVD_REQUIRES(engine_role) { mirror_.close(); }
  // fail_pending, and every later submission fails the same way; peers see that this rank takes no
  // further part.
  void close(const Status& status) HVD_REQUIRES(engine_role);
  bool is_closed() const { return admission_.is_closed(); }
  bool is_closed_member(int member) const {
    return board_.closed(member).load(std::memory_order_seq_cst) != 0;
  }
  // Everything pending ends with this status.
  void fail_pending(const Status& status) HVD_REQUIRES(engine_role);
  Status check_shared_words() HVD_REQUIRES(engine_role);
  // Ranks that group the same names differently wait for each other for ever: ends those
  // operations. Looks only if nothing else can be done.
  void refuse_other_groupings() HVD_REQUIRES(engine_role);

  // ---- tuning ----
  // What records of this rank say from now on; counts if it is member 0. Each member switches when
  // it runs the first operation whose record says so: at the same place of the order, with nothing
  // to wait for. Any thread.
  void propose(const tune::Tuning& tuning) {
    if (me() == 0) tuning_.propose(tuning);
  }
  // In effect here.
  const tune::Tuning& tuning() const HVD_REQUIRES(engine_role) { return tuning_.now(); }
  uint32_t default_small_limit() const { return tuning_.default_small_limit(); }

  uint64_t lockstep_count() const { return order_.lockstep_count(); }
  uint64_t log_count() const { return order_.log_count(); }
  uint64_t evictions() const { return slots_.evictions(); }
  size_t cache_entries() const { return slots_.live_count(); }
  uint64_t wakes_sent() const { return link_.bell().wakes_sent(); }

  // Stall report: names in the streams that are not in all of them.
  std::vector<Waiting> waiting() const HVD_REQUIRES(engine_role);

 private:
  friend struct explore::Probe;
  // control::Directory
  std::optional<control::SlotIdentity> identify(uint32_t slot) HVD_REQUIRES(engine_role) override;
  control::LocalOperation* local_operation(uint32_t index) HVD_REQUIRES(engine_role) override {
    return outbox_.operation(index);
  }
  uint32_t version() const HVD_REQUIRES(engine_role) override { return slots_.version(); }
  void saw_view(int rank, uint32_t view) HVD_REQUIRES(engine_role) override;

  // submission side
  void note_submission(Operation& op) HVD_REQUIRES(submit_side) {
    admission_.number(op);
    rows_.submitted(op);
  }
  void ring_sleepers();

  // engine side
  StepResult step_unguarded(Effort effort) HVD_REQUIRES(engine_role);
  bool run_uniform() HVD_REQUIRES(engine_role);
  bool run_matched() HVD_REQUIRES(engine_role);
  bool run_cached(Operation* op, const CachedPtr& slot, std::span<control::Mark> marks)
      HVD_REQUIRES(engine_role);
  void run_negotiated(std::span<control::Mark> marks) HVD_REQUIRES(engine_role);
  CachedPtr adopt_plan(const std::vector<const wire::Request*>& requests, negotiate::Plan plan)
      HVD_REQUIRES(engine_role);
  void remember(const CachedPtr& slot) HVD_REQUIRES(engine_role);
  void finish_join() HVD_REQUIRES(engine_role);
  void finish_refused() HVD_REQUIRES(engine_role);
  static const wire::Request* request_of(int rank, const control::Mark& mark);
  Operation* operation_of(std::span<control::Mark> marks, const CachedOperation& slot)
      HVD_REQUIRES(engine_role);
  void run_small(Operation& op, CachedOperation& slot, const std::byte* const* payloads)
      HVD_REQUIRES(engine_role);
  void run_large(Operation& op, CachedOperation& slot, std::span<const control::Mark> marks)
      HVD_REQUIRES(engine_role);
  void start_work(Operation& op) HVD_REQUIRES(engine_role);
  bool all_share(const CachedOperation& slot, std::span<const control::Mark> marks) const
      HVD_REQUIRES(engine_role);
  bool map_shared(Operation& op, const CachedOperation& slot, std::span<const control::Mark> marks)
      HVD_REQUIRES(engine_role);
  void finish(Operation& op, const Status& status) HVD_REQUIRES(engine_role);
  void finish_plain(Operation& op) HVD_REQUIRES(engine_role);
  void free_names(const Operation& op) HVD_REQUIRES(engine_role);
  void fail(Status status) HVD_REQUIRES(engine_role);
  bool follow_tuning(uint32_t flags) HVD_REQUIRES(engine_role) {
    return HVD_LIKELY(tuning_.says(flags)) || switch_tuning(flags & control::kTuningMask);
  }
  bool switch_tuning(uint32_t bits) HVD_REQUIRES(engine_role);
  StepResult advance_large() HVD_REQUIRES(engine_role);
  std::unique_ptr<collective::hosts::HostLink> make_host_link() const;
  collective::gpu::Options gpu_options() const;
  SetView make_set_view() const;
  bool is_leaving(int member) const;

  // Where all ranks are in the agreed order.
  struct Place {
    uint32_t agreed = 0;  // operations: the clock of the slot table
    uint32_t finished = 0;
    Admission::UnnamedCounts unnamed = {};
  };

  ChannelHost& host_;
  Statistics& statistics_;
  Flight& flight_;
  shm::Job& job_;
  const Membership members_;
  control::Board board_;
  collective::shared_memory::Link link_;
  const std::unique_ptr<collective::hosts::HostLink> host_link_;  // null: all members are here
  const SetView set_;
  ChannelTuning tuning_;
  negotiate::SlotTable slots_;
  MirrorLine mirror_;
  OperationRows rows_;
  Admission admission_;
  Outbox outbox_;
  LargeWorks works_;
  control::Order order_;
  Place place_ HVD_GUARDED_BY(engine_role);
  Status failure_ HVD_GUARDED_BY(engine_role);
  // Own records that another rank groups differently, and how: known when the other one is ended
  // first.
  std::map<uint32_t, std::string> other_groupings_ HVD_GUARDED_BY(engine_role);
};

}  // namespace hvd::engine
