#include "bindings/jax/call.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <utility>

#include "bindings/jax/completion_pool.h"
#include "bindings/jax/driver.h"

namespace hvd::jax {
namespace {

// Ranks in step meet within a few microseconds; a thread switch costs more than that. Longer waits
// would keep a thread of XLA from computing.
constexpr int64_t kShortWaitNanoseconds = 50'000;

char kNoBytes;  // the address of results without elements

std::string shape_text(const int64_t* shape, size_t ndim) {
  std::string text = "(";
  for (size_t i = 0; i < ndim; ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + ")";
}

bool keeps_shape(int32_t kind) { return kind == HVD_ALLREDUCE || kind == HVD_BROADCAST; }
bool takes_tensors(int32_t kind) { return kind != HVD_BARRIER && kind != HVD_JOIN; }

constexpr const char* kEnds = "the process ends";

// Calls with a future. Never destroyed: the core may end one while the process does.
class UnderWay {
 public:
  static UnderWay& instance() {
    static UnderWay* const the_list = new UnderWay;
    return *the_list;
  }

  bool is_abandoned() const { return is_abandoned_.load(std::memory_order_acquire); }

  // False: all were abandoned.
  bool add(Call& call) {
    const std::lock_guard lock(mutex_);
    return !is_abandoned() && calls_.insert(&call).second;
  }

  // False: this one was abandoned.
  bool remove(Call& call) {
    const std::lock_guard lock(mutex_);
    return calls_.erase(&call) != 0;
  }

  std::unordered_set<Call*> abandon() {
    const std::lock_guard lock(mutex_);
    is_abandoned_.store(true, std::memory_order_release);
    return std::exchange(calls_, {});
  }

 private:
  UnderWay() = default;

  std::mutex mutex_;
  std::unordered_set<Call*> calls_;
  std::atomic<bool> is_abandoned_{false};  // publishes nothing else; set under the lock
};

}  // namespace

// ---- in the handler

Error* Call::run(CallFrame& frame) {
  // Waiting would drive operations whose buffers XLA no longer keeps.
  if (UnderWay::instance().is_abandoned()) return make_error(*frame.api, HVD_ABORTED, kEnds);
  Call* const call = new Call(frame);  // deleted here or by complete()
  if (call->status_ == HVD_OK) {
    const hvd_handle handle = call->start();
    if (handle != 0) static_cast<void>(hvd_wait(handle, kShortWaitNanoseconds));
    // The callback may be running now; it decides with us.
    if (call->state_.load(std::memory_order_acquire) != State::kEnded)
      return call->leave_to_future(frame, handle);
  }
  Error* const error = call->take_error();
  delete call;
  return error;
}

Error* Call::find_gpu(const CallFrame& frame, Gpu& gpu) {
  const Api& api = *frame.api;
  if (api.struct_size < sizeof(Api)) {
    return make_error(api, HVD_PRECONDITION_ERROR,
                      "this release of jaxlib does not tell which GPU a program runs on: arrays on "
                      "GPUs need a newer one");
  }
  StreamGet stream{sizeof(StreamGet), nullptr, frame.context, nullptr};
  if (Error* const error = api.stream_get(&stream); error != nullptr) return error;
  DeviceOrdinalGet device{sizeof(DeviceOrdinalGet), nullptr, frame.context, -1};
  if (Error* const error = api.device_ordinal_get(&device); error != nullptr) return error;
  gpu = {device.ordinal, stream.stream};
  return nullptr;
}

void Call::put_on(const Gpu& gpu) {
  if (!takes_tensors(wish_.kind))
    return refuse("join and barrier have no place in a program of a GPU: call them outside of jit");
  for (hvd_request& request : requests_) {
    request.device = gpu.device;
    request.stream = gpu.stream;
  }
}

Error* Call::run_on_gpu(CallFrame& frame) {
  Gpu gpu;
  if (Error* const error = find_gpu(frame, gpu); error != nullptr) return error;
  Call* const call = new Call(frame);
  if (call->status_ == HVD_OK) call->put_on(gpu);
  if (call->status_ == HVD_OK) {
    Arrival arrival;
    call->arrival_ = &arrival;
    // Without a handle another call of the name is before this one, and the driver drives both.
    if (const hvd_handle handle = call->start(); handle != 0)
      static_cast<void>(hvd_wait(handle, HVD_FOREVER));
    std::unique_lock lock(arrival.mutex);
    arrival.changed.wait(lock, [&] { return arrival.is_there; });  // the core ends every call
    if (call->status_ == HVD_OK && call->handle_ != 0) {
      const hvd_status status = hvd_order(call->handle_, gpu.stream);
      if (status != HVD_OK) call->fail(status, hvd_last_error());
    }
  }
  Error* const error = call->take_error();
  delete call;
  return error;
}

Error* Call::leave_to_future(CallFrame& frame, hvd_handle handle) {
  FutureCreate arguments{sizeof(FutureCreate), nullptr, nullptr};
  Error* const error = api_.future_create(&arguments);
  if (error != nullptr) {  // out of memory: the core still needs this
    Driver::instance().drive(handle);
    while (state_.load(std::memory_order_acquire) != State::kEnded) std::this_thread::yield();
    delete this;
    return error;
  }
  frame.future = future_ = arguments.future;
  if (!UnderWay::instance().add(*this)) {
    fail_future(make_error(api_, HVD_ABORTED, kEnds));
    return nullptr;
  }
  State expected = State::kInHandler;
  if (state_.compare_exchange_strong(expected, State::kHasFuture, std::memory_order_acq_rel)) {
    Driver::instance().drive(handle);  // the call may be gone
  } else {
    complete();
  }
  return nullptr;
}

Call::Call(const CallFrame& frame) : api_(*frame.api), wish_(read_attributes(frame.attributes)) {
  const bool with_tensors = takes_tensors(wish_.kind);
  if (!wish_.name.empty()) queue_ = std::to_string(wish_.process_set) + ":" + wish_.name;
  if (with_tensors && frame.args.size != frame.results.size) {
    refuse("expected as many results as arguments");
    return;
  }
  const size_t count = with_tensors ? static_cast<size_t>(frame.args.size) : 1;
  prepare_requests(count, static_cast<hvd_kind>(wish_.kind),
                   wish_.is_group != 0 ? Form::kGroup : Form::kSingle);
  for (hvd_request& request : requests_) {
    request.progress = HVD_PROGRESS_WAITER;  // the handler, then the driver
    request.reduce_op = wish_.reduce_op;
    request.process_set = wish_.process_set;
    request.root_rank = wish_.root_rank;
    request.wire_dtype = wish_.wire_dtype;
    request.prescale = wish_.prescale;
    request.postscale = wish_.postscale;
  }
  if (with_tensors) {
    take_buffers(frame);
  } else if (frame.results.size > 0) {
    last_joined_ = frame.results.buffers[0]->data;
  }
}

Call::~Call() {
  if (handle_ != 0) hvd_release(handle_);
}

void Call::take_buffers(const CallFrame& frame) {
  parts_.resize(requests_.size());
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Buffer& argument = *frame.args.buffers[i];
    if (dtype_of(argument.dtype) < 0)
      return refuse("XLA's dtype number " + std::to_string(argument.dtype) + " is not supported");
    Part& part = parts_[i];
    if (!wish_.name.empty()) {
      part.name = wish_.name;
      if (wish_.is_group != 0)
        part.name += "_" + std::to_string(i + 1) + "of" + std::to_string(parts_.size());
    }
    fill(part, argument, *frame.results.buffers[i], requests_[i]);
  }
  if (wish_.splits.empty()) return;
  requests_[0].splits = wish_.splits.data();
  requests_[0].splits_count = static_cast<int32_t>(wish_.splits.size());
}

void Call::fill(Part& part, const Buffer& argument, const Buffer& result, hvd_request& request) {
  part.call = this;
  part.shape.assign(argument.dims, argument.dims + argument.rank);
  part.result_shape.assign(result.dims, result.dims + result.rank);
  part.result = result.data;
  request.dtype = dtype_of(argument.dtype);
  request.ndim = static_cast<int32_t>(part.shape.size());
  request.shape = part.shape.data();
  request.input = argument.data;
  if (keeps_shape(wish_.kind)) {
    request.output = result.data;
  } else {
    request.allocate = &Call::allocate;
    request.allocate_context = &part;
  }
  if (!part.name.empty()) request.name = part.name.c_str();
}

void Call::refuse(std::string text) {
  status_ = HVD_INVALID_ARGUMENT;
  message_ = wish_.name + ": " + std::move(text);
}

// ---- on the thread that steps the engine

// The program was compiled for a shape; what the ranks have agreed on may be another.
void* Call::allocate(void* context, const int64_t* shape, int32_t ndim, size_t bytes) {
  Part& part = *static_cast<Part*>(context);
  const std::vector<int64_t>& expected = part.result_shape;
  if (!std::equal(shape, shape + ndim, expected.begin(), expected.end())) {
    part.call->refuse("the ranks together give a result of shape " +
                      shape_text(shape, static_cast<size_t>(ndim)) +
                      ", this program was compiled for " +
                      shape_text(expected.data(), expected.size()) +
                      "; inside jit every rank gives as many rows; call it outside of jit where "
                      "they differ, and jax.clear_caches() after the number of ranks has changed");
    return nullptr;
  }
  return bytes == 0 ? &kNoBytes : part.result;
}

void Call::take_results(hvd_handle handle) {
  if (last_joined_ == nullptr) return;
  hvd_output output = {};
  output.struct_size = sizeof(output);
  if (wish_.kind == HVD_JOIN && hvd_get_output(handle, 0, &output) != HVD_OK)
    return fail(HVD_UNKNOWN_ERROR, hvd_last_error());
  const int32_t value = wish_.kind == HVD_JOIN ? output.last_joined_rank : 0;
  std::memcpy(last_joined_, &value, sizeof(value));
}

void Call::fail(hvd_status status, const char* message) {
  if (status_ != HVD_OK) return;  // what was wrong here says more than what the core made of it
  status_ = status;
  message_ = message;
}

void Call::resume() { Driver::instance().drive(submit()); }

void Call::end() {
  Arrival* const arrival = arrival_;  // whoever waits for it deletes the call
  if (state_.exchange(State::kEnded, std::memory_order_acq_rel) == State::kHasFuture)
    CompletionPool::instance().post(*this);
  if (arrival == nullptr) return;
  const std::lock_guard lock(arrival->mutex);
  arrival->is_there = true;
  arrival->changed.notify_one();
}

// ---- the end

Error* Call::take_error() {
  return status_ == HVD_OK ? nullptr : make_error(api_, status_, message_);
}

void Call::complete() {
  if (!UnderWay::instance().remove(*this)) return;  // abandoned
  if (Error* const error = take_error(); error != nullptr) {
    fail_future(error);
    delete this;
    return;
  }
  FutureSetAvailable arguments{sizeof(FutureSetAvailable), nullptr, future_};
  const Api& api = api_;
  delete this;  // the rest of the program runs in the next line
  static_cast<void>(api.future_set_available(&arguments));
}

void Call::fail_future(Error* error) const {
  FutureSetError arguments{sizeof(FutureSetError), nullptr, future_, error};
  static_cast<void>(api_.future_set_error(&arguments));
}

void Call::abandon_all() {
  Driver::instance().stop();
  for (const Call* const call : UnderWay::instance().abandon())
    call->fail_future(make_error(call->api_, HVD_ABORTED, kEnds));
}

}  // namespace hvd::jax
