#include "capi/runtime.h"

#include <pthread.h>

#include <cstdlib>

#include "base/failure_note.h"
#include "base/log.h"
#include "base/text.h"
#include "capi/convert.h"
#include "gloo/library.h"

namespace hvd::capi {
namespace {

thread_local std::string last_error_text;

// Said once per process, by rank 0: a second init changes nothing about it.
void explain_agreed_key(const topology::Topology& topology, uint64_t epoch) {
  if (topology.rank != 0 || epoch > 1) return;
  HVD_LOG(kWarning,
          "the ranks agreed on a key through the launcher's store: who only reads that store or "
          "the network learns nothing of it, but who can write to the store while the job starts "
          "can join the job, and run code in it; to keep them out, set HOROVOD_KEY_FILE on all "
          "ranks to a file with 32 random bytes and mode 0600");
}

// What horovodrun set up, or a user named, wins over a store that the caller brings.
Result<bootstrap::Network> find_network(const topology::Topology& topology,
                                        const hvd_init_options* o, uint64_t epoch,
                                        Deadline deadline, bootstrap::Memory& memory,
                                        const Interrupt* interrupt) {
  HVD_TRY_ASSIGN(const auto exchange, exchange_of(o));
  const Environment environment = process_environment();
  if (!exchange || bootstrap::names_store(environment)) {
    return bootstrap::join_network(topology, environment, epoch, deadline, memory, interrupt);
  }
  const std::string prefix = concat(topology.job_id, "/");
  store::ExchangeStore store(*exchange, prefix);
  HVD_TRY_ASSIGN(
      bootstrap::Network network,
      bootstrap::join_network(topology, environment, store, epoch, deadline, forget_of(o, prefix)));
  if (network.key_source == bootstrap::KeySource::kAgreed) explain_agreed_key(topology, epoch);
  return network;
}

// Ranks that did not come in time are known to whoever started them.
void note_late(const Status& failure) {
  if (failure.code() != StatusCode::kTimedOut) return;
  const FailureNoteWriter note(process_environment()(kFailureNoteVariable).value_or(""));
  note.write({.rank = -1, .code = failure.code(), .text = failure.message()});
}

// A caller that says itself where it stands does not ask the launcher.
bool leaves_place_open(const hvd_init_options* o) {
  return o == nullptr || (o->topology.rank < 0 && o->mpi_comm == nullptr);
}

void move_to(const elastic::Assign& place, topology::Topology& topology) {
  topology.rank = place.rank;
  topology.size = place.size;
  topology.local_rank = place.local_rank;
  topology.local_size = place.local_size;
  topology.cross_rank = place.cross_rank;
  topology.cross_size = place.cross_size;
}

}  // namespace

void set_last_error(const Status& status) {
  try {
    last_error_text = status.message();
  } catch (...) {
    last_error_text.clear();
  }
}

const char* last_error() { return last_error_text.c_str(); }

Runtime& Runtime::instance() {
  static Runtime* const runtime = new Runtime();  // NOLINT: never destroyed, on purpose
  return *runtime;
}

Runtime::Runtime() {
  // A child of fork() has the memory of the engine but none of its threads, and must not speak for
  // its parent.
  pthread_atfork(nullptr, nullptr, [] { instance().orphan(); });
}

void Runtime::orphan() {
  if (engine_.exchange(nullptr) != nullptr) is_orphan_.store(true);
  callers_.forget_all();
}

Result<engine::EngineOptions> Runtime::make_options(const hvd_init_options* o, const Given& given) {
  engine::EngineOptions options;
  const Environment environment = process_environment();
  HVD_TRY_ASSIGN(options.settings, read_settings(environment));
  options.epoch = o != nullptr && o->epoch != 0 ? o->epoch : epoch_;
  if (given.place != nullptr) {
    mpi_threads_.store(-1);
    HVD_TRY_ASSIGN(options.topology, topology::topology_from_environment(environment));
    move_to(*given.place, options.topology);
    // A world of one has no name of its own, but it may grow.
    options.topology.job_id = environment("HOROVOD_JOB_ID").value_or(options.topology.job_id);
    options.epoch = given.place->epoch;
    options.interrupt = *given.interrupt;
  } else {
    HVD_TRY(find_place(o, options));
  }
  if (o != nullptr) HVD_TRY(apply_init_options(*o, options));
  set_log_options(
      {options.settings.log_level, options.settings.log_hide_time, options.topology.rank});
  for (const std::string& warning : options.settings.warnings) HVD_LOG(kWarning, warning);
  if (mpi_threads() < 0) HVD_TRY(join_hosts(o, options, given.interrupt));
  return options;
}

// From MPI, which then brings the hosts together too, or from the environment.
Status Runtime::find_place(const hvd_init_options* o, engine::EngineOptions& out) {
  const Environment environment = process_environment();
  HVD_TRY_ASSIGN(const mpi::Choice choice, MpiJobs::choose(o, environment));
  mpi_threads_.store(-1);
  if (!choice.uses_mpi) {
    HVD_TRY_ASSIGN(out.topology, topology::topology_from_environment(environment));
    return Status::ok();
  }
  const bool was_started = mpi_.is_started();
  auto joined = mpi_.join(o, environment, choice, out.epoch,
                          Deadline::after(out.settings.rendezvous_timeout));
  if (!was_started && mpi_.is_started())
    ::on_exit([](int status, void*) { instance().at_exit(status); }, nullptr);
  if (!joined) return joined.status();
  out.topology = std::move(joined->topology);
  use_network(std::move(joined->network), out);
  mpi_threads_.store(mpi_.has_thread_multiple() ? 1 : 0);
  return Status::ok();
}

void Runtime::use_network(bootstrap::Network network, engine::EngineOptions& out) {
  out.host_secret = network.host_secret;
  if (network.mesh == nullptr || network.hosts.is_one_host()) return;
  out.hosts = std::move(network.hosts);
  out.mesh = std::move(network.mesh);
  if (network.gloo_address.empty()) return;
  const auto plugin = gloo::load(process_environment());  // is there: this rank has offered it
  if (!plugin) return;
  out.gloo = std::make_unique<collective::gloo::Domain>(
      collective::gloo::DomainOptions{.plugin = *plugin,
                                      .address = network.gloo_address,
                                      .connect_time = out.settings.rendezvous_timeout});
  if (out.topology.rank == 0) {
    HVD_LOG(kInfo, "Gloo carries the data between hosts (", (*plugin)->description(), ")");
  }
}

void Runtime::at_exit(int exit_status) {
  // A job that is not shut down ends as if the process had died.
  if (is_initialized() || is_orphan_.load()) return;
  MutexLock lock(life_mutex_);
  mpi_.finalize(exit_status);
}

// A job on several hosts: finds the others before anything else.
Status Runtime::join_hosts(const hvd_init_options* o, engine::EngineOptions& out,
                           const Interrupt* interrupt) {
  const topology::Topology& topology = out.topology;
  if (topology.local_size == topology.size) {
    out.host_secret = bootstrap::find_host_secret(process_environment());
    return exchange_of(o).status();
  }
  HVD_TRY_ASSIGN(
      bootstrap::Network network,
      find_network(topology, o, out.epoch, Deadline::after(out.settings.rendezvous_timeout),
                   memory_, interrupt));
  use_network(std::move(network), out);
  return Status::ok();
}

Status Runtime::start(const hvd_init_options* options, const Given& given) {
  HVD_TRY_ASSIGN(engine::EngineOptions engine_options, make_options(options, given));
  HVD_TRY_ASSIGN(owned_, engine::Engine::start(std::move(engine_options)));
  return Status::ok();
}

Status Runtime::start_elastic(const hvd_init_options* options) {
  return elastic_.run(process_environment(),
                      [&](const elastic::Assign& place, const Interrupt& interrupt)
                          HVD_REQUIRES(life_mutex_) {
                            return start(options, {.place = &place, .interrupt = &interrupt});
                          });
}

// The processes of a cluster engine take part in one job after the other, and not all of them in
// the same ones: inits are counted within a job.
void Runtime::count_init() {
  std::string job = process_environment()("HOROVOD_JOB_ID").value_or("");
  if (job != job_name_) epoch_ = 0;
  job_name_ = std::move(job);
  ++epoch_;
}

Status Runtime::init(const hvd_init_options* options) {
  if (is_orphan_.load()) {
    return precondition_error(
        "init: this process is a fork of one that has initialized Horovod; start it with exec "
        "instead");
  }
  MutexLock lock(life_mutex_);
  if (owned_ != nullptr) return Status::ok();
  count_init();  // whatever comes of it, as the other ranks do
  const bool is_elastic = leaves_place_open(options) && elastic_.is_active();
  const Status started = is_elastic ? start_elastic(options) : start(options, {});
  if (!started.is_ok()) {
    note_late(started);
    return started;
  }
  engine_.store(owned_.get(), std::memory_order_seq_cst);
  // After the engine can be seen: a change in this moment finds it, or is found here.
  return owned_->set_stall_signal(stall_signal_.load());
}

Status Runtime::set_stall_signal(int32_t number) {
  HVD_TRY(engine::Engine::check_stall_signal(number));
  stall_signal_.store(number);
  Use use(*this);
  return use.get() == nullptr ? Status::ok() : use.get()->set_stall_signal(number);
}

void Runtime::shutdown() {
  if (is_orphan_.load()) return;  // the engine belongs to the parent
  MutexLock lock(life_mutex_);
  if (owned_ == nullptr) return;
  // Calls that are waiting are ended by this; calls that begin now find no engine.
  engine_.store(nullptr, std::memory_order_seq_cst);
  const StatusCode health = owned_->health().code();
  if (health != StatusCode::kOk && health != StatusCode::kShutDown) mpi_.job_failed();
  owned_->shutdown(Deadline::after(std::chrono::seconds(10)));
  callers_.wait_for_all();
  owned_.reset();
  mpi_threads_.store(-1);
}

}  // namespace hvd::capi
