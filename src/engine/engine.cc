// Life cycle and failure of the engine.
#include "engine/engine.h"

#include <signal.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "engine/engine_wait.inc.h"

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

Status check_hosts(const EngineOptions& options) {
  const topology::Topology& t = options.topology;
  HVD_TRY(topology::check_topology(t));
  if (options.mesh != nullptr) {
    if (options.hosts.host_of.size() == static_cast<size_t>(t.size)) return Status::ok();
    return invalid_argument(
        concat("init: ", options.hosts.host_of.size(), " ranks have a host, the job has ", t.size));
  }
  if (t.local_size == t.size && t.local_rank == t.rank) return Status::ok();
  return precondition_error(concat("init: rank ", t.rank, " of ", t.size, " is local rank ",
                                   t.local_rank, " of ", t.local_size,
                                   ", and no network to the other hosts is given"));
}

// Counted, so that what belongs to an earlier engine of this process is recognised.
uint64_t next_engine_number() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

// Signals that a word of another process may ask for: not those that no handler can catch.
bool is_stall_signal(int32_t number) {
  return number > 0 && number <= SIGRTMAX && number != SIGKILL && number != SIGSTOP;
}

uint64_t memory_of_machine() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
}

Result<std::unique_ptr<shm::Job>> meet_peers(const EngineOptions& o) {
  shm::JobOptions options;
  options.rank = o.topology.rank;
  options.size = o.topology.size;
  options.here = o.ranks_here();
  options.job_id = o.topology.job_id;
  // Hosts may share a network namespace, and with it the names of sockets.
  if (o.mesh != nullptr) {
    const auto host = o.hosts.host_of[static_cast<size_t>(o.topology.rank)];
    options.job_id = concat(options.job_id, ".host", host);
  }
  options.epoch = o.epoch;
  options.hostname = o.topology.hostname;
  options.arena_bytes = o.settings.shm_buffer_bytes > 0
                            ? static_cast<uint64_t>(o.settings.shm_buffer_bytes)
                            : memory_of_machine();
  options.cache_capacity = o.settings.cache_capacity;
  options.timeout = o.settings.rendezvous_timeout;
  return shm::Job::meet(options);
}

}  // namespace

std::vector<int> EngineOptions::ranks_here() const {
  if (mesh == nullptr) return {};
  const auto host = static_cast<size_t>(hosts.host_of[static_cast<size_t>(topology.rank)]);
  return {hosts.ranks_of[host].begin(), hosts.ranks_of[host].end()};
}

Result<std::unique_ptr<Engine>> Engine::start(EngineOptions options) {
  HVD_TRY(check_hosts(options));
  std::unique_ptr<shm::Job> job = std::move(options.job);
  if (job == nullptr) {
    HVD_TRY_ASSIGN(job, meet_peers(options));
  }
  if (job->header().cache_capacity != options.settings.cache_capacity) {
    HVD_LOG(kWarning, "HOROVOD_CACHE_CAPACITY differs between ranks: taking ",
            job->header().cache_capacity, " from rank 0 instead of ",
            options.settings.cache_capacity);
    options.settings.cache_capacity = std::max<int64_t>(job->header().cache_capacity, 0);
  }
  const auto static_sets = options.process_sets;
  auto engine = std::unique_ptr<Engine>(new Engine(std::move(options), std::move(job)));
  if (Status status = engine->open_global_set(static_sets); !status) {
    engine->shutdown(Deadline::after(std::chrono::seconds(1)));
    return status;
  }
  return engine;
}

namespace {

// Looks before a waiting thread sleeps. One at shared memory takes 30 ns; one at the streams of
// other hosts is a system call per host, and may keep a core from whom we wait for: hosts can be
// containers of one machine.
int spins_for(const topology::HostMap& hosts) {
  const auto others = static_cast<int>(hosts.ranks_of.size()) - 1;
  return others < 1 ? 4000 : std::max(32, 250 / others);
}

}  // namespace

