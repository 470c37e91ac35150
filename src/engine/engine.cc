// Life cycle of the engine, and its timeline.
#include "engine/engine.h"

#include <algorithm>
#include <numeric>

#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "engine/engine_wait.inc.h"
#include "net/hmac.h"

namespace hvd::engine {
namespace {

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

uint64_t memory_of_machine() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
}

// One way: who sees the name of an epoch cannot tell that of the next, unless the job id can be
// guessed and there is no secret.
std::string socket_name(const std::string& job_id, uint64_t epoch,
                        const std::optional<net::Key>& secret) {
  constexpr size_t kLetters = 40;
  const std::string text = concat(epoch, "/", job_id);
  const net::Digest digest = net::hmac_sha256(
      secret ? std::span<const uint8_t>(secret->bytes()) : std::span<const uint8_t>(),
      {{reinterpret_cast<const uint8_t*>(text.data()), text.size()}});
  std::string name;
  for (size_t i = 0; i < kLetters / 2; ++i) {
    name += "0123456789abcdef"[digest[i] >> 4];
    name += "0123456789abcdef"[digest[i] & 15];
  }
  return name;
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
  options.socket_name = socket_name(options.job_id, o.epoch, o.host_secret);
  options.hostname = o.topology.hostname;
  options.arena_bytes = o.settings.shm_buffer_bytes > 0
                            ? static_cast<uint64_t>(o.settings.shm_buffer_bytes)
                            : memory_of_machine();
  options.cache_capacity = o.settings.cache_capacity;
  options.timeout = o.settings.rendezvous_timeout;
  if (o.interrupt.look) options.interrupt = &o.interrupt;
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
  engine->note_.clear();  // a program that begins anew has got over what failed before
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
      gloo_(std::move(options.gloo)),
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
      sync_operation_(std::make_unique<Operation>()),
      note_(settings_.failure_note) {
  // Spinning with more runnable ranks than cores costs a scheduler tick per hop; a wake-up costs
  // what ~110 us of spinning do.
  const auto ranks_here = static_cast<int>(job_->ranks_here().size());
  const bool crowded = ranks_here > job_->core_count();
  own_spin_count_ = settings_.spin_count >= 0 ? static_cast<int>(settings_.spin_count)
                                              : (crowded ? 0 : spins_for(hosts_));
  own_yield_count_ =
      settings_.yield_count >= 0 ? static_cast<int>(settings_.yield_count) : (crowded ? 50 : 0);
  set_waiting(own_spin_count_, own_yield_count_);
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
  HVD_TRY(start_tuning());
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
    if (++idle < spin_count_.load(std::memory_order_relaxed)) {
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
  if (mirror_ != nullptr) {
    // A rank of this host may have told of it first, over other streams: whoever hears of the
    // leaving shall have heard why.
    if (const Status why = job_->failure(); !why.is_ok()) {
      const int cause = job_->failed_rank();
      mirror_->say_failed(cause >= 0 ? cause : topology_.rank, why);
    }
    mirror_->say_leaving();
  }
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
    if (tuner_ != nullptr) tuner_->end_early();
    fail_everything(health());
    role_.give_back();
  }
  mine.state.store(static_cast<uint32_t>(shm::RankState::kLeft), std::memory_order_seq_cst);
  if (mirror_ != nullptr) mirror_->say_left();
  job_->wake_everybody();
  notify_local_waiters();
  stop_threads();
  if (tuner_ != nullptr) tuner_->flush();
  // Other threads may still be on their way out of a call: files are completed here, freed with the
  // engine.
  MutexLock lock(timeline_mutex_);
  timeline_.store(nullptr);
  for (const auto& timeline : timelines_) (void)timeline->flush().is_ok();
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
  options.gpu.nccl_streams = static_cast<int>(settings_.nccl_streams);
  options.gpu.async_completion = settings_.async_completion;
  options.gpu.notices = gpu_notices_;
  options.cache_capacity = static_cast<size_t>(settings_.cache_capacity);
  return options;
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
