// task_runner.h - runs works one after the other as tasks: what a backend is made of if it begins
// a work when the one before is complete.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "collective/backend.h"
#include "collective/task.h"

namespace hvd::collective {

class TaskRunner {
 public:
  bool is_idle() const { return task_ == nullptr; }
  void begin(Work& work, std::unique_ptr<Task> task) HVD_REQUIRES(engine_role) {
    work_ = &work;
    task_ = std::move(task);
  }
  // Only while it is not idle. kDone: the work is in `done`, and the next one can begin.
  Progress advance(std::vector<Work*>& done) HVD_REQUIRES(engine_role) {
    const Progress progress = task_->advance();
    if (progress != Progress::kDone) return progress;
    task_.reset();
    done.push_back(work_);
    return progress;
  }
  void abandon() HVD_REQUIRES(engine_role) { task_.reset(); }

 private:
  std::unique_ptr<Task> task_;
  Work* work_ = nullptr;
};

// Backend::advance() of a backend that makes a task of each work by `make(work)`.
template <typename MakeTask>
Progress advance_tasks(TaskRunner& runner, const Backend& self, std::deque<Work*>& queue,
                       std::vector<Work*>& done, const MakeTask& make) HVD_REQUIRES(engine_role) {
  const auto is_own = [&] { return !queue.empty() && queue.front()->backend == &self; };
  if (runner.is_idle()) {
    if (!is_own()) return Progress::kDone;
    Work& work = *queue.front();
    queue.pop_front();
    runner.begin(work, make(work));
  }
  const Progress progress = runner.advance(done);
  return progress == Progress::kDone && is_own() ? Progress::kAdvanced : progress;
}

}  // namespace hvd::collective
