#include "engine/drive/background.h"

#include <pthread.h>

#include "engine/drive/affinity.h"
#include "engine/drive/driver.inc.h"
#include "shm/futex.h"

namespace hvd::engine {

void Background::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { main(stop); });
}

void Background::request_stop() {
  thread_.request_stop();
  job().wake(job().rank());
  job().wake_background(job().rank());
}

void Background::stop() {
  if (!thread_.joinable()) return;
  request_stop();
  // The thread may be on its way to sleep: the word tells it to look again.
  while (job().mine().background.load() != 0) job().wake_background(job().rank());
  thread_.join();
}

bool Background::has_work() {
  if (view_.failure.is_broken()) return view_.pending.count() != 0;
  const StepResult result = driver_.step_all(Channel::Effort::kAllSmall);
  if (view_.pending.any_background(std::memory_order_seq_cst)) return true;
  return result == StepResult::kLargeWaiting &&
         view_.surroundings.settings.progress != ProgressPolicy::kWaiter;
}

void Background::run(const std::stop_token& stop) {
  view_.statistics.background_runs.add();
  constexpr int kIdlePolls = 200;
  for (int idle = 0; !stop.stop_requested();) {
    if (HVD_UNLIKELY(view_.failure.is_broken())) return view_.lookout.handle_failures();
    const bool has_own_work = view_.pending.any_background();
    if (driver_.step_all(Channel::Effort::kEverything) == StepResult::kAdvanced) {
      idle = 0;
      // A thread that waits drives better than we do: no hand-off when it is done.
      if (!has_own_work && driver_.anybody_waits()) return;
      continue;
    }
    if (!has_own_work && !view_.lookout.is_busy()) return;
    if (++idle < kIdlePolls) {
      cpu_pause();
    } else if (sleep(stop, has_own_work)) {
      return;
    }
  }
}

bool Background::sleep(const std::stop_token& stop, bool has_own_work) {
  driver_.ring_sleepers();
  for (Channel* channel : view_.sets.open_channels())
    view_.statistics.late_rings.add(channel->ring_late_peers());
  const auto called_off = [&] {
    return stop.stop_requested() || (!has_own_work && driver_.anybody_waits());
  };
  driver_.set_background_sleeps(true);
  driver_.park(view_.sets.global(), called_off, Deadline::never());
  driver_.set_background_sleeps(false);
  return called_off();
}

void Background::main(const std::stop_token& stop) {
  pthread_setname_np(pthread_self(), "hvd-engine");
  const topology::Topology& topology = view_.surroundings.topology;
  pin_to_core(view_.surroundings.settings.thread_affinity, topology.local_rank,
              topology.local_size);
  auto& parked = job().mine().background;
  while (!stop.stop_requested()) {
    if (driver_.try_take_role()) {
      if (has_work()) run(stop);
      driver_.give_role_back();
    }
    parked.store(1, std::memory_order_seq_cst);
    bool work = false;
    if (!stop.stop_requested() && driver_.try_take_role()) {
      work = has_work();
      driver_.give_role_back();
    }
    if (!work && !stop.stop_requested()) shm::futex_wait(parked, 1, std::chrono::hours(1));
    parked.store(0, std::memory_order_seq_cst);
  }
}

}  // namespace hvd::engine
