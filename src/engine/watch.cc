#include "engine/watch.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/text.h"

namespace hvd::engine {
namespace {

constexpr Nanoseconds kHeartbeatPeriod = std::chrono::seconds(1);
// Where the kernel has no process descriptors the process table is read this often.
constexpr Nanoseconds kPollPeriod = std::chrono::milliseconds(20);

// A zombie still answers kill(pid, 0): its state in /proc tells.
bool has_ended(int pid) {
  const std::string path = concat("/proc/", pid, "/stat");
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return true;
  char text[512];
  const ssize_t got = read(fd.get(), text, sizeof text - 1);
  if (got <= 0) return true;
  text[got] = '\0';
  const char* after_name = std::strrchr(text, ')');
  return after_name == nullptr || after_name[1] == '\0' || after_name[2] == 'Z' ||
         after_name[2] == 'X';
}

}  // namespace

Watch::Watch(WatchHost& host, const shm::Job& job, Nanoseconds frozen_after)
    : host_(host),
      job_(job),
      frozen_after_(frozen_after),
      period_(kHeartbeatPeriod),
      peers_(static_cast<size_t>(job.size())) {
  if (frozen_after_.count() > 0) period_ = std::min(period_, frozen_after_ / 4);
}

Result<std::unique_ptr<Watch>> Watch::start(WatchHost& host, const shm::Job& job,
                                            Nanoseconds frozen_after) {
  auto watch = std::unique_ptr<Watch>(new Watch(host, job, frozen_after));
  watch->stop_event_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!watch->stop_event_.valid()) return errno_status("init: eventfd", errno);
  HVD_TRY(watch->open_peers());
  watch->thread_ = std::jthread([w = watch.get()](const std::stop_token& stop) { w->main(stop); });
  return watch;
}

Watch::~Watch() {
  thread_.request_stop();
  const uint64_t one = 1;
  (void)!write(stop_event_.get(), &one, sizeof one);
}

Status Watch::open_peers() {
  if (!job_.separate_processes()) return Status::ok();
  for (int rank = 0; rank < job_.size(); ++rank) {
    if (rank == job_.rank()) continue;
    Peer& peer = peers_[static_cast<size_t>(rank)];
    const int pid = job_.block(rank).pid.load();
    peer.process.reset(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (peer.process.valid()) continue;
    if (errno == ESRCH) {
      return Status(StatusCode::kPeerLost, concat("init: rank ", job_.block(rank).global_rank,
                                                  " (pid ", pid, ") has ended"));
    }
    period_ = kPollPeriod;
  }
  return Status::ok();
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
  for (const Peer& peer : peers_) {
    if (peer.process.valid() && !peer.reported && !peer.left)
      items.push_back({peer.process.get(), POLLIN, 0});
  }
  const timespec timeout{static_cast<time_t>(span.count() / 1'000'000'000),
                         static_cast<long>(span.count() % 1'000'000'000)};
  ppoll(items.data(), items.size(), &timeout, nullptr);
}

bool Watch::is_gone(int rank) const {
  const Peer& peer = peers_[static_cast<size_t>(rank)];
  if (!peer.process.valid()) return has_ended(job_.block(rank).pid.load());
  pollfd item{peer.process.get(), POLLIN, 0};
  return ::poll(&item, 1, 0) == 1;
}

void Watch::look_for_deaths() {
  if (!job_.separate_processes()) return;
  for (int rank = 0; rank < job_.size(); ++rank) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    if (rank == job_.rank() || peer.reported || peer.left) continue;
    const auto state =
        static_cast<shm::RankState>(job_.block(rank).state.load(std::memory_order_acquire));
    if (state == shm::RankState::kLeft) {
      peer.left = true;  // said goodbye: whatever becomes of the process is none of our business
    } else if (is_gone(rank)) {
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
    if (peer.silence >= frozen_after_) {
      peer.reported = true;
      host_.peer_frozen(rank, peer.silence);
    }
  }
}

}  // namespace hvd::engine