Engine::Engine(EngineOptions options, std::unique_ptr<shm::Job> job)
    : number_(next_engine_number()),
      topology_(std::move(options.topology)),
      settings_(std::move(options.settings)),
      job_(std::move(job)),
      hosts_(std::move(options.hosts)),
      mesh_(std::move(options.mesh)),
      mirror_(mesh_ == nullptr ? nullptr
                               : std::make_unique<mirror::Mirror>(*job_, hosts_, *mesh_, *this)),
      submit_lock_(job_->mine().role),
      role_(job_->mine().role),
      flight_(*job_),
      handles_(number_),
      registry_(job_->header().channel_pool_bytes),
      meetings_(*job_),
      processes_(*job_),
      stall_(settings_),
      sync_operation_(std::make_unique<Operation>()) {
  // Spinning with more runnable ranks than cores costs a scheduler tick per hop; a wake-up costs
  // what ~110 us of spinning do.
  const auto ranks_here = static_cast<int>(job_->ranks_here().size());
  const bool crowded = ranks_here > job_->core_count();
  spin_count_ = settings_.spin_count >= 0 ? static_cast<int>(settings_.spin_count)
                                          : (crowded ? 0 : spins_for(hosts_));
  yield_count_ =
      settings_.yield_count >= 0 ? static_cast<int>(settings_.yield_count) : (crowded ? 50 : 0);
  quick_polls_ = std::min(spin_count_, 48);
  has_idle_cores_ = job_->core_count() > ranks_here;
  ticks_per_second();  // measured here, not in the middle of a failure
}

Status Engine::open_global_set(const std::vector<std::vector<int32_t>>& static_sets) {
  std::vector<int32_t> ranks(static_cast<size_t>(topology_.size));
  std::iota(ranks.begin(), ranks.end(), 0);
  HVD_TRY_ASSIGN(const SetRegistry::Place place, registry_.reserve(ranks));
  const uint64_t offset = job_->channel_pool_offset() + place.offset;
  HVD_TRY(job_->segment().commit_if_limited(offset, place.bytes));
  registry_.open(
      place, std::make_unique<Channel>(*this, channel_options(0, ranks), job_->base() + offset));
  global_ = registry_.channel(0);
  if (mirror_ != nullptr) {
    HVD_TRY(mirror_->meet(Deadline::after(settings_.rendezvous_timeout)));
    HVD_TRY_ASSIGN(net_thread_, mirror::NetThread::start(*mirror_, *job_, *this));
  }
  if (!settings_.timeline.empty() && settings_.timeline != "DYNAMIC") {
    HVD_TRY(start_timeline(settings_.timeline, settings_.timeline_mark_cycles));
  }
  const auto frozen_after = std::chrono::duration_cast<Nanoseconds>(settings_.frozen_peer_time);
  HVD_TRY(processes_.open());
  HVD_TRY_ASSIGN(watch_, Watch::start(*this, *job_, processes_, frozen_after));
  background_ = std::jthread([this](const std::stop_token& stop) { background_main(stop); });
  HVD_TRY(agree_on_static_sets(static_sets));
  for (const auto& set : static_sets) {
    if (Status status = add_static_set(set); !status)
      return Status(status.code(), concat("init: ", status.message()));
  }
  return Status::ok();
}

// One that exists already is left out, on all ranks alike: whoever gave it to init can tell that it
// got no id of its own.
Status Engine::add_static_set(std::vector<int32_t> ranks) {
  HVD_TRY(check_set_ranks(ranks, topology_.size));
  if (const auto id = registry_.find(ranks)) {
    HVD_LOG(kInfo, "init: process set [", join_text(ranks, ", ", 16),
            "] is not added again: it has the id ", *id);
    return Status::ok();
  }
  auto added = add_process_set(std::move(ranks));
  return added ? Status::ok() : added.status();
}

