// waiting.h - blocking calls without the GIL, with an eye on signals: Ctrl-C works while a
// collective waits for a peer.
#pragma once

#include "bindings/python/api.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "horovod/hvd.h"

namespace hvd::python {

// How long a signal may go unnoticed.
inline constexpr int64_t kSliceNanoseconds = 100'000'000;

// The GIL is not given back by a destructor: taking it again ends the thread while the interpreter
// ends, by an unwinding that no destructor may start.
template <typename Call>
auto without_gil(const Call& call) {
  PyThreadState* const state = PyEval_SaveThread();
  const auto result = call();
  PyEval_RestoreThread(state);
  return result;
}

// Calls look(nanoseconds) until it answers anything but TIMED_OUT or the time has passed.
// No value: a signal handler raised, the exception is set.
template <typename Look>
std::optional<hvd_status> wait_in_slices(const Look& look, int64_t timeout_ns) {
  using Clock = std::chrono::steady_clock;
  const bool for_ever = timeout_ns == HVD_FOREVER;
  const auto begin = for_ever ? Clock::time_point() : Clock::now();
  int64_t remaining = timeout_ns;
  for (;;) {
    const int64_t slice = std::min(remaining, kSliceNanoseconds);
    const hvd_status status = without_gil([&] { return look(slice); });
    if (status != HVD_TIMED_OUT) return status;
    if (PyErr_CheckSignals() != 0) return std::nullopt;
    if (for_ever) continue;
    remaining = timeout_ns - std::chrono::nanoseconds{Clock::now() - begin}.count();
    if (remaining <= 0) return HVD_TIMED_OUT;
  }
}

// For calls of the core that take no deadline: runs `call` on a thread of its own and waits for it.
// The texts of errors belong to a thread, so they come along.
struct Answer {
  int32_t value = 0;
  std::string error;
};

// A call on its thread and the caller that waits for it.
class Conversation {
 public:
  // By the call's thread, which has no GIL: the caller runs `question`, with the GIL. Its answer,
  // or nothing if the caller has left, which it also does if the question leaves an exception.
  std::optional<int32_t> ask(const std::function<int32_t()>& question);

  // By the call's thread, at the end.
  void finish(Answer answer);
  // By the caller, with the GIL. No value: an exception is set.
  std::optional<Answer> wait();

 private:
  bool answer_question();
  void leave();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Answer> answer_;
  const std::function<int32_t()>* question_ = nullptr;  // until it has a reply
  int32_t reply_ = 0;
  bool has_left_ = false;
};

// No value: interrupted, the exception is set; the call goes on and nobody hears its answer.
std::optional<Answer> call_interruptibly(std::function<int32_t(Conversation&)> call);
std::optional<Answer> call_interruptibly(std::function<int32_t()> call);

}  // namespace hvd::python
