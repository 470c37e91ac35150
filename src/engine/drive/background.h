// background.h - hvd-engine, the thread that drives what nobody waits for: submissions that ask for
// it, and agreed large work whose peers are stuck ("late ring"). Parked otherwise.
#pragma once

#include <thread>

#include "base/engine_role.h"
#include "engine/drive/driver.h"

namespace hvd::engine {

class Background {
 public:
  Background(Driver& driver, const DriverView& view) : driver_(driver), view_(view) {}

  void start();
  // It gives the role up by itself, soon.
  void request_stop();
  // Ends it. Idempotent.
  void stop();

 private:
  void main(const std::stop_token& stop);
  bool has_work() HVD_REQUIRES(engine_role);
  void run(const std::stop_token& stop) HVD_REQUIRES(engine_role);
  // Until called off; true: it was.
  bool sleep(const std::stop_token& stop, bool has_own_work) HVD_REQUIRES(engine_role);
  shm::Job& job() const { return *view_.surroundings.job; }

  Driver& driver_;
  const DriverView view_;
  std::jthread thread_;  // last
};

}  // namespace hvd::engine
