// scheduler.h - several threads of control ("fibers") in one thread. At each point a strategy says
// which one runs on, so that a run follows from its choices alone: it can be written down, repeated
// and shortened. Not for any other thread.
#pragma once

#include <ucontext.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/explore.h"

namespace hvd::explore {

// What a strategy may know and do beyond choosing.
struct Peek {
  std::function<uint64_t()> digest;  // of the state that the job is in
  std::function<void()> stop;        // this run has nothing new to show
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual void begin(Peek) {}
  // One of `ready`, which are fiber numbers, ascending; `current` may be among them.
  virtual int choose(const std::vector<int>& ready, int current) = 0;
};

enum class Grain {
  kSteps,   // another fiber comes in between whole steps only
  kPoints,  // also between single accesses to shared words
};

enum class End {
  kDone,     // all fibers that must end have ended
  kStuck,    // none can go on
  kTooLong,  // more turns than any run should need
};

class Scheduler {
 public:
  explicit Scheduler(Grain grain) : grain_(grain) {}
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // A helper need not end. Fibers may be added while others run.
  enum class Role { kMustEnd, kHelper };
  int add(std::string name, Role role, std::function<void()> body);
  // When nothing can go on, `rescue` is asked once whether it changed something.
  End run(Strategy& strategy, uint64_t most_turns, const std::function<bool()>& rescue);

  // The choices that there were: turns with one fiber that could go on are left out.
  const std::vector<int>& trace() const { return trace_; }
  uint64_t turns() const { return turns_; }
  const std::string& name_of(int fiber) const { return fibers_[static_cast<size_t>(fiber)]->name; }

  // ---- called by fibers ----
  // Others may come in here.
  void step_point();
  // Goes on when the condition holds.
  void wait_until(std::function<bool()> condition);
  // The scheduler that runs now, or null.
  static Scheduler* current();
  // Inside a step: between two operations of it, at the finer grain everywhere.
  void point(const char* what) {
    if (grain_ == Grain::kPoints || what == kNextOperation) step_point();
  }

 private:
  struct Fiber {
    std::string name;
    Role role;
    std::function<void()> body;
    std::function<bool()> condition;  // empty: ready
    ucontext_t context{};
    void* stack = nullptr;
    bool is_over = false;
  };
  static void enter(unsigned low, unsigned high);
  bool choose_next();
  void switch_from(ucontext_t& from);
  bool all_ended() const;

  const Grain grain_;
  Strategy* strategy_ = nullptr;
  std::function<bool()> rescue_;
  uint64_t most_turns_ = 0;
  uint64_t turns_ = 0;
  End end_ = End::kDone;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<int> ready_;
  std::vector<int> trace_;
  int running_ = -1;
  ucontext_t main_{};
};

}  // namespace hvd::explore
