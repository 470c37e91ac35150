#include "python/waiting.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

namespace hvd::python {
namespace {

struct Exchange {
  std::mutex mutex;
  std::condition_variable answered;
  std::optional<Answer> answer;
};

}  // namespace

std::optional<Answer> call_interruptibly(std::function<int32_t()> call) {
  // Shared with the thread, which may outlive an interrupted caller.
  const auto exchange = std::make_shared<Exchange>();
  // Detached, against the rule: after Ctrl-C nobody is left to join it, and it uses nothing of
  // this frame.
  std::thread([exchange, call = std::move(call)] {
    Answer answer;
    answer.value = call();
    answer.error = hvd_last_error();
    {
      const std::lock_guard lock(exchange->mutex);
      exchange->answer = std::move(answer);
    }
    exchange->answered.notify_one();
  }).detach();
  const auto look = [&](int64_t nanoseconds) {
    std::unique_lock lock(exchange->mutex);
    const bool done = exchange->answered.wait_for(lock, std::chrono::nanoseconds(nanoseconds),
                                                  [&] { return exchange->answer.has_value(); });
    return done ? HVD_OK : HVD_TIMED_OUT;
  };
  if (!wait_in_slices(look, HVD_FOREVER)) return std::nullopt;
  return std::move(exchange->answer);
}

}  // namespace hvd::python
