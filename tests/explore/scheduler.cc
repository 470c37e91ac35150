#include "tests/explore/scheduler.h"

#include <sys/mman.h>

#include <cstdlib>

#include "base/explore.h"

namespace hvd {

void schedule_point(const char* what) {
  if (explore::Scheduler* scheduler = explore::Scheduler::current()) scheduler->point(what);
}

}  // namespace hvd

namespace hvd::explore {
namespace {

constexpr size_t kStackBytes = 256 << 10;
Scheduler* the_current = nullptr;

// Stacks are used again by the next run: making one costs more than a short run does.
std::vector<void*>& free_stacks() {
  static std::vector<void*> stacks;
  return stacks;
}

void* take_stack() {
  auto& stacks = free_stacks();
  if (stacks.empty()) {
    void* stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) std::abort();
    return stack;
  }
  void* stack = stacks.back();
  stacks.pop_back();
  return stack;
}

}  // namespace

Scheduler::~Scheduler() {
  for (const auto& fiber : fibers_) free_stacks().push_back(fiber->stack);
}

Scheduler* Scheduler::current() { return the_current; }

void Scheduler::enter(unsigned low, unsigned high) {
  auto* scheduler = reinterpret_cast<Scheduler*>(uintptr_t{low} | uintptr_t{high} << 32);
  Fiber& self = *scheduler->fibers_[static_cast<size_t>(scheduler->running_)];
  self.body();
  self.is_over = true;
  scheduler->switch_from(self.context);
}

int Scheduler::add(std::string name, Role role, std::function<void()> body) {
  auto fiber = std::make_unique<Fiber>();
  fiber->name = std::move(name);
  fiber->role = role;
  fiber->body = std::move(body);
  fiber->stack = take_stack();
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack;
  fiber->context.uc_stack.ss_size = kStackBytes;
  fiber->context.uc_link = nullptr;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&fiber->context, reinterpret_cast<void (*)()>(enter), 2, static_cast<unsigned>(self),
              static_cast<unsigned>(self >> 32));
  fibers_.push_back(std::move(fiber));
  return static_cast<int>(fibers_.size()) - 1;
}

bool Scheduler::all_ended() const {
  for (const auto& fiber : fibers_) {
    if (fiber->role == Role::kMustEnd && !fiber->is_over) return false;
  }
  return true;
}

// Sets running_; false: the run is over, for the reason in end_.
bool Scheduler::choose_next() {
  if (all_ended()) {
    end_ = End::kDone;
    return false;
  }
  if (turns_++ == most_turns_) {
    end_ = End::kTooLong;
    return false;
  }
  for (bool was_rescued = false;;) {
    ready_.clear();
    for (size_t i = 0; i < fibers_.size(); ++i) {
      const Fiber& fiber = *fibers_[i];
      if (!fiber.is_over && (!fiber.condition || fiber.condition()))
        ready_.push_back(static_cast<int>(i));
    }
    if (!ready_.empty()) break;
    if (was_rescued || !rescue_()) {
      end_ = End::kStuck;
      return false;
    }
    was_rescued = true;
  }
  if (ready_.size() == 1) {
    running_ = ready_[0];
  } else {
    running_ = strategy_->choose(ready_, running_);
    trace_.push_back(running_);
  }
  fibers_[static_cast<size_t>(running_)]->condition = nullptr;
  return true;
}

void Scheduler::switch_from(ucontext_t& from) {
  const bool goes_on = choose_next();
  ucontext_t& to = goes_on ? fibers_[static_cast<size_t>(running_)]->context : main_;
  if (&to != &from) swapcontext(&from, &to);
}

void Scheduler::step_point() { switch_from(fibers_[static_cast<size_t>(running_)]->context); }

void Scheduler::wait_until(std::function<bool()> condition) {
  Fiber& self = *fibers_[static_cast<size_t>(running_)];
  self.condition = std::move(condition);
  switch_from(self.context);
}

End Scheduler::run(Strategy& strategy, uint64_t most_turns, const std::function<bool()>& rescue) {
  strategy_ = &strategy;
  rescue_ = rescue;
  most_turns_ = most_turns;
  the_current = this;
  switch_from(main_);
  the_current = nullptr;
  running_ = -1;
  return end_;
}

}  // namespace hvd::explore
