// call.h - one operation, from the push to MXNet's engine to its end.
//
// The engine calls on_engine() when the arrays are this operation's; the core's callback ends it,
// on whatever thread steps the engine of the core. Operations of one name follow each other in the
// order of their pushes: the core takes a name once at a time, and ranks must pair the same ones.
// An operation therefore waits for two things, its arrays and its turn, and the second submits it.
//
// A direct operation whose arrays are ready is submitted by the thread that pushes it, which then
// waits for a moment: ranks in step are done before another thread would have woken up.
//
// Life: MXNet's deleter comes after the completion, and deletes the call. If what the arrays depend
// on has failed, the deleter comes instead of on_engine(): the call then gives its turn away.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "bindings/common/call.h"
#include "bindings/mxnet/array.h"
#include "bindings/mxnet/completion.h"
#include "bindings/mxnet/lease.h"
#include "bindings/mxnet/operation.h"
#include "horovod/hvd.h"

namespace hvd::mxnet {

// Whether the engine is MXNet's NaiveEngine, which ends an operation before it returns from a push.
enum class EngineKind { kThreaded, kNaive };

class Call final : public bindings::Call {
 public:
  struct Tensors {
    const Handle* inputs;
    const Handle* outputs;  // equal to the input: in place
    const char* const* names;
  };

  // Never blocks, unless the engine is naive. Empty: pushed;
  // otherwise what is wrong.
  static std::string push(const Operation& operation, const Tensors& tensors, EngineKind engine);

  // The process is about to end: tells MXNet, which would wait for them, that all operations under
  // way have failed. The core may still work on them, so that nothing of theirs is freed.
  static void abandon_all();

  const std::string& queue() const override { return queue_; }
  void resume() override { arrive(); }

 private:
  struct Part {
    Array input, output;
    std::string name;
    View from, to;
  };

  Call(const Operation& operation, const Tensors& tensors, EngineKind engine);
  bool holds_all() const;
  std::string push_to_engine();

  static void on_engine(void* run_context, void* on_complete, void* call);
  static void on_dropped(void* call);
  void arrive();
  void run();
  void run_and_wait();
  void submit_and_wait_shortly();
  std::string look();
  void fill(const Part& part, hvd_request& request) const;

  void take_results(hvd_handle /*handle*/) override {}
  void release(hvd_handle handle) override;
  void fail(hvd_status /*status*/, const char* message) override { error_ = message; }
  void end() override;

  const Operation operation_;
  const EngineKind engine_;
  std::string queue_;
  std::vector<Part> parts_;
  std::string error_;  // empty: none
  Completion completion_;
  Lease* lease_ = nullptr;     // of the handle, if the thread that submits also waits
  bool is_abandoned_ = false;  // guarded by the list of calls under way
  bool has_run_ = false, is_dropped_ = false;  // written by the engine, before it arrives
  std::atomic<int> waits_for_{2};              // the last to arrive sees what the other has written
};

}  // namespace hvd::mxnet
