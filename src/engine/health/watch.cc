#include "engine/health/watch.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

namespace hvd::engine {
namespace {

// Where the kernel has no process descriptors the process table is read this often.
constexpr Nanoseconds kPollPeriod = std::chrono::milliseconds(20);
// Heartbeats of other hosts come twice a second.
constexpr Nanoseconds kRelayTime = std::chrono::seconds(1);

}  // namespace

Watch::Watch(WatchHost& host, const shm::Job& job, const PeerProcesses& processes,
             const Times& times)
    : host_(host),
      job_(job),
      processes_(processes),
      frozen_after_(times.frozen_after),
      period_(times.period),
      peers_(static_cast<size_t>(job.size())) {
  if (frozen_after_.count() > 0) period_ = std::min(period_, frozen_after_ / 4);
  if (!processes.all_have_descriptors()) period_ = kPollPeriod;
}

Result<std::unique_ptr<Watch>> Watch::start(WatchHost& host, const shm::Job& job,
                                            const PeerProcesses& processes, const Times& times) {
  auto watch = std::unique_ptr<Watch>(new Watch(host, job, processes, times));
  watch->stop_event_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!watch->stop_event_.valid()) return errno_status("init: eventfd", errno);
  watch->thread_ = std::jthread([w = watch.get()](const std::stop_token& stop) { w->main(stop); });
  return watch;
}

Watch::~Watch() {
  thread_.request_stop();
  const uint64_t one = 1;
  (void)!write(stop_event_.get(), &one, sizeof one);
}

void Watch::main(const std::stop_token& stop) {
  pthread_setname_np(pthread_self(), "hvd-watch");
  auto last = std::chrono::steady_clock::now();
  while (!stop.stop_requested()) {
    job_.mine().heartbeat.fetch_add(1, std::memory_order_relaxed);
    sleep(period_);
    if (stop.stop_requested()) return;
    const auto now = std::chrono::steady_clock::now();
    // A tick that took long means that we ourselves were stopped: peers are not charged for that.
    const auto since_last = std::min<Nanoseconds>(now - last, 2 * period_);
    last = now;
    look_for_deaths();
    look_for_frozen(since_last);
    host_.tick();
  }
}

void Watch::sleep(Nanoseconds span) {
  std::vector<pollfd> items{{stop_event_.get(), POLLIN, 0}};
  for (int rank = 0; rank < job_.size(); ++rank) {
    const Peer& peer = peers_[static_cast<size_t>(rank)];
    const int descriptor = processes_.descriptor(rank);
    if (descriptor >= 0 && !peer.reported && !peer.left) items.push_back({descriptor, POLLIN, 0});
  }
  const timespec timeout{static_cast<time_t>(span.count() / 1'000'000'000),
                         static_cast<long>(span.count() % 1'000'000'000)};
  ppoll(items.data(), items.size(), &timeout, nullptr);
}

void Watch::look_for_deaths() {
  if (!job_.separate_processes()) return;
  for (int rank = 0; rank < job_.size(); ++rank) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    if (rank == job_.rank() || !job_.is_here(rank) || peer.reported || peer.left) continue;
    const auto state =
        static_cast<shm::RankState>(job_.block(rank).state.load(std::memory_order_acquire));
    if (state == shm::RankState::kLeft) {
      peer.left = true;  // said goodbye: whatever becomes of the process is none of our business
    } else if (processes_.has_ended(rank)) {
      peer.reported = true;
      host_.peer_lost(rank, "has ended without shutting down (killed, crashed or exited)");
    }
  }
}

void Watch::look_for_frozen(Nanoseconds since_last) {
  if (frozen_after_.count() == 0) return;
  for (int rank = 0; rank < job_.size(); ++rank) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    if (rank == job_.rank() || peer.reported || peer.left) continue;
    const uint32_t beat = job_.block(rank).heartbeat.load(std::memory_order_relaxed);
    // Only operations that wait can be hurt by a peer that sleeps.
    peer.silence =
        beat != peer.heartbeat || !host_.is_waiting() ? Nanoseconds(0) : peer.silence + since_last;
    peer.heartbeat = beat;
    if (peer.silence >= (job_.is_here(rank) ? frozen_after_ : frozen_after_ + kRelayTime)) {
      peer.reported = true;
      host_.peer_frozen(rank, peer.silence);
    }
  }
}

}  // namespace hvd::engine
