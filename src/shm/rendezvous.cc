#include "shm/rendezvous.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "base/text.h"
#include "shm/job_layout.h"
#include "shm/rendezvous_message.h"

namespace hvd::shm {
namespace {

constexpr size_t kMostSocketName = 64;
constexpr long kPauseForStrangers = 5'000'000;

struct Address {
  sockaddr_un name{};
  socklen_t length = 0;
};

// Long job ids are folded to a hash: an abstract name has 107 bytes.
Address address_of(const Meeting& meeting) {
  uint64_t hash = 1469598103934665603ull;
  for (const char c : meeting.job_id)
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  const std::string text =
      meeting.socket_name.empty()
          ? concat("horovod-", getuid(), "-", meeting.job_id.substr(0, 48), "-", hash, "-",
                   meeting.epoch)
          : concat("horovod-", getuid(), "-", meeting.socket_name.substr(0, kMostSocketName));
  Address address;
  address.name.sun_family = AF_UNIX;
  std::memcpy(address.name.sun_path + 1, text.data(), text.size());  // leading zero: abstract
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return address;
}

std::string job_text(const Meeting& meeting) {
  return concat("job '", meeting.job_id, "' epoch ", meeting.epoch);
}

std::string link_of(const std::string& path) {
  char target[64];
  const ssize_t length = readlink(path.c_str(), target, sizeof target);
  return length <= 0 ? "" : std::string(target, static_cast<size_t>(length));
}

// In how many pid namespaces a process has a number, this one's the first; everybody may ask. 0:
// there is no such process, or an old kernel does not say.
size_t pid_levels_of(pid_t process) {
  std::ifstream status(concat("/proc/", process, "/status"));
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    if (std::string word; !(words >> word) || word != "NSpid:") continue;
    return static_cast<size_t>(std::distance(std::istream_iterator<std::string>(words),
                                             std::istream_iterator<std::string>()));
  }
  return 0;
}

// Containers that run on the host of a job without one are visible to it: they have a number in
// an inner namespace, too. The link of a peer's namespace would need rights that ranks in user
// namespaces of their own do not have over each other. Where /proc shows another namespace, this
// one cannot look.
Status check_pid_namespace(pid_t peer) {
  if (link_of("/proc/self") != std::to_string(getpid())) return Status::ok();
  const size_t own = pid_levels_of(getpid());
  if (own == 0 || pid_levels_of(peer) == own) return Status::ok();
  return precondition_error(
      concat("rendezvous: process ", peer,
             ", which is of another pid namespace (a container?) or "
             "gone, has the name of the job; the ranks of a host need one pid namespace"));
}

// Containers that share a network see each other's sockets, and their users have the same numbers;
// but a process outside our pid namespace has no number here.
Status check_peer(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return errno_status("rendezvous: cannot tell who the peer is", errno);
  }
  if (credentials.uid != getuid()) {
    return precondition_error(concat("rendezvous: a process of user ", credentials.uid,
                                     " has the name of the job, expected user ", getuid()));
  }
  if (credentials.pid == 0) {
    return precondition_error(
        "rendezvous: a process outside this pid namespace (another container?) has the name of the "
        "job; the ranks of a host need one pid namespace");
  }
  return check_pid_namespace(credentials.pid);
}

Status look_at(const Interrupt* interrupt) {
  return interrupt == nullptr ? Status::ok() : interrupt->look();
}

