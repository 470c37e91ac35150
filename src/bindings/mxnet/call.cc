#include "bindings/mxnet/call.h"

#include <algorithm>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "bindings/common/name_queue.h"
#include "bindings/mxnet/sharing.h"

namespace hvd::mxnet {
namespace {

// What an operation of the naive engine has ended with: it forgets errors, so the push returns
// them.
thread_local std::string naive_error;

// What this thread is pushing. Only that may be waited for: what else runs here meanwhile has had
// its turn given by an operation that ends, inside of the core, where nobody may wait.
thread_local const Call* pushed = nullptr;

// Ranks in step meet within a few microseconds; a late one is not worth the program's time.
constexpr int64_t kShortWaitNanoseconds = 20'000;

// Calls that MXNet waits for. Never destroyed: the core may end one while the process does.
struct UnderWay {
  std::mutex mutex;
  std::unordered_set<Call*> calls;
};

UnderWay& under_way() {
  static UnderWay* const the_list = new UnderWay;
  return *the_list;
}

const char* label_of(int32_t kind) {
  return kind == HVD_BROADCAST ? "horovod_broadcast" : "horovod_allreduce";
}

}  // namespace

// ---- before the push

Call::Call(const Operation& operation, const Tensors& tensors, EngineKind engine)
    : operation_(operation), engine_(engine) {
  const auto count = static_cast<size_t>(operation.count);
  parts_.reserve(count);
  prepare_requests(count, static_cast<hvd_kind>(operation.kind),
                   operation.is_group != 0 ? Form::kGroup : Form::kSingle);
  for (size_t i = 0; i < count; ++i) {
    parts_.push_back(
        {Array(tensors.inputs[i]), Array(tensors.outputs[i]), tensors.names[i], {}, {}});
  }
  queue_ = std::to_string(operation.process_set) + ":" + parts_.front().name;
}

std::string Call::push(const Operation& operation, const Tensors& tensors, EngineKind engine) {
  if (operation.count < 1) return "expected at least one tensor, got none";
  Call* const call = new Call(operation, tensors, engine);  // deleted by on_dropped or end
  if (!call->holds_all()) {
    delete call;
    return api().MXGetLastError();
  }
  return call->push_to_engine();
}

bool Call::holds_all() const {
  return std::all_of(parts_.begin(), parts_.end(), [](const Part& part) {
    return part.input.handle() != nullptr && part.output.handle() != nullptr;
  });
}

std::string Call::push_to_engine() {
  std::vector<Handle> written, read;  // by memory: MXNet waits for ever for what is named twice
  for (const Part& part : parts_) add_unless_shared(part.output.handle(), written);
  for (const Part& part : parts_) {
    if (!is_shared(part.input.handle(), written)) add_unless_shared(part.input.handle(), read);
  }
  const int& property = operation_.is_direct != 0 ? kAsync : kCpuPrioritized;
  naive_error.clear();
  pushed = this;
  if (bindings::NameQueue::instance().enter(*this)) arrive();
  const int failed = api().MXEnginePushAsyncND(
      &Call::on_engine, this, &Call::on_dropped, &kCpu, read.data(), static_cast<int>(read.size()),
      written.data(), static_cast<int>(written.size()), &property, operation_.priority,
      label_of(operation_.kind), false);
  pushed = nullptr;
  // The call may be gone; after a failure it has been dropped.
  return failed == 0 ? naive_error : api().MXGetLastError();
}

// ---- in MXNet's engine

void Call::on_engine(void* /*run_context*/, void* on_complete, void* context) {
  Call* const call = static_cast<Call*>(context);
  call->completion_ = Completion(on_complete);
  call->has_run_ = true;
  {
    const std::lock_guard lock(under_way().mutex);
    under_way().calls.insert(call);
  }
  call->arrive();
}

void Call::on_dropped(void* context) {
  Call* const call = static_cast<Call*>(context);
  if (call->has_run_) {
    if (!call->is_abandoned_) delete call;
    return;
  }
  call->is_dropped_ = true;
  call->arrive();
}

void Call::arrive() {
  if (waits_for_.fetch_sub(1, std::memory_order_acq_rel) == 1) run();
}

// ---- in the core

void Call::run() {
  if (is_dropped_) return finish();
  error_ = look();
  if (!error_.empty()) return finish();
  if (engine_ == EngineKind::kNaive) return run_and_wait();
  if (pushed == this) return submit_and_wait_shortly();
  submit();
}

void Call::submit_and_wait_shortly() {
  Lease* const lease = lease_ = new Lease;
  const hvd_handle handle = submit();  // the call may be gone
  if (handle == 0) return lease->cancel();
  static_cast<void>(hvd_wait(handle, kShortWaitNanoseconds));
  lease->give_back(handle);
}

void Call::release(hvd_handle handle) {
  if (lease_ == nullptr) return bindings::Call::release(handle);
  lease_->give_back(handle);
}

void Call::run_and_wait() {
  const hvd_status status = operation_.is_group != 0
                                ? hvd_run_group(requests_.data(), requests_.size(), HVD_FOREVER)
                                : hvd_run(requests_.data(), HVD_FOREVER);
  if (status != HVD_OK) fail(status, hvd_last_error());
  finish();
}

std::string Call::look() {
  for (size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    for (const auto& [array, view] :
         {std::pair(&part.input, &part.from), std::pair(&part.output, &part.to)}) {
      if (const std::string problem = array->look(*view); !problem.empty())
        return part.name + ": " + problem;
    }
    fill(part, requests_[i]);
  }
  return {};
}

void Call::fill(const Part& part, hvd_request& request) const {
  request.dtype = part.from.dtype;
  request.reduce_op = operation_.reduce_op;
  request.wire_dtype = operation_.wire_dtype;
  request.process_set = operation_.process_set;
  request.root_rank = operation_.root_rank;
  request.ndim = static_cast<int32_t>(part.from.shape.size());
  request.shape = part.from.shape.data();
  request.input = part.from.data;
  request.output = part.to.data;
  request.prescale = operation_.prescale;
  request.postscale = operation_.postscale;
  request.name = part.name.c_str();
  if (engine_ == EngineKind::kNaive) request.on_complete = nullptr;
}

// MXNet deletes a call that has run, perhaps before this returns.
void Call::end() {
  if (is_dropped_) {
    delete this;
    return;
  }
  {
    const std::lock_guard lock(under_way().mutex);
    if (under_way().calls.erase(this) == 0) return;  // abandoned
  }
  const Completion completion = completion_;
  std::string error = std::move(error_);
  if (engine_ == EngineKind::kNaive) naive_error = std::exchange(error, {});
  completion.run(error);
}

void Call::abandon_all() {
  std::unordered_set<Call*> left;
  {
    const std::lock_guard lock(under_way().mutex);
    left.swap(under_way().calls);
    for (Call* const call : left) call->is_abandoned_ = true;
  }
  for (const Call* const call : left) call->completion_.run("the process has ended");
}

}  // namespace hvd::mxnet
