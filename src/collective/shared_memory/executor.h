// executor.h - runs the agreed large works of one channel, in order. Never blocks. Needs the engine
// role.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "collective/shared_memory/pair_stream.h"
#include "collective/shared_memory/tasks.h"

namespace hvd::collective::shared_memory {

class Executor {
 public:
  // Makes the task of a work where the members of the channel do not all share memory.
  using TaskMaker = std::function<std::unique_ptr<Task>(Work&)>;
  explicit Executor(Link& link, TaskMaker maker = nullptr)
      : link_(link), maker_(std::move(maker)), pair_(link) {}

  void add(Work& work) { queue_.push_back(&work); }
  bool is_idle() const { return queue_.empty() && task_ == nullptr && pair_.is_idle(); }
  // Advances what is first. Finished works are appended to `done`, in order. kDone: nothing is
  // left.
  Progress advance(std::vector<Work*>& done);
  // Gives up: nothing is touched any more.
  void abandon();

 private:
  std::unique_ptr<Task> make_task(Work& work);

  Link& link_;
  const TaskMaker maker_;
  std::deque<Work*> queue_;
  PairStream pair_;
  std::unique_ptr<Task> task_;
  Work* current_ = nullptr;
};

}  // namespace hvd::collective::shared_memory
