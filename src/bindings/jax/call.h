// call.h - one execution of a custom call, from XLA's handler to its completion.
//
// It ends in one of two ways: inside the handler, which then returns the result, or later, through
// a future and the completion pool. Handler and core decide which by one exchange of `state_`.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "bindings/common/call.h"
#include "bindings/jax/attributes.h"
#include "bindings/jax/ffi.h"

namespace hvd::jax {

class Call final : public bindings::Call {
 public:
  // On XLA's thread; blocks for at most kShortWait. What the handler returns: null is success, or a
  // future in the frame.
  static Error* run(CallFrame& frame);
  // The same for buffers on a GPU; blocks until the result is ordered in the program's stream.
  // There are no futures: what XLA puts into the stream after the handler has returned finds the
  // result.
  static Error* run_on_gpu(CallFrame& frame);

  // The process is about to end: tells XLA, which would wait for them, that all operations with a
  // future have failed. The core may still know them, so that nothing of theirs is freed; nobody
  // drives it any more. Calls that begin later fail at once.
  static void abandon_all();

  const std::string& queue() const override { return queue_; }

  // Completes the future and deletes the call. By the pool.
  void complete();

 private:
  // kInHandler: the handler looks for the end itself. kHasFuture: the pool is told.
  enum class State { kInHandler, kHasFuture, kEnded };

  struct Part {  // one tensor
    Call* call = nullptr;
    std::vector<int64_t> shape;
    std::vector<int64_t> result_shape;
    void* result = nullptr;
    std::string name;
  };

  // A handler on a GPU waits for the end; its own, so that the end touches nothing that is gone.
  struct Arrival {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_there = false;
  };
  struct Gpu {
    int32_t device = -1;
    void* stream = nullptr;
  };

  explicit Call(const CallFrame& frame);
  // Null, or why there is none.
  static Error* find_gpu(const CallFrame& frame, Gpu& gpu);
  void put_on(const Gpu& gpu);
  ~Call() override;

  void take_buffers(const CallFrame& frame);
  void fill(Part& part, const Buffer& argument, const Buffer& result, hvd_request& request);
  void refuse(std::string text);
  Error* leave_to_future(CallFrame& frame, hvd_handle handle);
  void fail_future(Error* error) const;
  Error* take_error();

  static void* allocate(void* part, const int64_t* shape, int32_t ndim, size_t bytes);
  void take_results(hvd_handle handle) override;
  void fail(hvd_status status, const char* message) override;
  void resume() override;
  void release(hvd_handle handle) override { handle_ = handle; }  // the handler may wait for it
  void end() override;

  const Api& api_;
  Wish wish_;
  std::string queue_;
  std::vector<Part> parts_;
  void* last_joined_ = nullptr;  // join: where its result goes
  Future* future_ = nullptr;
  Arrival* arrival_ = nullptr;
  hvd_handle handle_ = 0;
  hvd_status status_ = HVD_OK;
  std::string message_;
  // Publishes status_, message_ and the results: exchanged by end(), read by the handler or the
  // pool. kHasFuture publishes future_ to end().
  std::atomic<State> state_{State::kInHandler};
};

}  // namespace hvd::jax
