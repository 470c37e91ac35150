#include "bindings/python/waiting.h"

#include <memory>
#include <thread>

namespace hvd::python {

std::optional<int32_t> Conversation::ask(const std::function<int32_t()>& question) {
  std::unique_lock lock(mutex_);
  if (has_left_) return std::nullopt;
  question_ = &question;
  changed_.notify_all();
  // Ends: a caller that waits looks at signals in between and leaves, or replies.
  changed_.wait(lock, [&] { return question_ == nullptr; });
  return has_left_ ? std::nullopt : std::optional(reply_);
}

void Conversation::finish(Answer answer) {
  {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
  }
  changed_.notify_all();
}

std::optional<Answer> Conversation::wait() {
  for (;;) {
    const auto look = [&](int64_t nanoseconds) {
      std::unique_lock lock(mutex_);
      const bool done = changed_.wait_for(lock, std::chrono::nanoseconds(nanoseconds), [&] {
        return answer_.has_value() || question_ != nullptr;
      });
      return done ? HVD_OK : HVD_TIMED_OUT;
    };
    if (!wait_in_slices(look, HVD_FOREVER) || !answer_question()) {
      leave();
      return std::nullopt;
    }
    const std::lock_guard lock(mutex_);
    if (answer_) return std::move(answer_);
  }
}

// False: it left an exception.
bool Conversation::answer_question() {
  const std::function<int32_t()>* question = nullptr;
  {
    const std::lock_guard lock(mutex_);
    question = question_;
  }
  if (question == nullptr) return true;
  const int32_t reply = (*question)();  // whoever asked waits, and so do its variables
  if (PyErr_Occurred() != nullptr) return false;
  {
    const std::lock_guard lock(mutex_);
    reply_ = reply;
    question_ = nullptr;
  }
  changed_.notify_all();
  return true;
}

void Conversation::leave() {
  {
    const std::lock_guard lock(mutex_);
    has_left_ = true;
    question_ = nullptr;
  }
  changed_.notify_all();
}

std::optional<Answer> call_interruptibly(std::function<int32_t(Conversation&)> call) {
  // Shared with the thread, which may outlive an interrupted caller.
  const auto conversation = std::make_shared<Conversation>();
  // Detached, against the rule: after Ctrl-C nobody is left to join it, and it uses nothing of
  // this frame.
  std::thread([conversation, call = std::move(call)] {
    Answer answer;
    answer.value = call(*conversation);
    answer.error = hvd_last_error();
    conversation->finish(std::move(answer));
  }).detach();
  return conversation->wait();
}

std::optional<Answer> call_interruptibly(std::function<int32_t()> call) {
  return call_interruptibly([call = std::move(call)](Conversation&) { return call(); });
}

}  // namespace hvd::python
