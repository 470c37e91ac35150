#include "shm/job.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <numeric>

#include "base/text.h"
#include "shm/futex.h"
#include "shm/rendezvous.h"

namespace hvd::shm {
namespace {

void write_header(std::byte* base, const JobOptions& options, const JobShape& shape) {
  auto& header = *reinterpret_cast<JobHeader*>(base);
  header.version = kLayoutVersion;
  header.size = static_cast<uint32_t>(options.size);
  header.epoch = options.epoch;
  header.total_bytes = shape.total_bytes;
  header.channel_pool_offset = shape.channel_pool_offset;
  header.channel_pool_bytes = shape.channel_pool_bytes;
  header.arena_offset = shape.arena_offset;
  header.arena_bytes = shape.arena_bytes;
  header.cache_capacity = options.cache_capacity;
  header.magic = kJobMagic;
}

Result<std::shared_ptr<Segment>> create_segment(const JobOptions& options) {
  const JobShape shape =
      job_shape(options.size, static_cast<int>(options.here.size()), options.arena_bytes);
  HVD_TRY_ASSIGN(Segment segment, Segment::create(shape.total_bytes));
  HVD_TRY(segment.commit(0, shape.channel_pool_offset));
  write_header(segment.data(), options, shape);
  return std::make_shared<Segment>(std::move(segment));
}

Status check_size(const JobOptions& options) {
  if (options.size < 1 || options.size > kMaxRanks || options.rank < 0 ||
      options.rank >= options.size) {
    return invalid_argument(concat("init: rank ", options.rank, " of ", options.size,
                                   "; expected 0 <= rank < size <= ", kMaxRanks));
  }
  if (options.here.size() > static_cast<size_t>(kMaxRanksPerHost)) {
    return invalid_argument(concat("init: ", options.here.size(),
                                   " ranks on one host; expected at most ", kMaxRanksPerHost));
  }
  return Status::ok();
}

// No list of the ranks of this host means all.
void complete(JobOptions& options) {
  if (!options.here.empty() || options.size < 1 || options.size > kMaxRanks) return;
  options.here.resize(static_cast<size_t>(options.size));
  std::iota(options.here.begin(), options.here.end(), 0);
}

}  // namespace

Result<std::unique_ptr<Job>> Job::meet(JobOptions options) {
  complete(options);
  HVD_TRY(check_size(options));
  const auto found = std::find(options.here.begin(), options.here.end(), options.rank);
  if (found == options.here.end()) {
    return invalid_argument(
        concat("init: rank ", options.rank, " is not among the ranks of its host"));
  }
  const auto place = static_cast<int>(found - options.here.begin());
  const auto count = static_cast<int>(options.here.size());
  const Deadline deadline = Deadline::after(options.timeout);
  auto job = std::unique_ptr<Job>(new Job());
  std::shared_ptr<Segment> segment;
  const Meeting meeting{options.job_id, options.epoch,       place,
                        count,          options.socket_name, options.interrupt};
  if (place == 0) {
    HVD_TRY_ASSIGN(segment, create_segment(options));
    if (count > 1) {
      HVD_TRY(serve_segment(meeting, segment->fd(), segment->bytes(), deadline));
    }
  } else {
    HVD_TRY_ASSIGN(ReceivedSegment received, receive_segment(meeting, deadline));
    if (received.bytes < sizeof(JobHeader)) return corrupted("rendezvous: segment too small");
    HVD_TRY_ASSIGN(Segment mapped, Segment::adopt(std::move(received.fd), received.bytes));
    segment = std::make_shared<Segment>(std::move(mapped));
  }
  job->attach(std::move(segment), options);
  job->separate_processes_ = count > 1;
  HVD_TRY(job->check_header());
  job->introduce(options);
  HVD_TRY(job->wait_for_all(deadline, options.interrupt));
  job->count_cores();
  return job;
}

Result<std::vector<std::unique_ptr<Job>>> Job::in_process(int size, JobOptions options) {
  options.size = size;
  options.rank = 0;
  complete(options);
  HVD_TRY(check_size(options));
  HVD_TRY_ASSIGN(std::shared_ptr<Segment> segment, create_segment(options));
  std::vector<std::unique_ptr<Job>> jobs;
  for (const int rank : options.here) {
    options.rank = rank;
    jobs.push_back(std::unique_ptr<Job>(new Job()));
    jobs.back()->attach(segment, options);
    jobs.back()->introduce(options);
  }
  for (auto& job : jobs) job->count_cores();
  return jobs;
}

void Job::attach(std::shared_ptr<Segment> segment, const JobOptions& options) {
  rank_ = options.rank;
  size_ = options.size;
  here_ = options.here;
  place_of_.assign(static_cast<size_t>(size_), -1);
  for (size_t place = 0; place < here_.size(); ++place)
    place_of_[static_cast<size_t>(here_[place])] = static_cast<int>(place);
  epoch_ = options.epoch;
  segment_ = std::move(segment);
  blocks_ = rank_blocks(base());
  shape_ = job_shape(size_, static_cast<int>(here_.size()),
                     header().arena_bytes > 7 * 4096 ? header().arena_bytes - 7 * 4096 : 0);
  arena_ = std::make_unique<Arena>(
      *segment_,
      shape_.arena_offset +
          static_cast<uint64_t>(place_of_[static_cast<size_t>(rank_)]) * shape_.arena_bytes,
      shape_.arena_bytes);
}

Job::~Job() {
  // Tensors may lie in buffers that nobody has freed: reading one must not be a segmentation fault.
  if (arena_ != nullptr && arena_->has_buffers()) segment_->leave_mapped();
}

void Job::introduce(const JobOptions& options) {
  RankBlock& block = mine();
  block.global_rank = options.rank;
  std::strncpy(block.hostname, options.hostname.c_str(), sizeof block.hostname - 1);
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof cpus, &cpus) == 0) {
    for (int cpu = 0; cpu < 1024; ++cpu) {
      if (CPU_ISSET(cpu, &cpus)) block.cpus[cpu / 64] |= 1ull << (cpu % 64);
    }
  }
  block.pid.store(getpid(), std::memory_order_relaxed);
  block.state.store(static_cast<uint32_t>(RankState::kRunning), std::memory_order_relaxed);
  header().arrived.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(header().arrived, INT_MAX);
}

