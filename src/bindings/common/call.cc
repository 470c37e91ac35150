#include "bindings/common/call.h"

#include "bindings/common/name_queue.h"

namespace hvd::bindings {

void Call::prepare_requests(size_t count, hvd_kind kind, Form form) {
  form_ = form;
  requests_.resize(count);
  for (hvd_request& request : requests_) {
    hvd_request_init(&request);
    request.kind = kind;
    request.on_complete = &Call::on_complete;
    request.callback_context = this;
  }
}

hvd_handle Call::start() {
  return queue().empty() || NameQueue::instance().enter(*this) ? submit() : 0;
}

hvd_handle Call::submit() {
  hvd_handle handle = 0;
  // From here on the callback may have ended this call.
  const hvd_status status = form_ == Form::kGroup
                                ? hvd_submit_group(requests_.data(), requests_.size(), &handle)
                                : hvd_submit(requests_.data(), &handle);
  if (status == HVD_OK) return handle;
  fail(status, hvd_last_error());
  finish();
  return 0;
}

void Call::on_complete(void* context, hvd_handle handle, hvd_status status, const char* message) {
  Call* const call = static_cast<Call*>(context);
  if (status == HVD_OK) {
    call->take_results(handle);
  } else {
    call->fail(status, message);
  }
  call->release(handle);
  call->finish();
}

void Call::finish() {
  Call* const next = queue().empty() ? nullptr : NameQueue::instance().leave(*this);
  end();  // this is gone from here on
  if (next != nullptr) next->resume();
}

}  // namespace hvd::bindings
