#include "elastic/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/parse.h"
#include "base/text.h"
#include "elastic/leave_signal.h"

namespace hvd::elastic {
namespace {

Status launcher_gone() {
  return Status(StatusCode::kShutDown, "elastic: the launcher of this job has gone");
}

pid_t maker_of(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return 0;
  return credentials.pid;
}

// Another thread that looks may take what came for the one that waits.
constexpr int kLookAgainMilliseconds = 200;

// Until the launcher speaks, or goes, or this process is asked to leave; or for a moment. A `leave`
// of -1 is left out.
void wait_for_either(int socket, int leave) {
  std::array<pollfd, 2> items{{{socket, POLLIN, 0}, {leave, POLLIN, 0}}};
  (void)::poll(items.data(), items.size(), kLookAgainMilliseconds);
}

}  // namespace

Result<UniqueFd> Channel::find(const Environment& environment) {
  const auto text = environment(kChannelVariable);
  if (!text) return UniqueFd();
  const auto number = parse_integer(*text, {.least = 0, .most = INT32_MAX});
  if (!number) return blame(kChannelVariable, number.status());
  const int fd = static_cast<int>(*number);
  int type = 0;
  socklen_t length = sizeof type;
  if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_SEQPACKET) {
    return precondition_error(
        concat(kChannelVariable, ": descriptor ", fd,
               " is not the launcher's socket; whoever starts the program must not close it"));
  }
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);  // programs that this one starts are no workers
  return UniqueFd(fd);
}

Channel::Channel(UniqueFd socket)
    : socket_(std::move(socket)), owner_(::getpid()), launcher_(maker_of(socket_.get())) {}

bool Channel::is_active() const { return socket_.valid() && ::getpid() == owner_; }

Status Channel::send(const ToLauncher& message) const {
  const std::string bytes = encode(message);
  while (::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET) return launcher_gone();
    return errno_status("elastic: cannot tell the launcher", errno);
  }
  return Status::ok();
}

Status Channel::take_all() {
  MutexLock lock(mutex_);
  std::array<char, kMaxMessageBytes + 1> buffer;
  while (true) {
    const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Status::ok();
    if (count < 0 && errno != ECONNRESET) {
      return errno_status("elastic: cannot hear the launcher", errno);
    }
    if (count <= 0) return launcher_gone();
    HVD_TRY_ASSIGN(const ToWorker message,
                   decode_to_worker({buffer.data(), static_cast<size_t>(count)}));
    inbox_.take(message);
  }
}

// Whoever has been in a world may have what others lack, and leaves from the next one.
Result<Assign> Channel::await_assignment(uint64_t epoch, const std::string& why) {
  HVD_TRY(send(Ready{.epoch = epoch, .why = why, .missed = take_missed()}));
  const bool is_new = epoch == 0;
  while (true) {
    HVD_TRY(take_all());
    {
      MutexLock lock(mutex_);
      HVD_TRY_ASSIGN(const auto place, inbox_.take_place(epoch));
      if (place) return *place;
    }
    if (is_new && (has_leave_signal_come() || is_asked_to_leave())) return leave_early();
    wait_for_either(socket_.get(), is_new ? leave_signal_fd() : -1);
  }
}

Status Channel::leave_early() {
  HVD_TRY(send(Report{.kind = kReportLeaving}));
  return Status(StatusCode::kRemoved,
                "this worker was asked to leave before the job had a place for it");
}

Status Channel::check_unbroken(uint64_t epoch) {
  HVD_TRY(take_all());
  MutexLock lock(mutex_);
  return inbox_.check_unbroken(epoch);
}

Interrupt Channel::interrupt_for(uint64_t epoch) {
  return {.fd = socket_.get(),
          .look = [this, epoch] { return check_unbroken(epoch); },
          .miss = [this](int32_t rank) { note_missed(rank); }};
}

void Channel::note_missed(int32_t rank) {
  MutexLock lock(mutex_);
  if (missed_.size() < kMaxMissed) missed_.push_back(rank);
}

std::vector<int32_t> Channel::take_missed() {
  MutexLock lock(mutex_);
  return std::exchange(missed_, {});
}

News Channel::look() {
  (void)take_all().is_ok();  // what is wrong with the launcher shows at the next init
  MutexLock lock(mutex_);
  return inbox_.news();
}

bool Channel::is_asked_to_leave() {
  MutexLock lock(mutex_);
  return inbox_.is_asked_to_leave();
}

Status Channel::tell(const Report& report) { return send(report); }

}  // namespace hvd::elastic