Status Job::wait_for_all(Deadline deadline, const Interrupt* interrupt) {
  // All have been here already, so this is short unless somebody died in between.
  const Nanoseconds slice =
      interrupt == nullptr ? Nanoseconds(std::chrono::seconds(1)) : std::chrono::milliseconds(20);
  for (;;) {
    const uint32_t arrived = header().arrived.load(std::memory_order_acquire);
    if (arrived >= here_.size()) return Status::ok();
    if (interrupt != nullptr) HVD_TRY(interrupt->look());
    const auto left = deadline.remaining(slice);
    if (left.count() == 0) {
      return Status(StatusCode::kTimedOut, concat("init: only ", arrived, " of ", here_.size(),
                                                  " ranks mapped the segment in time"));
    }
    futex_wait(header().arrived, arrived, left);
  }
}

void Job::count_cores() {
  int count = 0;
  for (size_t word = 0; word < 16; ++word) {
    uint64_t all = 0;
    for (const int rank : here_) all |= block(rank).cpus[word];
    count += __builtin_popcountll(all);
  }
  core_count_ = count > 0 ? count : 1;
}

std::byte* Job::arena_address(int rank, uint64_t offset, uint64_t bytes) const {
  if (rank < 0 || rank >= size_ || !is_here(rank)) return nullptr;
  if (offset > shape_.arena_bytes || bytes > shape_.arena_bytes - offset) return nullptr;
  const auto place = static_cast<uint64_t>(place_of_[static_cast<size_t>(rank)]);
  return base() + shape_.arena_offset + place * shape_.arena_bytes + offset;
}

Status Job::check_header() const {
  const JobHeader& h = header();
  if (h.magic != kJobMagic || h.version != kLayoutVersion ||
      h.size != static_cast<uint32_t>(size_) || h.epoch != epoch_ ||
      h.total_bytes != segment_->bytes() || h.arena_offset != shape_.arena_offset ||
      h.arena_bytes != shape_.arena_bytes || h.channel_pool_offset != shape_.channel_pool_offset ||
      h.channel_pool_bytes != shape_.channel_pool_bytes) {
    return corrupted(
        concat("the header of the shared segment is corrupted (seen by rank ", rank_, ")"));
  }
  return Status::ok();
}

bool Job::report_failure(const Status& status, int rank) const {
  FailureBlock& failure = header().failure;
  uint32_t none = 0;
  if (!failure.state.compare_exchange_strong(none, 1)) return false;
  failure.code = static_cast<int32_t>(status.code());
  failure.rank = rank;
  std::strncpy(failure.text, status.message().c_str(), sizeof failure.text - 1);
  failure.state.store(2, std::memory_order_release);
  return true;
}

int Job::failed_rank() const {
  const FailureBlock& failure = header().failure;
  const bool is_readable = failure.state.load(std::memory_order_acquire) == 2;
  return is_readable && failure.rank >= 0 && failure.rank < size_ ? failure.rank : -1;
}

Status Job::failure() const {
  const FailureBlock& failure = header().failure;
  // Whoever writes it needs a moment; if it died in that moment, the text is lost.
  for (int tries = 0; failure.state.load(std::memory_order_acquire) == 1 && tries < 1000; ++tries)
    sched_yield();
  switch (failure.state.load(std::memory_order_acquire)) {
    case 0:
      return Status::ok();
    case 2: {
      const std::string text(failure.text, strnlen(failure.text, sizeof failure.text));
      if (failure.code <= 0 || failure.code > static_cast<int>(StatusCode::kCorrupted)) break;
      return Status(static_cast<StatusCode>(failure.code), text);
    }
    default:
      break;
  }
  return unknown_error("the job failed; the reason is not readable");
}

bool Job::wake(int rank) const {
  auto& word = blocks_[rank].park;
  if (word.load(std::memory_order_relaxed) == 0 || word.exchange(0) == 0) return false;
  futex_wake(word, 1);
  return true;
}

bool Job::wake_background(int rank) const {
  auto& word = blocks_[rank].background;
  if (word.load(std::memory_order_relaxed) == 0 || word.exchange(0) == 0) return false;
  futex_wake(word, 1);
  return true;
}

void Job::wake_everybody() const {
  for (int rank = 0; rank < size_; ++rank) {
    wake(rank);
    wake_background(rank);
  }
}

}  // namespace hvd::shm