// All ranks must ask for the same sets; a rank that asks for more would wait for ever.
Status Engine::agree_on_static_sets(const std::vector<std::vector<int32_t>>& sets) {
  if (topology_.size == 1) return Status::ok();
  uint64_t hash = sets.size();
  for (std::vector<int32_t> set : sets) {
    std::sort(set.begin(), set.end());
    for (const int32_t rank : set) hash = mix(hash, static_cast<uint32_t>(rank) + 1ull);
    hash = mix(hash, set.size());
  }
  const int64_t mine[2] = {static_cast<int64_t>(hash >> 1), -static_cast<int64_t>(hash >> 1)};
  int64_t least[2] = {0, 0};
  const int64_t shape = 2;
  TensorArg tensor;
  tensor.name = "<static process sets>";
  tensor.dtype = DType::kInt64;
  tensor.shape = {&shape, 1};
  tensor.input = mine;
  tensor.output = least;
  Submission s;
  s.reduce_op = ReduceOp::kMin;
  s.tensors = {&tensor, 1};
  const Status status = run(0, s, Deadline::after(settings_.rendezvous_timeout));
  if (!status.is_ok())
    return Status(status.code(), concat("init: agreeing on process sets: ", status.message()));
  if (least[0] == -least[1]) return Status::ok();  // the smallest equals the largest
  return invalid_argument(
      concat("init: the ranks were given different process sets (this rank: ", sets.size(), ")"));
}

Engine::~Engine() {
  shutdown(Deadline::after(std::chrono::seconds(10)));
  stop_threads();
}

void Engine::stop_threads() {
  if (background_.joinable()) {
    background_.request_stop();
    job_->wake(job_->rank());
    job_->wake_background(job_->rank());
    // The thread may be on its way to sleep: the word tells it to look again.
    while (job_->mine().background.load() != 0) job_->wake_background(job_->rank());
    background_.join();
  }
  watch_.reset();
  if (net_thread_ != nullptr) net_thread_->stop(Deadline::after(std::chrono::seconds(1)));
}

bool Engine::is_busy() const {
  return std::any_of(registry_.open_channels().begin(), registry_.open_channels().end(),
                     [](const Channel* c) { return c->is_busy(); });
}

// Runs what all ranks have agreed on; peers may still need this rank for it.
void Engine::drain(Deadline deadline) {
  for (int idle = 0; !is_broken_.load(std::memory_order_relaxed);) {
    if (step_all(Channel::Effort::kEverything) == StepResult::kAdvanced) {
      idle = 0;
      continue;
    }
    if (!is_busy() || deadline.passed() || waits_for_somebody_who_left()) return;
    if (++idle < spin_count_) {
      cpu_pause();
    } else {
      for (Channel* channel : registry_.open_channels()) channel->ring_late_peers();
      park(
          *global_, [] { return false; }, deadline);
    }
  }
}

void Engine::shutdown(Deadline deadline) {
  if (is_shut_down_.exchange(true)) return;
  is_closing_.store(true);
  shm::RankBlock& mine = job_->mine();
  // The background thread gives the role up by itself; a thread that waits with the role is told by
  // the failure below.
  background_.request_stop();
  job_->wake(job_->rank());
  job_->wake_background(job_->rank());
  mine.state.store(static_cast<uint32_t>(shm::RankState::kLeaving), std::memory_order_seq_cst);
  if (mirror_ != nullptr) mirror_->say_leaving();
  uint32_t nobody = 0;
  job_->header().first_leaver.compare_exchange_strong(nobody,
                                                      static_cast<uint32_t>(job_->rank()) + 1);
  job_->header().leaving.fetch_add(1, std::memory_order_seq_cst);
  bool has_role = role_.try_take();
  while (!has_role && !deadline.passed()) {
    job_->wake(job_->rank());
    wait_for_role_holder([] { return false; }, Deadline::after(std::chrono::milliseconds(1)));
    has_role = role_.try_take();
  }
  if (has_role) {
    drain(deadline);
    fail_everything(health());
    role_.give_back();
  }
  mine.state.store(static_cast<uint32_t>(shm::RankState::kLeft), std::memory_order_seq_cst);
  if (mirror_ != nullptr) mirror_->say_left();
  job_->wake_everybody();
  notify_local_waiters();
  stop_threads();
  // Other threads may still be on their way out of a call: files are completed here, freed with the
  // engine.
  MutexLock lock(timeline_mutex_);
  timeline_.store(nullptr);
  for (const auto& timeline : timelines_) (void)timeline->flush().is_ok();
}

// ---- failure
// ---------------------------------------------------------------------------------------------

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

// From hvd-net: small operations and decisions need no waiter.
void Engine::news_came() {
  if (is_shut_down_.load(std::memory_order_relaxed) || !role_.try_take()) return;
  step_all(Channel::Effort::kAllSmall);
  handle_failures();
  leave();
}