// TIMED_OUT with `what`, or what the interrupt says.
Status wait_readable(int fd, Deadline deadline, const Interrupt* interrupt, const char* what) {
  // What the launcher says may have been read already, with what it said before or by another
  // thread: then its descriptor stays silent.
  const Nanoseconds slice =
      interrupt == nullptr ? Nanoseconds(std::chrono::hours(1)) : std::chrono::milliseconds(100);
  for (;;) {
    HVD_TRY(look_at(interrupt));
    pollfd items[] = {{fd, POLLIN, 0}, {interrupt == nullptr ? -1 : interrupt->fd, POLLIN, 0}};
    const auto left = deadline.remaining(slice);
    const timespec span{static_cast<time_t>(left.count() / 1'000'000'000),
                        static_cast<long>(left.count() % 1'000'000'000)};
    const int rc = ppoll(items, 2, &span, nullptr);
    if (rc > 0 && items[0].revents != 0) return Status::ok();
    if (rc == 0 && deadline.passed()) return Status(StatusCode::kTimedOut, what);
  }
}

template <typename T>
Status read_exactly(int fd, T& value, Deadline deadline, const char* what) {
  auto* at = reinterpret_cast<char*>(&value);
  size_t left = sizeof value;
  while (left > 0) {
    if (!wait_readable(fd, deadline, nullptr, what)) {
      return Status(StatusCode::kTimedOut, concat("rendezvous: no ", what, " in time"));
    }
    const ssize_t got = recv(fd, at, left, 0);
    if (got == 0) return unknown_error(concat("rendezvous: connection closed instead of ", what));
    if (got < 0 && errno != EINTR && errno != EAGAIN) {
      return errno_status(concat("rendezvous: receiving ", what), errno);
    }
    if (got > 0) at += got, left -= static_cast<size_t>(got);
  }
  return Status::ok();
}

void send_answer(int socket, const Status& status, int fd, uint64_t bytes) {
  Answer answer = answer_of(status, bytes);
  iovec part{&answer, sizeof answer};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (status.is_ok()) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  (void)!sendmsg(socket, &message, MSG_NOSIGNAL);  // a peer that is gone will be missed by others
}

std::string missing_text(const std::vector<bool>& here) {
  std::vector<size_t> missing;
  for (size_t rank = 0; rank < here.size(); ++rank) {
    if (!here[rank]) missing.push_back(rank);
  }
  return concat(missing.size() == 1 ? "rank " : "ranks ", join_text(missing, ", ", 16));
}

void pause_for(long nanoseconds) {
  const timespec pause{0, nanoseconds};
  ppoll(nullptr, 0, &pause, nullptr);
}

Result<UniqueFd> make_socket() {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return errno_status("rendezvous: socket", errno);
  return socket;
}

int connect_to(const UniqueFd& socket, const Address& address) {
  const auto* name = reinterpret_cast<const sockaddr*>(&address.name);
  return connect(socket.get(), name, address.length) == 0 ? 0 : errno;
}

// Who has the name that this rank 0 wants. OK: another process that may be of this job.
Status ask_holder(const Address& address) {
  HVD_TRY_ASSIGN(const UniqueFd socket, make_socket());
  if (connect_to(socket, address) == 0) return check_peer(socket.get());
  return precondition_error("rendezvous: somebody who does not listen has the name of the job");
}

// A stranger may have taken the name to keep this job from starting: it is waited for.
Result<UniqueFd> listen_for(const Meeting& meeting, Deadline deadline) {
  HVD_TRY_ASSIGN(UniqueFd socket, make_socket());
  const Address address = address_of(meeting);
  const auto* name = reinterpret_cast<const sockaddr*>(&address.name);
  while (bind(socket.get(), name, address.length) != 0) {
    if (errno != EADDRINUSE) return errno_status("rendezvous: bind", errno);
    const Status holder = ask_holder(address);
    if (holder.is_ok()) {
      return precondition_error(
          concat("rendezvous: ", job_text(meeting),
                 " already has a rank 0 on this host; give the job an id of its own "
                 "(HOROVOD_JOB_ID)"));
    }
    if (deadline.passed()) {
      return precondition_error(concat(holder.message(), " (", job_text(meeting),
                                       "); with HOROVOD_KEY_FILE nobody else can know that name"));
    }
    pause_for(kPauseForStrangers);
  }
  if (listen(socket.get(), meeting.size) != 0) return errno_status("rendezvous: listen", errno);
  return socket;
}

}  // namespace

Status serve_segment(const Meeting& meeting, int fd, uint64_t bytes, Deadline deadline) {
  HVD_TRY_ASSIGN(UniqueFd listener, listen_for(meeting, deadline));
  std::vector<bool> here(static_cast<size_t>(meeting.size), false);
  here[0] = true;
  std::vector<UniqueFd> guests;
  Status status;
  while (status.is_ok() && static_cast<int>(guests.size()) < meeting.size - 1) {
    status = wait_readable(listener.get(), deadline, meeting.interrupt, "");
    if (status.code() == StatusCode::kTimedOut) {
      status = Status(StatusCode::kTimedOut,
                      concat("rendezvous: timed out waiting for ", missing_text(here), " of ",
                             meeting.size, " (", job_text(meeting), ")"));
    }
    if (!status.is_ok()) break;
    UniqueFd guest(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!guest.valid()) continue;
    if (!check_peer(guest.get())) continue;  // a stranger is not part of the job
    Hello hello{};
    if (!read_exactly(guest.get(), hello, deadline, "greeting")) continue;
    if (const auto reason = refuse_hello(hello, meeting, here)) {
      status = precondition_error("rendezvous: " + *reason);
      send_answer(guest.get(), status, -1, 0);
      break;
    }
    here[static_cast<size_t>(hello.rank)] = true;
    guests.push_back(std::move(guest));
  }
  for (const UniqueFd& guest : guests) send_answer(guest.get(), status, fd, bytes);
  return status;
}

namespace {

// Rank 0 may not listen yet, or a stranger may have its name: tries until the deadline.
Result<UniqueFd> connect_to_rank0(const Meeting& meeting, Deadline deadline) {
  const Address address = address_of(meeting);
  Status stranger;
  for (long pause_ns = 100'000;; pause_ns = std::min(2 * pause_ns, 5'000'000l)) {
    HVD_TRY_ASSIGN(UniqueFd socket, make_socket());
    const int error = connect_to(socket, address);
    if (error == 0) {
      stranger = check_peer(socket.get());
      if (stranger.is_ok()) return socket;
    } else if (error != ECONNREFUSED && error != EAGAIN && error != EINTR) {
      return errno_status("rendezvous: connect", error);
    }
    HVD_TRY(look_at(meeting.interrupt));
    if (deadline.passed()) {
      return Status(
          StatusCode::kTimedOut,
          concat("rendezvous: timed out waiting for rank 0 of ", meeting.size, " (",
                 job_text(meeting), ")", stranger.is_ok() ? "" : concat("; ", stranger.message())));
    }
    pause_for(pause_ns);
  }
}

}  // namespace

Result<ReceivedSegment> receive_segment(const Meeting& meeting, Deadline deadline) {
  HVD_TRY_ASSIGN(UniqueFd socket, connect_to_rank0(meeting, deadline));
  const Hello hello{kJobMagic, kLayoutVersion, meeting.rank, meeting.size, 0, meeting.epoch};
  if (send(socket.get(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) {
    return errno_status("rendezvous: greeting rank 0", errno);
  }
  // Rank 0 answers when all have come or its deadline has passed; leave it the time to say who is
  // missing.
  const Deadline answer_deadline =
      Deadline::after(deadline.remaining(std::chrono::hours(24)) + std::chrono::seconds(2));
  HVD_TRY(wait_readable(socket.get(), answer_deadline, meeting.interrupt,
                        "rendezvous: rank 0 did not answer in time"));
  Answer answer{};
  iovec part{&answer, sizeof answer};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
  if (got != sizeof answer || answer.magic != kJobMagic) {
    return unknown_error("rendezvous: rank 0 ended before it answered");
  }
  ReceivedSegment received;
  if (cmsghdr* header = CMSG_FIRSTHDR(&message);
      header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    received.fd.reset(fd);
  }
  HVD_TRY(status_of(answer));
  if (!received.fd.valid()) return unknown_error("rendezvous: rank 0 sent no descriptor");
  received.bytes = answer.bytes;
  return received;
}

}  // namespace hvd::shm
