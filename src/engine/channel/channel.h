// channel.h - one process set on this rank: its streams, slots, data plane and operations in
// flight. Submission side (submit lock): admit() checks and looks up, publish() appends a record.
// Engine side (engine role): step() takes what is agreed and runs it. Neither blocks.
#pragma once

#include <poll.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/engine_role.h"
#include "base/explore.h"
#include "base/status.h"
#include "collective/backends/data_plane.h"
#include "collective/hosts/host_link.h"
#include "control/board.h"
#include "control/eager_ring.h"
#include "control/order.h"
#include "engine/channel/works.h"
#include "engine/operation/flight.h"
#include "engine/operation/name_table.h"
#include "engine/operation/operation.h"
#include "engine/operation/role.h"
#include "engine/operation/statistics.h"
#include "engine/operation/waiting.h"
#include "mirror/mirror.h"
#include "negotiate/slot_table.h"
#include "reduce/kernels.h"
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

struct ChannelOptions {
  uint32_t id = 0;
  uint32_t wire_id = 0;            // names the set between hosts, and no set before it
  std::vector<int32_t> ranks;      // members in set-rank order
  std::vector<int32_t> host_of{};  // the same: host numbers; empty: one host
  int me = 0;                      // set rank
  size_t cache_capacity = 1024;
  collective::gpu::Options gpu{};  // size and place are filled in here

  bool spans_hosts() const { return mirror::Members{ranks, host_of}.spans_hosts(); }
  std::vector<int> members_here() const;  // set ranks of the members on this host
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
  ~Channel() override;

  uint32_t id() const { return options_.id; }
  int size() const { return static_cast<int>(options_.ranks.size()); }
  int me() const { return options_.me; }
  const std::vector<int32_t>& ranks() const { return options_.ranks; }
  int32_t rank_of(int member) const { return options_.ranks[static_cast<size_t>(member)]; }
  int32_t my_rank() const { return rank_of(me()); }
  bool spans_hosts() const { return mirrored_ != nullptr; }

