// job.h - this rank's view of the job's segment: mapped, checked, with the doorbells of all ranks.
// Owns the mapping. Thread: any; every word in it is atomic or written before the job starts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/status.h"
#include "shm/arena.h"
#include "shm/job_layout.h"
#include "shm/meeting_table.h"
#include "shm/segment.h"

namespace hvd::shm {

struct JobOptions {
  int rank = 0;
  int size = 1;
  std::vector<int> here = {};  // the ranks of this host, ascending; empty: all
  std::string job_id;
  std::string socket_name = {};  // see Meeting
  uint64_t epoch = 1;
  std::string hostname;
  uint64_t arena_bytes = uint64_t{1} << 30;
  int64_t cache_capacity = 1024;
  Nanoseconds timeout = std::chrono::seconds(30);
  const Interrupt* interrupt = nullptr;  // of the wait for the others
};

class Job {
 public:
  // Meets the other ranks over a socket of this host; rank 0 creates the segment. May block until
  // the timeout.
  static Result<std::unique_ptr<Job>> meet(JobOptions options);
  // All ranks of a host in one process (tests): they share one mapping.
  static Result<std::vector<std::unique_ptr<Job>>> in_process(int size, JobOptions options);
  ~Job();

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::vector<int>& ranks_here() const { return here_; }
  bool is_here(int rank) const { return place_of_[static_cast<size_t>(rank)] >= 0; }
  bool is_one_host() const { return here_.size() == static_cast<size_t>(size_); }
  std::byte* base() const { return segment_->data(); }
  const Segment& segment() const { return *segment_; }
  JobHeader& header() const { return *reinterpret_cast<JobHeader*>(base()); }
  RankBlock& block(int rank) const { return blocks_[rank]; }
  RankBlock& mine() const { return blocks_[rank_]; }
  // True when the ranks are processes, so that the death of one can be seen.
  bool separate_processes() const { return separate_processes_; }
  int core_count() const { return core_count_; }

  Arena& arena() { return *arena_; }
  // As this rank knows it, whatever the header says now.
  uint64_t channel_pool_offset() const { return shape_.channel_pool_offset; }
  uint64_t met_pool_offset() const { return shape_.met_pool_offset; }
  uint64_t met_pool_bytes() const { return shape_.met_pool_bytes; }
  MeetingBoard& meetings() const {
    return *reinterpret_cast<MeetingBoard*>(base() + shape_.meetings_offset);
  }
  // Buffer `offset`, `bytes` long, in the arena of `rank`; nullptr if it does not fit there.
  std::byte* arena_address(int rank, uint64_t offset, uint64_t bytes) const;

  // Is the part of the header that never changes still what it was?
  Status check_header() const;

  // The first failure wins; returns true if this one did.
  bool report_failure(const Status& status, int rank) const;
  bool has_failed() const { return header().failure.state.load(std::memory_order_acquire) != 0; }
  Status failure() const;   // OK if none
  int failed_rank() const;  // whose it is; -1: none, or not known

  // Wakes the sleeper of `rank` if there is one. Returns true if a system call was made.
  bool wake(int rank) const;
  bool wake_background(int rank) const;
  void wake_everybody() const;
  // Of a rank on another host nothing is known: it counts as driven.
  bool is_driven(int rank) const {
    return !is_here(rank) || (blocks_[rank].role.load(std::memory_order_relaxed) & kRoleBit) != 0;
  }

 private:
  Job() = default;
  void attach(std::shared_ptr<Segment> segment, const JobOptions& options);
  void introduce(const JobOptions& options);  // writes this rank's block
  Status wait_for_all(Deadline deadline, const Interrupt* interrupt);
  void count_cores();

  int rank_ = 0;
  int size_ = 1;
  bool separate_processes_ = false;
  int core_count_ = 1;
  std::vector<int> here_;
  std::vector<int> place_of_;         // per rank: index in here_, -1 elsewhere
  std::shared_ptr<Segment> segment_;  // second owner: the other ranks of in_process()
  RankBlock* blocks_ = nullptr;
  JobShape shape_{};
  uint64_t epoch_ = 0;
  std::unique_ptr<Arena> arena_;
};

}  // namespace hvd::shm
