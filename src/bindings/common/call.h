// call.h - one execution of an operation, from a framework's call to its completion.
//
// A call owns itself: start() hands it to the core, and the core's callback, on whatever thread
// steps the engine, ends it. Frameworks wait for every call that they have begun, and have no way
// to cancel one: each must end, and the core sees to that when the job fails or shuts down.
#pragma once

#include <string>
#include <vector>

#include "horovod/hvd.h"

namespace hvd::bindings {

class Call {
 public:
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Hands the requests to the core, or waits for the name. Never blocks; the call may have ended
  // when this returns. The handle; 0: it waits, or was refused.
  hvd_handle start();

  // When its name is free. The call may have ended when this returns.
  hvd_handle submit();

  // Calls with the same one follow each other; empty: no waiting. Valid until end().
  virtual const std::string& queue() const = 0;

 protected:
  enum class Form { kSingle, kGroup };

  Call() = default;
  virtual ~Call() = default;

  // `count` requests with defaults, the kind, and the callback that ends this call.
  void prepare_requests(size_t count, hvd_kind kind, Form form);

  // The operation has succeeded: read what the handle knows.
  virtual void take_results(hvd_handle handle) = 0;
  // It has failed, or could not be submitted.
  virtual void fail(hvd_status status, const char* message) = 0;
  // Its name has become free: submits it, unless the adapter waits for more. May end the call.
  virtual void resume() { submit(); }
  // The core is done with it. An adapter that may still wait for the handle releases it later.
  virtual void release(hvd_handle handle) { hvd_release(handle); }
  // Deletes the call and lets the framework go on, in the order that the framework needs.
  virtual void end() = 0;

  // Ends the call: for one that failed before start(), too.
  void finish();

  std::vector<hvd_request> requests_;

 private:
  static void on_complete(void* call, hvd_handle handle, hvd_status status, const char* message);

  Form form_ = Form::kSingle;
};

}  // namespace hvd::bindings
