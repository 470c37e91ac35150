// The C functions of hvd.h: each converts, asks the engine, and turns the answer into plain C.
#include "horovod/hvd.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "base/version.h"
#include "capi/convert.h"
#include "capi/repeats.h"
#include "capi/runtime.h"
#include "device/driver.h"
#include "device/nccl_api.h"
#include "reduce/kernels.h"

using hvd::Status;
using hvd::StatusCode;
using hvd::capi::convert;
using hvd::capi::Converted;
using hvd::capi::guarded;
using hvd::capi::Repeats;
using hvd::capi::Runtime;
using hvd::capi::to_deadline;
using hvd::capi::with_engine;
using hvd::engine::Engine;
using hvd::engine::Operation;
using hvd::engine::Output;

struct hvd_prepared {
  std::unique_ptr<hvd::engine::Prepared> prepared;
};

namespace {

// Callers built against an older, shorter struct get what fits.
template <typename T>
Status copy_out(const T& value, T* out, const char* what) {
  if (out == nullptr || out->struct_size < sizeof(uint32_t)) {
    return hvd::invalid_argument(hvd::concat(what, ": out is null or its struct_size is not set"));
  }
  const uint32_t size = std::min<uint32_t>(out->struct_size, sizeof(T));
  T copy = value;
  copy.struct_size = out->struct_size;
  std::memcpy(out, &copy, size);
  return Status::ok();
}

template <typename Fn>
int32_t topology_value(const Fn& fn) {
  Runtime::Use use(Runtime::instance());
  return use.get() == nullptr ? -1 : fn(use.get()->topology());
}

template <typename Fn>
int32_t set_value(const Fn& fn) {
  Runtime::Use use(Runtime::instance());
  if (use.get() == nullptr) return HVD_PROCESS_SET_ERROR_INIT;
  try {
    return fn(*use.get());
  } catch (...) {
    return HVD_PROCESS_SET_ERROR_SHUTDOWN;
  }
}

}  // namespace

