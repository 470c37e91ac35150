// runtime.h - the one process-wide object behind the C interface: the engine, if there is one.
// Thread: any. init and shutdown exclude each other; every other call holds the engine alive while
// it runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "base/thread_annotations.h"
#include "bootstrap/join_network.h"
#include "capi/callers.h"
#include "capi/elastic_jobs.h"
#include "capi/mpi_jobs.h"
#include "engine/engine.h"
#include "horovod/hvd.h"

namespace hvd::capi {

class Runtime {
 public:
  // Never destroyed: exit cannot hang in it, and late calls find it.
  static Runtime& instance();

  Status init(const hvd_init_options* options) HVD_EXCLUDES(life_mutex_);
  void shutdown() HVD_EXCLUDES(life_mutex_);
  // Kept for engines to come.
  Status set_stall_signal(int32_t number);
  bool is_initialized() const { return engine_.load(std::memory_order_acquire) != nullptr; }
  ElasticJobs& elastic() { return elastic_; }
  // As hvd_mpi_threads().
  int32_t mpi_threads() const { return mpi_threads_.load(std::memory_order_relaxed); }

  // Holds the engine for one call; null inside when there is none.
  class Use {
   public:
    // Announce first, then look: shutdown takes the pointer away first, then waits for the
    // announced.
    explicit Use(Runtime& runtime)
        : slot_(runtime.callers_.enter()),
          engine_(runtime.engine_.load(std::memory_order_acquire)) {}
    ~Use() { Callers::leave(slot_); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    engine::Engine* get() const { return engine_; }

   private:
    CallerSlot& slot_;
    engine::Engine* engine_;
  };

 private:
  Runtime();
  void orphan();  // in a child of fork(): the engine and its threads are the parent's
  // What the launcher of an elastic job says about an init; null members in any other job.
  struct Given {
    const elastic::Assign* place = nullptr;
    const Interrupt* interrupt = nullptr;
  };
  Status start(const hvd_init_options* options, const Given& given) HVD_REQUIRES(life_mutex_);
  Status start_elastic(const hvd_init_options* options) HVD_REQUIRES(life_mutex_);
  Result<engine::EngineOptions> make_options(const hvd_init_options* options, const Given& given)
      HVD_REQUIRES(life_mutex_);
  Status join_hosts(const hvd_init_options* options, engine::EngineOptions& out,
                    const Interrupt* interrupt) HVD_REQUIRES(life_mutex_);
  Status find_place(const hvd_init_options* options, engine::EngineOptions& out)
      HVD_REQUIRES(life_mutex_);
  void count_init() HVD_REQUIRES(life_mutex_);
  static void use_network(bootstrap::Network network, engine::EngineOptions& out);
  void at_exit(int exit_status) HVD_EXCLUDES(life_mutex_);

  std::atomic<engine::Engine*> engine_{nullptr};
  std::atomic<bool> is_orphan_{false};
  std::atomic<int32_t> stall_signal_{0};
  std::atomic<int32_t> mpi_threads_{-1};
  Callers callers_;
  ElasticJobs elastic_;
  Mutex life_mutex_;
  // With the store of a job on several hosts, where this rank runs it.
  bootstrap::Memory memory_ HVD_GUARDED_BY(life_mutex_);
  MpiJobs mpi_ HVD_GUARDED_BY(life_mutex_);
  std::unique_ptr<engine::Engine> owned_ HVD_GUARDED_BY(life_mutex_);
  std::string job_name_ HVD_GUARDED_BY(life_mutex_);  // HOROVOD_JOB_ID of the last init
  uint64_t epoch_ HVD_GUARDED_BY(life_mutex_) = 0;    // inits of this process in that job
};

// Text of the last failure in this thread.
void set_last_error(const Status& status);
const char* last_error();

// No exception and no C++ type leaves the library.
template <typename Fn>
hvd_status guarded(const Fn& fn) noexcept {
  Status status;
  try {
    status = fn();
  } catch (const std::bad_alloc&) {
    status = Status(StatusCode::kOutOfMemory, "out of memory");
  } catch (const std::exception& error) {
    status = unknown_error(error.what());
  } catch (...) {
    status = unknown_error("unknown exception");
  }
  if (!status.is_ok()) set_last_error(status);
  return static_cast<hvd_status>(status.code());
}

// fn(engine), or PRECONDITION when there is none.
template <typename Fn>
hvd_status with_engine(const Fn& fn) noexcept {
  return guarded([&]() -> Status {
    Runtime::Use use(Runtime::instance());
    if (use.get() == nullptr)
      return precondition_error("Horovod has not been initialized; use hvd.init() (hvd_init in C)");
    return fn(*use.get());
  });
}

}  // namespace hvd::capi
