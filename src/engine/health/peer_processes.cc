#include "engine/health/peer_processes.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include "base/text.h"

namespace hvd::engine {
namespace {

struct ProcessInfo {
  bool is_alive = false;
  uint64_t started = 0;
};

// A zombie still answers kill(pid, 0): its state in /proc tells.
ProcessInfo look_up(int pid) {
  const std::string path = concat("/proc/", pid, "/stat");
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return {};
  char text[1024];
  const ssize_t got = read(fd.get(), text, sizeof text - 1);
  if (got <= 0) return {};
  // "pid (name) state ..."; the name may hold anything, so count from its end.
  const std::string_view all(text, static_cast<size_t>(got));
  size_t at = all.rfind(')');
  if (at == std::string_view::npos || at + 2 >= all.size()) return {};
  at += 2;
  const char state = all[at];
  ProcessInfo info{state != 'Z' && state != 'X', 0};
  constexpr int kFieldsToStart = 19;  // from the state (3) to the start time (22)
  for (int field = 0; field < kFieldsToStart && at != std::string_view::npos; ++field) {
    at = all.find(' ', at);
    if (at != std::string_view::npos) ++at;
  }
  if (at != std::string_view::npos)
    std::from_chars(all.data() + at, all.data() + all.size(), info.started);
  return info;
}

}  // namespace

Status PeerProcesses::open() {
  peers_.resize(static_cast<size_t>(job_.size()));
  if (!job_.separate_processes()) return Status::ok();
  for (int rank = 0; rank < job_.size(); ++rank) {
    if (rank == job_.rank() || !job_.is_here(rank)) continue;
    Peer& peer = peers_[static_cast<size_t>(rank)];
    peer.pid = job_.block(rank).pid.load();
    peer.descriptor.reset(static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0)));
    if (peer.descriptor.valid()) continue;
    const bool has_no_process = errno == ESRCH;
    const ProcessInfo info = look_up(peer.pid);
    if (has_no_process || !info.is_alive) {
      return Status(StatusCode::kPeerLost, concat("init: rank ", job_.block(rank).global_rank,
                                                  " (pid ", peer.pid, ") has ended"));
    }
    peer.started = info.started;
    all_have_descriptors_ = false;
  }
  return Status::ok();
}

bool PeerProcesses::has_ended(int rank) const {
  const Peer& peer = peers_[static_cast<size_t>(rank)];
  if (peer.descriptor.valid()) {
    pollfd item{peer.descriptor.get(), POLLIN, 0};
    return ::poll(&item, 1, 0) == 1;
  }
  const ProcessInfo info = look_up(peer.pid);
  return !info.is_alive || info.started != peer.started;
}

void PeerProcesses::send_signal(int rank, int number) const {
  if (rank == job_.rank() || !job_.separate_processes()) {
    kill(getpid(), number);
    return;
  }
  const Peer& peer = peers_[static_cast<size_t>(rank)];
  if (peer.descriptor.valid()) {
    syscall(SYS_pidfd_send_signal, peer.descriptor.get(), number, nullptr, 0);
  } else if (!has_ended(rank)) {
    kill(peer.pid, number);
  }
}

}  // namespace hvd::engine
