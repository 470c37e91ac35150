// Life cycle of the engine.
#include "engine/engine.h"

#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "engine/drive/driver.inc.h"
#include "net/keys/hmac.h"

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
  const auto static_sets = std::move(options.process_sets);
  const Interrupt interrupt = options.interrupt;
  auto engine = std::unique_ptr<Engine>(new Engine({.engine_number = next_engine_number(),
                                                    .epoch = options.epoch,
                                                    .topology = std::move(options.topology),
                                                    .settings = std::move(options.settings),
                                                    .job = std::move(job),
                                                    .hosts = std::move(options.hosts),
                                                    .mesh = std::move(options.mesh),
                                                    .gloo = std::move(options.gloo)}));
  if (Status status = engine->open(static_sets, interrupt); !status) {
    engine->shutdown(Deadline::after(std::chrono::seconds(1)));
    return status;
  }
  engine->failure_.forget_note();
  return engine;
}

Engine::Engine(Surroundings surroundings)
    : surroundings_(std::move(surroundings)),
      mirror_(surroundings_.spans_hosts()
                  ? std::make_unique<mirror::Mirror>(job(), surroundings_.hosts,
                                                     *surroundings_.mesh, *this)
                  : nullptr),
      submit_lock_(job().mine().role),
      role_(job().mine().role),
      flight_(job()),
      failure_(job(), mirror_.get(), waiters_, surroundings_.settings.failure_note),
      timelines_(surroundings_),
      sets_(surroundings_, *this),
      met_sets_(surroundings_, *this, sets_),
      tuning_(surroundings_, sets_, timelines_),
      lookout_({surroundings_, mirror_.get(), role_, submit_lock_, sets_, met_sets_, failure_,
                flight_, pending_, statistics_}),
      driver_(driver_view()),
      submissions_({surroundings_, role_, submit_lock_, pending_, waiters_, failure_, sets_,
                    lookout_, timelines_, tuning_, driver_}),
      set_calls_(surroundings_, failure_, sets_, met_sets_, driver_, submissions_),
      background_(driver_, driver_view()) {
  ticks_per_second();  // measured here, not in the middle of a failure
}

DriverView Engine::driver_view() {
  return {surroundings_, mirror_.get(), role_,    pending_,   waiters_,          failure_,
          sets_,         met_sets_,     lookout_, timelines_, tuning_.waiting(), statistics_};
}

Status Engine::open(const std::vector<std::vector<int32_t>>& static_sets,
                    const Interrupt& interrupt) {
  {
    alone_with_the_engine();
    HVD_TRY(sets_.open_global());
  }
  HVD_TRY(tuning_.start());
  HVD_TRY(start_threads(interrupt));
  return set_calls_.add_static(static_sets);
}

Status Engine::start_threads(const Interrupt& interrupt) {
  const Settings& settings = surroundings_.settings;
  if (mirror_ != nullptr) {
    HVD_TRY(mirror_->meet(Deadline::after(settings.rendezvous_timeout), interrupt));
    HVD_TRY_ASSIGN(net_thread_, mirror::NetThread::start(*mirror_, job(), *this));
    driver_.use(*net_thread_);
  }
  HVD_TRY(timelines_.start_configured());
  const auto frozen_after = std::chrono::duration_cast<Nanoseconds>(settings.frozen_peer_time);
  // Nobody else may look after works that are left to streams.
  const Nanoseconds period = std::chrono::milliseconds(settings.async_completion ? 100 : 1000);
  HVD_TRY(lookout_.processes().open());
  HVD_TRY_ASSIGN(watch_, Watch::start(*this, job(), lookout_.processes(), {frozen_after, period}));
  background_.start();
  return Status::ok();
}

Engine::~Engine() {
  shutdown(Deadline::after(std::chrono::seconds(10)));
  stop_threads();
}

void Engine::stop_threads() {
  background_.stop();
  watch_.reset();
  if (net_thread_ != nullptr) net_thread_->stop(Deadline::after(std::chrono::seconds(1)));
}

void Engine::shutdown(Deadline deadline) {
  if (!lookout_.begin_shutdown()) return;
  failure_.begin_closing();
  // The background thread gives the role up by itself; a thread that waits with the role is told by
  // the failure below.
  background_.request_stop();
  tell_leaving();
  end_operations(deadline);
  job().mine().state.store(static_cast<uint32_t>(shm::RankState::kLeft), std::memory_order_seq_cst);
  if (mirror_ != nullptr) mirror_->say_left();
  job().wake_everybody();
  waiters_.notify();
  stop_threads();
  tuning_.flush();
  timelines_.end();
}

void Engine::tell_leaving() {
  job().mine().state.store(static_cast<uint32_t>(shm::RankState::kLeaving),
                           std::memory_order_seq_cst);
  if (mirror_ != nullptr) {
    // A rank of this host may have told of it first, over other streams: whoever hears of the
    // leaving shall have heard why.
    if (const Status why = job().failure(); !why.is_ok()) {
      const int cause = job().failed_rank();
      mirror_->say_failed(cause >= 0 ? cause : surroundings_.rank(), why);
    }
    mirror_->say_leaving();
  }
  uint32_t nobody = 0;
  job().header().first_leaver.compare_exchange_strong(nobody,
                                                      static_cast<uint32_t>(job().rank()) + 1);
  job().header().leaving.fetch_add(1, std::memory_order_seq_cst);
}

// Without the role there is nothing to be done: whoever has it will not let go.
void Engine::end_operations(Deadline deadline) {
  while (!role_.try_take()) {
    if (deadline.passed()) return;
    job().wake(job().rank());
    driver_.wait_for_role_holder([] { return false; },
                                 Deadline::after(std::chrono::milliseconds(1)));
  }
  driver_.drain(deadline);
  tuning_.end_early();
  lookout_.fail_everything(failure_.health());
  role_.give_back();
}

void Engine::end_internal(Operation& op) {
  if (const Status status = sets_.end_change(op); !status.is_ok())
    failure_.fail(status, surroundings_.rank());
}

Result<void*> Engine::alloc_buffer(size_t bytes) {
  HVD_TRY_ASSIGN(std::byte* const data, job().arena().alloc(bytes));
  return static_cast<void*>(data);
}

Status Engine::set_stall_signal(int32_t number) {
  HVD_TRY(check_stall_signal(number));
  job().mine().stall_signal.store(number);
  return Status::ok();
}

Engine::OrderCounts Engine::order_counts() const {
  OrderCounts counts;
  std::vector<int32_t> ids = sets().ids();
  for (const int32_t id : sets().met_ids()) ids.push_back(id);
  for (const int32_t id : ids) {
    const Channel* channel = sets().channel(id);
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