extern "C" {

uint32_t hvd_abi_version(void) { return HVD_ABI_VERSION; }
const char* hvd_version(void) { return hvd::version_text(); }

const char* hvd_status_name(hvd_status status) {
  return hvd::status_code_text(static_cast<StatusCode>(status));
}

const char* hvd_last_error(void) { return hvd::capi::last_error(); }

hvd_status hvd_get_capabilities(hvd_capabilities* out) {
  return guarded([&] {
    hvd_capabilities c{};
    c.abi_version = HVD_ABI_VERSION;
    c.dtypes = (1u << hvd::kDTypeCount) - 1;
    c.reduce_ops = (1u << hvd::kReduceOpCount) - 1;
    c.kinds = (1u << (HVD_REDUCESCATTER + 1)) - 1;
    c.max_ranks_per_host = hvd::shm::kMaxRanksPerHost;
    c.simd = hvd::kernels().name;
    c.engines = "native";
    return copy_out(c, out, "capabilities");
  });
}

void hvd_init_options_init(hvd_init_options* options) {
  if (options == nullptr) return;
  *options = hvd_init_options{};
  options->struct_size = sizeof *options;
  options->topology = HVD_TOPOLOGY_INIT;
}

hvd_status hvd_init(const hvd_init_options* options) {
  return guarded([&] { return Runtime::instance().init(options); });
}

hvd_status hvd_shutdown(void) {
  return guarded([&] {
    Runtime::instance().shutdown();
    return Status::ok();
  });
}

int32_t hvd_is_initialized(void) { return Runtime::instance().is_initialized() ? 1 : 0; }

int32_t hvd_elastic_is_active(void) {
  int32_t is_active = 0;
  guarded([&] {
    is_active = Runtime::instance().elastic().is_active() ? 1 : 0;
    return Status::ok();
  });
  return is_active;
}

uint64_t hvd_elastic_epoch(void) { return Runtime::instance().elastic().epoch(); }

hvd_status hvd_elastic_look(hvd_elastic_news* out) {
  return guarded(
      [&] { return copy_out(Runtime::instance().elastic().look(), out, "elastic news"); });
}

hvd_status hvd_elastic_tell(const hvd_elastic_report* report) {
  return guarded([&] {
    if (report == nullptr || report->struct_size < sizeof(hvd_elastic_report)) {
      return hvd::invalid_argument("hvd_elastic_tell: the report is null or too short");
    }
    return Runtime::instance().elastic().tell(*report);
  });
}

int32_t hvd_rank(void) {
  return topology_value([](const auto& t) { return t.rank; });
}
int32_t hvd_size(void) {
  return topology_value([](const auto& t) { return t.size; });
}
int32_t hvd_local_rank(void) {
  return topology_value([](const auto& t) { return t.local_rank; });
}
int32_t hvd_local_size(void) {
  return topology_value([](const auto& t) { return t.local_size; });
}
int32_t hvd_cross_rank(void) {
  return topology_value([](const auto& t) { return t.cross_rank; });
}
int32_t hvd_cross_size(void) {
  return topology_value([](const auto& t) { return t.cross_size; });
}
int32_t hvd_mpi_threads(void) {
  Runtime& runtime = Runtime::instance();
  return runtime.is_initialized() ? runtime.mpi_threads() : -1;
}

int32_t hvd_is_homogeneous(void) {
  return topology_value([](const auto& t) { return t.is_homogeneous() ? 1 : 0; });
}

int32_t hvd_nccl_version(void) {
  const auto nccl = hvd::device::NcclApi::get();
  if (nccl) return (*nccl)->version;
  hvd::capi::set_last_error(nccl.status());
  return 0;
}

int32_t hvd_device_count(void) {
  const auto driver = hvd::device::Driver::get();
  if (driver) return (*driver)->device_count();
  hvd::capi::set_last_error(driver.status());
  return 0;
}

void hvd_request_init(hvd_request* request) {
  if (request == nullptr) return;
  *request = hvd_request{};
  request->struct_size = sizeof *request;
  request->reduce_op = HVD_OP_SUM;
  request->wire_dtype = -1;
  request->device = -1;
  request->dtype = HVD_FLOAT32;
  request->prescale = 1.0;
  request->postscale = 1.0;
}

hvd_status hvd_submit(const hvd_request* request, hvd_handle* out) {
  return hvd_submit_group(request, 1, out);
}

hvd_status hvd_submit_group(const hvd_request* requests, size_t count, hvd_handle* out) {
  return with_engine([&](Engine& engine) -> Status {
    if (out == nullptr) return hvd::invalid_argument("submit: out is null");
    *out = 0;
    Converted c;
    HVD_TRY(convert(requests, count, engine, c));
    HVD_TRY_ASSIGN(*out, engine.submit(c.set, c.submission));
    return Status::ok();
  });
}

hvd_status hvd_run(const hvd_request* request, int64_t timeout_ns) {
  return with_engine([&](Engine& engine) -> Status {
    Repeats& repeats = Repeats::mine();
    if (HVD_LIKELY(request != nullptr)) {
      if (auto* prepared = repeats.find(*request, engine); HVD_LIKELY(prepared != nullptr))
        return engine.run(*prepared, to_deadline(timeout_ns));
    }
    Converted c;
    HVD_TRY(convert(request, 1, engine, c));
    HVD_TRY(engine.run(c.set, c.submission, to_deadline(timeout_ns)));
    repeats.note(*request, engine, c.submission);
    return Status::ok();
  });
}

hvd_status hvd_run_group(const hvd_request* requests, size_t count, int64_t timeout_ns) {
  return with_engine([&](Engine& engine) -> Status {
    Converted c;
    HVD_TRY(convert(requests, count, engine, c));
    return engine.run(c.set, c.submission, to_deadline(timeout_ns));
  });
}

hvd_status hvd_prepare(const hvd_request* requests, size_t count, hvd_prepared** out) {
  return with_engine([&](Engine& engine) -> Status {
    if (out == nullptr) return hvd::invalid_argument("prepare: out is null");
    *out = nullptr;
    Converted c;
    HVD_TRY(convert(requests, count, engine, c));
    HVD_TRY_ASSIGN(auto prepared, engine.prepare(c.set, c.submission));
    // Owned by the caller, see hvd_prepared_free.
    *out = new hvd_prepared{std::move(prepared)};  // NOLINT
    return Status::ok();
  });
}

hvd_status hvd_prepared_submit(hvd_prepared* prepared, hvd_handle* out) {
  return with_engine([&](Engine& engine) -> Status {
    if (prepared == nullptr || out == nullptr)
      return hvd::invalid_argument("prepared submit: null argument");
    *out = 0;
    HVD_TRY_ASSIGN(*out, engine.submit(*prepared->prepared));
    return Status::ok();
  });
}

hvd_status hvd_prepared_run(hvd_prepared* prepared, int64_t timeout_ns) {
  return with_engine([&](Engine& engine) -> Status {
    if (prepared == nullptr) return hvd::invalid_argument("prepared run: null argument");
    return engine.run(*prepared->prepared, to_deadline(timeout_ns));
  });
}

hvd_status hvd_prepared_set_buffers(hvd_prepared* prepared, size_t index, const void* input,
                                    void* output) {
  return guarded([&]() -> Status {
    if (prepared == nullptr || index >= prepared->prepared->tensor_count()) {
      return hvd::invalid_argument(hvd::concat("prepared: no tensor ", index));
    }
    if (input == nullptr && !prepared->prepared->is_empty(index)) {
      return hvd::invalid_argument(hvd::concat("prepared: input of tensor ", index, " is null"));
    }
    prepared->prepared->set_buffers(index, input, output);
    return Status::ok();
  });
}

hvd_status hvd_prepared_set_stream(hvd_prepared* prepared, void* stream) {
  return guarded([&]() -> Status {
    if (prepared == nullptr) return hvd::invalid_argument("prepared set stream: null argument");
    prepared->prepared->set_stream(stream);
    return Status::ok();
  });
}

void hvd_prepared_free(hvd_prepared* prepared) { delete prepared; }  // NOLINT: made in hvd_prepare

hvd_status hvd_poll(hvd_handle handle) {
  return with_engine([&](Engine& engine) { return engine.poll(handle); });
}

hvd_status hvd_wait(hvd_handle handle, int64_t timeout_ns) {
  return with_engine([&](Engine& engine) { return engine.wait(handle, to_deadline(timeout_ns)); });
}

hvd_status hvd_wait_many(const hvd_handle* handles, size_t count, int64_t timeout_ns) {
  return with_engine([&](Engine& engine) -> Status {
    if (handles == nullptr && count > 0) return hvd::invalid_argument("wait many: handles is null");
    return engine.wait_many(handles, count, to_deadline(timeout_ns));
  });
}

hvd_status hvd_order(hvd_handle handle, void* stream) {
  return with_engine([&](Engine& engine) -> Status {
    HVD_TRY_ASSIGN(Operation* const op, engine.completed_operation(handle));
    HVD_TRY(op->status);
    return op->use.order(stream);
  });
}

hvd_status hvd_release(hvd_handle handle) {
  return with_engine([&](Engine& engine) { return engine.release(handle); });
}

hvd_status hvd_get_output(hvd_handle handle, size_t index, hvd_output* out) {
  return with_engine([&](Engine& engine) -> Status {
    HVD_TRY_ASSIGN(Operation* const op, engine.completed_operation(handle));
    HVD_TRY(op->status);
    hvd_output o{};
    o.device = -1;
    o.last_joined_rank = op->kind == hvd::wire::Kind::kJoin ? op->number : -1;
    if (op->kind != hvd::wire::Kind::kJoin) {
      if (index >= op->buffers.size()) {
        return hvd::invalid_argument(
            hvd::concat("output ", index, ": the operation has ", op->buffers.size(), " tensors"));
      }
      const Output& kept = engine.keep_output(*op, index);
      o.dtype = static_cast<int32_t>(op->slot->requests[0].tensors[index].dtype);
      o.ndim = static_cast<int32_t>(kept.shape.size());
      o.shape = kept.shape.data();
      o.data = kept.data;
      o.bytes = kept.bytes;
      o.device = op->use.device;
      o.received_splits = kept.received_splits.data();
      o.received_splits_count = static_cast<int32_t>(kept.received_splits.size());
    }
    return copy_out(o, out, "output");
  });
}

hvd_status hvd_output_take(hvd_handle handle, size_t index, void** out) {
  return with_engine([&](Engine& engine) -> Status {
    HVD_TRY_ASSIGN(Operation* const op, engine.completed_operation(handle));
    if (out == nullptr || index >= op->outputs.size() || op->outputs[index].owned == nullptr) {
      return hvd::invalid_argument(
          hvd::concat("output ", index, ": the handle keeps no memory for it"));
    }
    *out = op->outputs[index].owned.release();
    return Status::ok();
  });
}

void hvd_output_free(void* data) { hvd::engine::FreeDeleter()(data); }

hvd_status hvd_barrier(int32_t process_set, int64_t timeout_ns) {
  return with_engine(
      [&](Engine& engine) { return engine.barrier(process_set, to_deadline(timeout_ns)); });
}

hvd_status hvd_join(int32_t* last_joined_rank, int64_t timeout_ns) {
  return with_engine([&](Engine& engine) -> Status {
    HVD_TRY_ASSIGN(const int32_t last, engine.join(to_deadline(timeout_ns)));
    if (last_joined_rank != nullptr) *last_joined_rank = last;
    return Status::ok();
  });
}

hvd_status hvd_buffer_alloc(size_t bytes, void** out) {
  return with_engine([&](Engine& engine) -> Status {
    if (out == nullptr) return hvd::invalid_argument("buffer alloc: out is null");
    *out = nullptr;
    HVD_TRY_ASSIGN(*out, engine.alloc_buffer(bytes));
    return Status::ok();
  });
}

hvd_status hvd_buffer_free(void* data) {
  return with_engine([&](Engine& engine) { return engine.free_buffer(data); });
}

int32_t hvd_buffer_contains(const void* data, size_t bytes) {
  Runtime::Use use(Runtime::instance());
  return use.get() != nullptr && use.get()->is_shared(data, bytes) ? 1 : 0;
}

int32_t hvd_process_set_add(const int32_t* ranks, int32_t count) {
  return set_value([&](Engine& engine) -> int32_t {
    const auto fail = [](const Status& status, int32_t code) {
      hvd::capi::set_last_error(status);
      return code;
    };
    if (!engine.dynamic_process_sets()) {
      return fail(hvd::precondition_error(
                      "process sets can be added only with HOROVOD_DYNAMIC_PROCESS_SETS=1"),
                  HVD_PROCESS_SET_ERROR_DYNAMIC);
    }
    if (ranks == nullptr || count < 1) {
      return fail(hvd::invalid_argument("process set []: no ranks given, expected at least one"),
                  HVD_PROCESS_SET_ERROR_UNKNOWN_SET);
    }
    const std::vector<int32_t> given(ranks, ranks + count);
    auto added = engine.add_process_set(given);
    if (added && added->is_new) return added->id;
    if (added) {
      return fail(
          hvd::invalid_argument(hvd::concat("process set [", hvd::join_text(given, ", ", 16),
                                            "] exists already, with id ", added->id)),
          HVD_PROCESS_SET_ERROR_EXISTING_SET);
    }
    const StatusCode code = added.status().code();
    const bool shut_down = code == StatusCode::kShutDown || code == StatusCode::kPeerLost ||
                           code == StatusCode::kStalled;
    return fail(added.status(),
                shut_down ? HVD_PROCESS_SET_ERROR_SHUTDOWN : HVD_PROCESS_SET_ERROR_UNKNOWN_SET);
  });
}

int32_t hvd_process_set_remove(int32_t id) {
  return set_value([&](Engine& engine) -> int32_t {
    if (!engine.dynamic_process_sets()) {
      hvd::capi::set_last_error(hvd::precondition_error(
          "process sets can be removed only with HOROVOD_DYNAMIC_PROCESS_SETS=1"));
      return HVD_PROCESS_SET_ERROR_DYNAMIC;
    }
    auto removed = engine.remove_process_set(id);
    if (!removed) {
      hvd::capi::set_last_error(removed.status());
      return HVD_PROCESS_SET_ERROR_SHUTDOWN;
    }
    return *removed ? id : HVD_PROCESS_SET_ERROR_UNKNOWN_SET;
  });
}

int32_t hvd_process_set_rank(int32_t id) {
  return set_value([&](Engine& engine) -> int32_t {
    const auto ranks = engine.sets().ranks(id);
    if (!ranks) return HVD_PROCESS_SET_ERROR_UNKNOWN_SET;
    const auto me = std::find(ranks->begin(), ranks->end(), engine.topology().rank);
    return me == ranks->end() ? HVD_PROCESS_SET_ERROR_FOREIGN_SET
                              : static_cast<int32_t>(me - ranks->begin());
  });
}

int32_t hvd_process_set_size(int32_t id) {
  return set_value([&](Engine& engine) -> int32_t {
    const auto ranks = engine.sets().ranks(id);
    return ranks ? static_cast<int32_t>(ranks->size()) : HVD_PROCESS_SET_ERROR_UNKNOWN_SET;
  });
}

int32_t hvd_process_set_included(int32_t id) {
  const int32_t rank = hvd_process_set_rank(id);
  return rank >= 0 ? 1 : rank == HVD_PROCESS_SET_ERROR_FOREIGN_SET ? 0 : rank;
}

int32_t hvd_process_set_count(void) {
  return set_value(
      [&](Engine& engine) { return static_cast<int32_t>(engine.sets().ids().size()); });
}

int32_t hvd_process_set_ids(int32_t* ids, int32_t capacity) {
  return set_value([&](Engine& engine) {
    const auto all = engine.sets().ids();
    for (size_t i = 0;
         ids != nullptr && i < all.size() && i < static_cast<size_t>(std::max(capacity, 0)); ++i)
      ids[i] = all[i];
    return static_cast<int32_t>(all.size());
  });
}

int32_t hvd_process_set_ranks(int32_t id, int32_t* ranks, int32_t capacity) {
  return set_value([&](Engine& engine) -> int32_t {
    const auto all = engine.sets().ranks(id);
    if (!all) return HVD_PROCESS_SET_ERROR_UNKNOWN_SET;
    for (size_t i = 0;
         ranks != nullptr && i < all->size() && i < static_cast<size_t>(std::max(capacity, 0)); ++i)
      ranks[i] = (*all)[i];
    return static_cast<int32_t>(all->size());
  });
}

hvd_status hvd_timeline_start(const char* path, int32_t mark_cycles) {
  return with_engine([&](Engine& engine) -> Status {
    if (path == nullptr || *path == '\0') return hvd::invalid_argument("timeline: no path given");
    return engine.start_timeline(path, mark_cycles != 0);
  });
}

hvd_status hvd_timeline_stop(void) {
  return with_engine([&](Engine& engine) { return engine.stop_timeline(); });
}

hvd_status hvd_get_stats(hvd_stats* out) {
  return with_engine([&](Engine& engine) -> Status {
    const hvd::engine::Statistics& s = engine.statistics();
    const Engine::OrderCounts order = engine.order_counts();
    hvd_stats v{};
    v.operations = s.operations.get(), v.bytes = s.bytes.get(),
    v.failed_operations = s.failed_operations.get();
    v.cache_hits = s.cache_hits.get(), v.cache_misses = s.cache_misses.get();
    v.cache_evictions = order.evictions, v.cache_entries = order.entries;
    v.agreed_in_lockstep = order.lockstep, v.agreed_by_log = order.logged,
    v.wakes_sent = order.wakes;
    v.small_operations = s.small_operations.get(),
    v.streamed_operations = s.streamed_operations.get();
    v.shared_operations = s.shared_operations.get(), v.parks = s.parks.get(),
    v.late_rings = s.late_rings.get();
    v.rescued_wakes = s.rescued_wakes.get(), v.background_runs = s.background_runs.get();
    v.stall_warnings = s.stall_warnings.get();
    return copy_out(v, out, "stats");
  });
}

size_t hvd_recent_operations(char* text, size_t capacity) {
  std::string all;
  (void)with_engine([&](Engine& engine) {
    all = engine.recent_operations(SIZE_MAX);
    return Status::ok();
  });
  if (text != nullptr && capacity > 0) {
    const size_t length = std::min(all.size(), capacity - 1);
    std::memcpy(text, all.data(), length);
    text[length] = '\0';
  }
  return all.size();
}

}  // extern "C"