  // ---- submission side ----
  // Checks the submission alone and fills `op`. On failure nothing has changed.
  Status admit(const Submission& submission, Operation& op) HVD_REQUIRES(submit_side);
  // The same for a submission that was looked up before.
  Status admit_prepared(const negotiate::SlotPtr& slot, NameState* name,
                        const Submission& submission, Operation& op) HVD_REQUIRES(submit_side);
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
    return mirrored_ == nullptr && order_.waits_for_record() && plane_.is_idle() &&
           !has_overflow_.load(std::memory_order_relaxed);
  }
  const Status& failure() const HVD_REQUIRES(engine_role) { return failure_; }
  // Waits for something that rings no bell.
  bool must_poll() const HVD_REQUIRES(engine_role) {
    return !plane_.is_idle() && plane_.current().must_poll();
  }
  bool is_busy() const HVD_REQUIRES(engine_role) { return !plane_.is_idle(); }
  bool has_overflow() const HVD_REQUIRES(engine_role) {
    return has_overflow_.load(std::memory_order_relaxed);
  }
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
  void add_wanted_descriptors(std::vector<pollfd>& out) HVD_REQUIRES(engine_role);
  // A data stream broke, longer ago than a peer that leaves needs to say so.
  Status broken_stream(TimePoint now) HVD_REQUIRES(engine_role);
  // The set is removed: nothing more is sent or taken for it.
  void detach() HVD_REQUIRES(engine_role);
  // fail_pending, and every later submission fails the same way; peers see that this rank takes no
  // further part.
  void close(const Status& status) HVD_REQUIRES(engine_role);
  bool is_closed() const { return is_closed_.load(std::memory_order_relaxed); }
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
  void propose(const tune::Tuning& tuning);
  // In effect here.
  const tune::Tuning& tuning() const HVD_REQUIRES(engine_role) { return tuning_; }
  uint32_t default_small_limit() const { return default_small_limit_; }

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
  std::optional<control::SlotIdentity> identify(uint32_t slot) override;
  void* local_operation(uint32_t index) override { return own_[index % control::kRecords]; }
  uint32_t version() const override { return slots_.version(); }
  void saw_view(int rank, uint32_t view) override;

  // submission side
  Status admit_miss(const Submission& submission, Operation& op) HVD_REQUIRES(submit_side);
  Status take_names(const Submission& submission, Operation& op) HVD_REQUIRES(submit_side);
  void fill_buffers(const Submission& submission, Operation& op) HVD_REQUIRES(submit_side);
  static void fill_all_buffers(const Submission& submission, Operation& op);
  void note_submission(Operation& op) HVD_REQUIRES(submit_side);
  void append_or_queue(Operation& op) HVD_REQUIRES(submit_side);
  bool has_room() HVD_REQUIRES(submit_side);
  Status check_own_records();
  uint32_t watermark() HVD_REQUIRES(submit_side);
  void append_record(Operation& op) HVD_REQUIRES(submit_side);
  void write_payload(Operation& op, control::Record& record, uint32_t index)
      HVD_REQUIRES(submit_side);
  void write_message(Operation& op, control::Record& record, uint32_t index)
      HVD_REQUIRES(submit_side);
  bool write_shared_offsets(Operation& op, control::Record& record, uint32_t index)
      HVD_REQUIRES(submit_side);
  void deposit(const Operation& op, std::byte* to) const HVD_REQUIRES(submit_side);
  void flush_overflow() HVD_REQUIRES(submit_side);
  void ring_sleepers();
  void free_read_messages() HVD_REQUIRES(submit_side);

  // engine side
  StepResult step_unguarded(Effort effort) HVD_REQUIRES(engine_role);
  bool run_uniform() HVD_REQUIRES(engine_role);
  bool run_matched() HVD_REQUIRES(engine_role);
  bool run_cached(Operation* op, const negotiate::SlotPtr& slot, std::span<control::Mark> marks)
      HVD_REQUIRES(engine_role);
  void run_negotiated(std::span<control::Mark> marks) HVD_REQUIRES(engine_role);
  negotiate::SlotPtr adopt_plan(const std::vector<const wire::Request*>& requests,
                                negotiate::Plan plan) HVD_REQUIRES(engine_role);
  void remember(const negotiate::SlotPtr& slot) HVD_REQUIRES(engine_role);
  void finish_join() HVD_REQUIRES(engine_role);
  void finish_refused() HVD_REQUIRES(engine_role);
  static const wire::Request* request_of(int rank, const control::Mark& mark);
  Operation* operation_of(std::span<control::Mark> marks, const negotiate::Slot& slot)
      HVD_REQUIRES(engine_role);
  void run_small(Operation& op, negotiate::Slot& slot, const std::byte* const* payloads)
      HVD_REQUIRES(engine_role);
  void run_large(Operation& op, negotiate::Slot& slot, std::span<const control::Mark> marks)
      HVD_REQUIRES(engine_role);
  void start_work(Operation& op) HVD_REQUIRES(engine_role);
  bool all_share(const negotiate::Slot& slot, std::span<const control::Mark> marks) const
      HVD_REQUIRES(engine_role);
  bool map_shared(Operation& op, const negotiate::Slot& slot, std::span<const control::Mark> marks)
      HVD_REQUIRES(engine_role);
  void finish(Operation& op, const Status& status) HVD_REQUIRES(engine_role);
  void finish_plain(Operation& op) HVD_REQUIRES(engine_role);
  void trace_start(const Operation& op) HVD_REQUIRES(engine_role);
  void trace_ready(const Operation& op) HVD_REQUIRES(engine_role);
  void trace_end(const Operation& op) HVD_REQUIRES(engine_role);
  // The row of tensor `index` in the timeline.
  static std::string trace_name(const Operation& op, size_t index);
  void fail(Status status) HVD_REQUIRES(engine_role);
  bool follow_tuning(uint32_t flags) HVD_REQUIRES(engine_role) {
    return HVD_LIKELY((flags & control::kTuningMask) == tuning_bits_) ||
           switch_tuning(flags & control::kTuningMask);
  }
  bool switch_tuning(uint32_t bits) HVD_REQUIRES(engine_role);
  static collective::Cut cut_of(const tune::Tuning& tuning);
  ProgressPolicy progress_of(const Submission& submission) const;
  StepResult advance_large() HVD_REQUIRES(engine_role);
  std::unique_ptr<collective::hosts::HostLink> make_host_link() const;
  collective::gpu::Options gpu_options() const;
  SetView set_view() const { return {size(), me(), &options_.ranks, crowded_hosts_}; }
  bool is_leaving(int member) const;
  void flush_mirror() {
    if (mirrored_ != nullptr) host_.mirror()->flush(*mirrored_);
  }

  ChannelHost& host_;
  Statistics& statistics_;
  Flight& flight_;
  shm::Job& job_;
  const std::atomic<trace::Timeline*>& timeline_;
  const ChannelOptions options_;
  // Members on this host, in the order of the link: as set ranks and as ranks of the job.
  const std::vector<int> members_here_;
  const std::vector<int> ranks_here_;
  control::Board board_;
  collective::shared_memory::Link link_;
  const std::unique_ptr<collective::hosts::HostLink> host_link_;  // null: all members are here
  const collective::hosts::HostLayout* crowded_hosts_ = nullptr;  // see SetView::hosts
  collective::DataPlane plane_;
  negotiate::SlotTable slots_;
  control::Order order_;
  mirror::MirroredChannel* mirrored_ = nullptr;  // null: all members are here
  Status failure_;
  TimePoint stream_broke_{};
  const uint32_t default_small_limit_;  // payloads that are deposited; untuned
  // Changed with the role and the submit lock, read with one of them.
  uint32_t small_limit_;
  tune::Tuning tuning_;
  uint32_t tuning_bits_ = 0;           // the same, as in a record
  std::atomic<uint32_t> proposal_{0};  // as in a record; says nothing about other memory
  const Kernels& kernels_;

  // submission side
  NameTable names_;
  control::EagerRing eager_;
  std::array<Operation*, control::kRecords> own_{};  // by record index
  std::atomic<uint32_t> tail_{0};                    // records published; the role only compares it
  uint32_t watermark_ = 0;
  std::deque<Operation*> overflow_;  // the ring was full
  // Request messages in the arena, by record: freed when all peers have read the record.
  std::deque<std::pair<uint32_t, std::byte*>> messages_;
  std::atomic<bool> has_overflow_{false};
  std::array<uint64_t, wire::kKindCount> unnamed_submitted_{};
  bool is_joining_ = false;
  std::atomic<bool> is_closed_{false};  // closed_status_ is set
  Status closed_status_;

  // engine side
  uint32_t finished_ = 0;
  uint32_t agreed_ = 0;  // agreed operations: the clock of the slot table
  std::array<uint64_t, wire::kKindCount> unnamed_agreed_{};
  std::vector<Operation*> running_;  // in the executor
  std::vector<collective::Work*> done_works_;
  Operation* join_operation_ = nullptr;
  // Own records that another rank groups differently, and how: known when the other one is ended
  // first.
  std::map<uint32_t, std::string> other_groupings_;
};

}  // namespace hvd::engine
