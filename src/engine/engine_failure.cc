// Failure: what the engine does when a rank is lost, frozen, stalled or leaves, and what it looks
// for while idle.
#include <signal.h>

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "base/text.h"
#include "engine/engine.h"

namespace hvd::engine {
namespace {

constexpr std::string_view kShutDownText =
    "Horovod has been shut down. This was caused by a call to shutdown on one of the ranks while "
    "this operation was pending, or by "
    "submitting it after one of the ranks had shut down";

std::string_view host_of(const shm::RankBlock& block) {
  return {block.hostname, strnlen(block.hostname, sizeof block.hostname)};
}

// A shutdown that `leaver` (a rank of this host) began.
Status shut_down_status(const shm::Job& job, int leaver) {
  const shm::RankBlock& block = job.block(leaver);
  return Status(StatusCode::kShutDown, concat(kShutDownText, ": rank ", block.global_rank,
                                              " (host ", host_of(block), ") left first"));
}

// Of the ranks of this host, which began to leave first; `otherwise` if nobody has.
int first_leaver(const shm::Job& job, int otherwise) {
  const uint32_t word = job.header().first_leaver.load(std::memory_order_acquire);
  return word >= 1 && word <= static_cast<uint32_t>(job.size()) ? static_cast<int>(word) - 1
                                                                : otherwise;
}

// What ranks that left had agreed on comes from other hosts within this time, or not at all.
constexpr Nanoseconds kLeaversTime = std::chrono::seconds(5);

// Signals that a word of another process may ask for: not those that no handler can catch.
bool is_stall_signal(int32_t number) {
  return number > 0 && number <= SIGRTMAX && number != SIGKILL && number != SIGSTOP;
}

}  // namespace

Status Engine::health() {
  if (is_broken_.load(std::memory_order_acquire)) {
    MutexLock lock(failure_mutex_);
    return failure_;
  }
  if (!is_closing_.load(std::memory_order_relaxed)) return Status::ok();
  return shut_down_status(*job_, first_leaver(*job_, job_->rank()));
}

void Engine::fail(const Status& status, int rank) {
  const bool is_first = job_->report_failure(status, rank);
  if (is_first && mirror_ != nullptr) mirror_->say_failed(rank, status);
  {
    MutexLock lock(failure_mutex_);
    if (failure_.is_ok()) {
      // What the job failed with first is what everybody reports.
      const Status first = job_->failure();
      failure_ = first.is_ok() ? status : first;
    }
  }
  is_broken_.store(true, std::memory_order_seq_cst);
  job_->wake_everybody();
  notify_local_waiters();
}

// The program may end because of it: whoever started the process then knows whose fault it was.
// A shutdown of this rank is nobody's.
void Engine::telling_failure(const Status& status) {
  if (is_closing_.load(std::memory_order_relaxed)) return;
  const bool is_broken = is_broken_.load(std::memory_order_acquire);
  if ((!is_broken && status.code() != StatusCode::kShutDown) || is_note_left_.exchange(true)) {
    return;
  }
  const Status why = is_broken ? health() : status;
  const int rank = is_broken ? job_->failed_rank() : leaver_.load(std::memory_order_acquire);
  note_.write({.rank = rank, .code = why.code(), .text = why.message()});
}

Status Engine::told(Status failure) {
  telling_failure(failure);
  return failure;
}

void Engine::handle_failures() {
  for (Channel* channel : registry_.open_channels()) {
    if (!channel->failure().is_ok()) fail(channel->failure(), topology_.rank);
  }
  if (is_broken_.load(std::memory_order_acquire)) fail_everything(health());
}

void Engine::fail_everything(const Status& status) {
  const bool had_pending = pending_count() != 0;
  if (had_pending && status.code() != StatusCode::kShutDown) print_flight_record(status);
  for (Channel* channel : registry_.open_channels()) channel->close(status);
  job_->wake_everybody();  // nobody may wait for this rank any more
}

void Engine::print_flight_record(const Status& status) {
  {
    MutexLock lock(failure_mutex_);
    if (record_printed_) return;
    record_printed_ = true;
  }
  if (settings_.elastic && status.code() == StatusCode::kPeerLost) {
    // Expected there: the survivors go on, and the launcher says why.
    HVD_LOG(kWarning, "rank ", topology_.rank, " on ", topology_.hostname, ": ", status.message());
    return;
  }
  HVD_LOG(kError, "rank ", topology_.rank, " on ", topology_.hostname, ": ", status.message(),
          "\nlast operations of this rank:\n", recent_operations(16));
}

std::string Engine::recent_operations(size_t most) { return flight_.describe(job_->rank(), most); }

void Engine::peer_lost(int rank, const std::string& how) {
  const shm::RankBlock& peer = job_->block(rank);
  fail(Status(StatusCode::kPeerLost, concat("rank ", peer.global_rank, " (pid ", peer.pid.load(),
                                            ", host ", host_of(peer), ") ", how)),
       rank);
  tick();
}

void Engine::peer_frozen(int rank, Nanoseconds silence) {
  peer_lost(rank,
            concat("gives no sign of life for ", std::chrono::duration<double>(silence).count(),
                   " s (stopped or starved) while operations wait for it"));
}

// From whoever pumps: must not step, only say so.
void Engine::peer_gone(int32_t rank, const Status& why) {
  if (is_shut_down_.load(std::memory_order_relaxed)) return;
  // It may not have introduced itself yet: its host is known all the same.
  const auto host = static_cast<size_t>(hosts_.host_of[static_cast<size_t>(rank)]);
  fail(Status(StatusCode::kPeerLost,
              concat("rank ", rank, " (host ", hosts_.names[host], ") is lost: ", why.message())),
       rank);
}

// Its own host has told everybody.
void Engine::job_failed(int32_t rank, const Status& why) {
  job_->report_failure(why, rank);
  fail(why, rank);
}

void Engine::stall_reported(int32_t rank) { signal_stalled(rank); }

void Engine::signal_stalled(int rank) {
  if (!job_->is_here(rank)) return mirror_->report_stall(rank);
  const int32_t number = job_->block(rank).stall_signal.load();
  if (is_stall_signal(number)) processes_.send_signal(rank, number);
}

void Engine::check_streams(TimePoint now) {
  for (Channel* channel : registry_.open_channels()) {
    if (const Status status = channel->broken_stream(now); !status.is_ok())
      return fail(status, topology_.rank);
  }
}

// Once a second, from the watch thread: what nobody who waits would notice.
void Engine::tick() {
  if (is_shut_down_.load(std::memory_order_relaxed)) return;
  if (tuner_ != nullptr) tuner_->flush();
  check_role_word();
  if (!role_.try_take()) return;  // whoever drives looks after itself
  if (!is_broken_.load()) look_after_idle(*global_);
  handle_failures();
  leave();
}

// A bit of the role word that nobody in this process has set would keep everybody out for ever. A
// thread that was interrupted right behind setting it looks the same, so look often. Watch thread.
void Engine::check_role_word() {
  constexpr int kLooks = 200;
  constexpr int kTicks = 3;
  uint32_t stray = ~0u;
  for (int look = 0; look < kLooks && stray != 0; ++look) {
    uint32_t word = job_->mine().role.load();
    if (role_.is_held()) word &= ~shm::kRoleBit;
    if (submit_lock_.is_held()) word &= ~shm::kSubmitBit;
    stray &= word;
    if (look % 50 == 49) sched_yield();
  }
  stray_ticks_ = stray == 0 ? 0 : stray_ticks_ + 1;
  if (stray_ticks_ < kTicks) return;
  job_->mine().role.fetch_and(~stray);  // so that those who wait learn why
  fail(corrupted(concat("the role word of rank ", topology_.rank,
                        " in the shared segment has bits that it did not set: ", stray)),
       topology_.rank);
}

void Engine::look_after_idle(Channel&) {
  if (const Status failure = job_->failure(); !failure.is_ok())
    return fail(failure, topology_.rank);
  if (const Status status = job_->check_header(); !status.is_ok())
    return fail(status, topology_.rank);
  const bool is_running =
      job_->mine().state.load() == static_cast<uint32_t>(shm::RankState::kRunning);
  if (!is_running && !is_shut_down_.load()) {
    return fail(corrupted(concat("the state of rank ", topology_.rank,
                                 " in the shared segment is not what it wrote")),
                topology_.rank);
  }
  for (Channel* channel : registry_.open_channels()) {
    if (const Status status = channel->check_shared_words(); !status.is_ok())
      return fail(status, topology_.rank);
    channel->refuse_other_groupings();
  }
  if (job_->header().leaving.load(std::memory_order_acquire) != 0 || registry_.has_met())
    close_when_peers_leave();
  const TimePoint now = std::chrono::steady_clock::now();
  check_streams(now);
  if (stall_.is_due(now)) check_stalls(now);
}

bool Engine::waits_for_somebody_who_left() {
  return std::any_of(registry_.open_channels().begin(), registry_.open_channels().end(),
                     [](const Channel* c) { return c->is_busy() && c->waits_for_closed_member(); });
}

// A rank has begun to leave: in the sets it belongs to, what is agreed is finished, the rest can
// never be.
void Engine::close_when_peers_leave() {
  if (leavers_deadline_.is_never()) leavers_deadline_ = Deadline::after(kLeaversTime);
  for (size_t i = 0; i < registry_.open_channels().size(); ++i) {
    Channel& channel = *registry_.open_channels()[i];
    if (channel.is_closed() || !channel.has_leaving_member()) continue;
    while (channel.step(Channel::Effort::kEverything) == StepResult::kAdvanced) {
    }
    if (channel.is_busy() && !channel.waits_for_closed_member())
      continue;  // still runs; look again later
    if (channel.lags_behind_leavers() && !leavers_deadline_.passed()) continue;
    leaver_.store(leaver_of(channel), std::memory_order_release);
    channel.close(status_without(channel));
    job_->wake_everybody();
  }
}

// Which member of a set has shut down; -1: none.
int Engine::leaver_of(const Channel& channel) const {
  const auto has_left = [&](int rank) {
    return job_->block(rank).state.load() != static_cast<uint32_t>(shm::RankState::kRunning);
  };
  const std::vector<int32_t>& ranks = channel.ranks();
  const int first = first_leaver(*job_, -1);
  if (std::find(ranks.begin(), ranks.end(), first) != ranks.end()) return first;
  const auto gone = std::find_if(ranks.begin(), ranks.end(), has_left);
  return gone == ranks.end() ? -1 : *gone;
}

// Why a set of which a member takes no further part is closed.
Status Engine::status_without(const Channel& channel) const {
  if (const int leaver = leaver_of(channel); leaver >= 0) return shut_down_status(*job_, leaver);
  return Status(StatusCode::kAborted,
                concat("process set ", channel.id(), " [", join_text(channel.ranks(), ", ", 16),
                       "]: rank ", channel.ranks()[channel.first_closed_member()], " has left it"));
}

void Engine::check_stalls(TimePoint now) {
  stall_.looked(now);
  for (Channel* channel : registry_.open_channels()) {
    const auto last_done = [&](int member) {
      return flight_.describe(channel->rank_of(member), 1);
    };
    const StallReport report =
        stall_.look(now, channel->id(), channel->ranks(), channel->waiting(), last_done);
    if (act_on_stall(report, channel->ranks(), channel->me() == 0)) return;
  }
  check_stalled_meetings(now);
}

Status Engine::check_stall_signal(int32_t number) {
  if (number == 0 || is_stall_signal(number)) return Status::ok();
  return invalid_argument(concat("stall signal: expected 0, or 1 to ", SIGRTMAX, " without ",
                                 SIGKILL, " and ", SIGSTOP, ", got ", number));
}

Status Engine::set_stall_signal(int32_t number) {
  HVD_TRY(check_stall_signal(number));
  job_->mine().stall_signal.store(number);
  return Status::ok();
}

bool Engine::act_on_stall(const StallReport& report, const std::vector<int32_t>& ranks,
                          bool reports) {
  if (report.text.empty()) return false;
  if (reports) {
    statistics_.stall_warnings.add();
    if (report.shut_down) {
      HVD_LOG(kError, report.text);
    } else {
      HVD_LOG(kWarning, report.text);
    }
    for (const int member : report.missing) signal_stalled(ranks[static_cast<size_t>(member)]);
  }
  if (!report.shut_down) return false;
  // Where one rank alone is awaited, it is the one that failed.
  const bool is_one = report.missing.size() == 1;
  const int cause = is_one ? ranks[static_cast<size_t>(report.missing.front())] : topology_.rank;
  fail(Status(StatusCode::kStalled,
              concat("the stall limit (HOROVOD_STALL_SHUTDOWN_TIME_SECONDS) was reached. ",
                     report.text)),
       cause);
  return true;
}

}  // namespace hvd::engine