void Engine::arm_net_thread() {
  std::vector<pollfd> data;
  for (Channel* channel : registry_.open_channels()) channel->add_wanted_descriptors(data);
  net_thread_->arm(std::move(data));
}

ChannelOptions Engine::channel_options(int32_t id, const std::vector<int32_t>& ranks) const
    HVD_NO_THREAD_SAFETY_ANALYSIS {
  ChannelOptions options;
  options.id = static_cast<uint32_t>(id);
  // An agreed set: its id, which may be used again, and how many sets were opened before it.
  options.wire_id = (generation_ << 12 | options.id) & ~kMetWireId;
  options.ranks = ranks;
  if (mirror_ != nullptr) {
    for (const int32_t rank : ranks)
      options.host_of.push_back(hosts_.host_of[static_cast<size_t>(rank)]);
  }
  const auto me = std::find(ranks.begin(), ranks.end(), topology_.rank);
  options.me = static_cast<int>(me - ranks.begin());
  options.cache_capacity = static_cast<size_t>(settings_.cache_capacity);
  return options;
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
  if (mirror_ != nullptr) check_streams(now);
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
    channel.close(status_without(channel));
    job_->wake_everybody();
  }
}

// Why a set of which a member takes no further part is closed.
Status Engine::status_without(const Channel& channel) const {
  const auto has_left = [&](int rank) {
    return job_->block(rank).state.load() != static_cast<uint32_t>(shm::RankState::kRunning);
  };
  const std::vector<int32_t>& ranks = channel.ranks();
  const int first = first_leaver(*job_, -1);
  if (std::find(ranks.begin(), ranks.end(), first) != ranks.end())
    return shut_down_status(*job_, first);
  const auto gone = std::find_if(ranks.begin(), ranks.end(), has_left);
  if (gone != ranks.end()) return shut_down_status(*job_, *gone);
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
  fail(Status(StatusCode::kStalled,
              concat("the stall limit (HOROVOD_STALL_SHUTDOWN_TIME_SECONDS) was reached. ",
                     report.text)),
       topology_.rank);
  return true;
}

// ---- timeline
// --------------------------------------------------------------------------------------------

Status Engine::start_timeline(const std::string& path, bool mark_cycles) {
  if (!timeline_is_armed()) {
    return precondition_error(
        "timeline: not armed; set HOROVOD_TIMELINE=DYNAMIC (or a path) before init on all ranks");
  }
  if (topology_.rank != 0) return Status::ok();
  MutexLock lock(timeline_mutex_);
  trace::Timeline* now = timeline_.load();
  if (now != nullptr && now->path() == path) return Status::ok();
  HVD_TRY_ASSIGN(auto timeline,
                 trace::Timeline::open(path, static_cast<uint64_t>(settings_.timeline_max_bytes)));
  timelines_.push_back(std::move(timeline));
  mark_cycles_.store(mark_cycles);
  timeline_.store(timelines_.back().get());
  return now == nullptr ? Status::ok() : now->flush();
}

Status Engine::stop_timeline() {
  if (topology_.rank != 0) return Status::ok();
  MutexLock lock(timeline_mutex_);
  trace::Timeline* timeline = timeline_.exchange(nullptr);
  if (timeline == nullptr) {
    HVD_LOG(kInfo, "timeline: already stopped");
    return Status::ok();
  }
  mark_cycles_.store(false);
  // A thread may be about to write to it: it stays until shutdown, its file is complete now.
  return timeline->flush();
}

Engine::OrderCounts Engine::order_counts() {
  OrderCounts counts;
  std::vector<int32_t> ids = registry_.ids();
  for (const int32_t id : registry_.met_ids()) ids.push_back(id);
  for (const int32_t id : ids) {
    const Channel* channel = registry_.channel(id);
    if (channel == nullptr) continue;
    counts.lockstep += channel->lockstep_count();
    counts.logged += channel->log_count();
    counts.evictions += channel->evictions();
    counts.entries += channel->cache_entries();
    counts.wakes += channel->wakes_sent();
  }
  return counts;
}

}  // namespace hvd::engine
