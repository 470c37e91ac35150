// Strangers at the socket of a host's ranks: another user, another pid namespace. Need root.
#include "shm/rendezvous.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <thread>

#include "base/text.h"
#include "shm/job_layout.h"
#include "shm/rendezvous_message.h"
#include "shm/segment.h"

namespace hvd::shm {
namespace {

using ::testing::HasSubstr;

constexpr auto kWait = std::chrono::seconds(20);
constexpr uid_t kNobody = 65534;

// No two tests, and no two runs of them, have the same name.
Meeting meeting_of(int rank, int size) {
  static const std::string name = concat("test", getpid());
  return {.job_id = "a test", .epoch = 1, .rank = rank, .size = size, .socket_name = name};
}

// The tests run as root, and so does the job: strangers use its name, not that of their own user.
struct Name {
  sockaddr_un name{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};
Name name_of_meeting(uid_t user) {
  const std::string text = concat("horovod-", user, "-", meeting_of(0, 1).socket_name);
  Name out;
  out.name.sun_family = AF_UNIX;
  std::memcpy(out.name.sun_path + 1, text.data(), text.size());
  out.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return out;
}

// Whom the job does not know: another user; somebody whom its pid namespace does not show, since
// the job is in a namespace of its own, as in a container, and the stranger outside; or somebody in
// a container, whom a job outside of any does see.
enum class Place { kOtherUser, kOtherPidNamespace, kInnerPidNamespace };

std::string name_of(Place place) {
  if (place == Place::kOtherUser) return "OtherUser";
  return place == Place::kOtherPidNamespace ? "OtherPidNamespace" : "InnerPidNamespace";
}

// Goes on as the first process of a namespace of its own, which ends with its parent.
void enter_pid_namespace() {
  if (unshare(CLONE_NEWPID) != 0) _exit(1);
  if (const pid_t inner = fork(); inner != 0) {
    waitpid(inner, nullptr, 0);
    _exit(0);
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
}

// A child that says bytes; killed with the object.
class Stranger {
 public:
  Stranger(Place place, const std::function<void(int words)>& what) {
    int words[2];
    EXPECT_EQ(pipe(words), 0);
    pid_ = fork();
    if (pid_ == 0) {
      if (place == Place::kOtherUser && setuid(kNobody) != 0) _exit(1);
      if (place == Place::kInnerPidNamespace) enter_pid_namespace();
      what(words[1]);
      _exit(0);
    }
    close(words[1]);
    words_.reset(words[0]);
  }
  ~Stranger() {
    words_.reset();
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  // False: nothing came.
  bool says(char expected) const {
    pollfd item{words_.get(), POLLIN, 0};
    char byte = 0;
    return poll(&item, 1, 20000) == 1 && read(words_.get(), &byte, 1) == 1 && byte == expected;
  }

 private:
  pid_t pid_ = -1;
  UniqueFd words_;
};

// What the body returns; it runs in a process that sees itself and its children alone.
class InOwnPidNamespace {
 public:
  explicit InOwnPidNamespace(const std::function<std::string()>& body) {
    int words[2];
    EXPECT_EQ(pipe(words), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(words[0]);
      if (unshare(CLONE_NEWPID) != 0) _exit(1);
      if (const pid_t inner = fork(); inner != 0) {
        close(words[1]);
        waitpid(inner, nullptr, 0);
        _exit(0);
      }
      const std::string result = body();
      (void)!write(words[1], result.data(), result.size());
      _exit(0);
    }
    close(words[1]);
    words_.reset(words[0]);
  }
  ~InOwnPidNamespace() { waitpid(pid_, nullptr, 0); }
  std::string result() const {
    std::string out;
    std::array<char, 1024> some;
    for (ssize_t count; (count = read(words_.get(), some.data(), some.size())) > 0;) {
      out.append(some.data(), static_cast<size_t>(count));
    }
    return out;
  }

 private:
  pid_t pid_ = -1;
  UniqueFd words_;
};

void say(int words, char byte) {
  if (write(words, &byte, 1) != 1) _exit(0);  // nobody listens any more
}

// Takes the name, and says 'c' for each connection.
void squat(int words) {
  const Name name = name_of_meeting(0);
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(listener, name.get(), name.length) != 0 || listen(listener, 100) != 0) _exit(1);
  say(words, 'l');
  for (;;) {
    const int guest = accept(listener, nullptr, nullptr);
    say(words, 'c');
    close(guest);
  }
}

// Comes as rank 1, and says 'n' if the connection ended without an answer.
void intrude(int words) {
  const Name name = name_of_meeting(0);
  int made = -1;
  for (int tries = 0; tries < 20000; ++tries) {
    made = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(made, name.get(), name.length) == 0) break;
    close(made);
    usleep(1000);
  }
  const Hello hello{kJobMagic, kLayoutVersion, 1, 2, 0, 1};
  (void)!send(made, &hello, sizeof hello, MSG_NOSIGNAL);
  Answer answer{};
  say(words, recv(made, &answer, sizeof answer, 0) <= 0 ? 'n' : 'a');
}

// Both ranks of a job, which meet within `time`. "" or what went wrong on either.
std::string meet(Nanoseconds time) {
  const Segment segment = *Segment::create(1 << 16);
  const Deadline deadline = Deadline::after(time);
  Result<ReceivedSegment> received{unknown_error("not run")};
  Status served;
  {
    std::jthread rank1([&] { received = receive_segment(meeting_of(1, 2), deadline); });
    served = serve_segment(meeting_of(0, 2), segment.fd(), segment.bytes(), deadline);
  }
  std::string out;
  if (!served) out += concat("0: ", served.message(), "\n");
  if (!received) out += concat("1: ", received.status().message(), "\n");
  return out;
}

class RendezvousStrangers : public ::testing::TestWithParam<Place> {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
    (void)meeting_of(0, 1);  // the name follows from this process, also in its children
  }
};

// Starts the job where the stranger is one, and hands out its result.
class TheJob {
 public:
  explicit TheJob(Place place, Nanoseconds time = kWait) {
    if (place == Place::kOtherPidNamespace) {
      outside_.emplace([time] { return meet(time); });
    } else {
      thread_ = std::jthread([this, time] { here_ = meet(time); });
    }
  }
  std::string result() {
    if (outside_) return outside_->result();
    thread_.join();
    return here_;
  }

 private:
  std::optional<InOwnPidNamespace> outside_;
  std::string here_;
  std::jthread thread_;
};

// Rank 0 waits for two ranks; the stranger comes as one of them before they do.
TEST_P(RendezvousStrangers, WhoComesAsARankGetsNothing) {
  const Stranger stranger(GetParam(), intrude);
  const auto wait_alone = [] {
    const Segment segment = *Segment::create(1 << 16);
    const Status served = serve_segment(meeting_of(0, 2), segment.fd(), segment.bytes(),
                                        Deadline::after(std::chrono::seconds(3)));
    return served.message();
  };
  std::string said;
  if (GetParam() == Place::kOtherPidNamespace) {
    const InOwnPidNamespace rank0(wait_alone);
    EXPECT_TRUE(stranger.says('n'));
    said = rank0.result();
  } else {
    std::jthread rank0([&] { said = wait_alone(); });
    EXPECT_TRUE(stranger.says('n'));
  }

  EXPECT_THAT(said, HasSubstr("timed out waiting for rank 1 of 2"));
}

TEST_P(RendezvousStrangers, WhoTakesTheNameDelaysTheJobButIsNotBelieved) {
  std::optional<TheJob> job;
  {
    const Stranger squatter(GetParam(), squat);
    ASSERT_TRUE(squatter.says('l'));
    job.emplace(GetParam());
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(squatter.says('c')) << "both go on trying";
  }  // the squatter ends here, and the job goes on

  EXPECT_EQ(job->result(), "");
}

TEST_P(RendezvousStrangers, AreNamedWhenTheTimeIsOver) {
  const Stranger squatter(GetParam(), squat);
  ASSERT_TRUE(squatter.says('l'));

  const std::string said = TheJob(GetParam(), std::chrono::milliseconds(100)).result();

  const std::string who = GetParam() == Place::kOtherUser           ? "a process of user 65534"
                          : GetParam() == Place::kOtherPidNamespace ? "a process outside this pid "
                                                                      "namespace"
                                                                    : "process [0-9]+, which is "
                                                                      "of another pid namespace";
  EXPECT_THAT(said, ::testing::ContainsRegex(concat("0: rendezvous: ", who)));
  EXPECT_THAT(said, ::testing::ContainsRegex(
                        concat("1: rendezvous: timed out waiting for rank 0 of 2.*", who)));
}

INSTANTIATE_TEST_SUITE_P(Places, RendezvousStrangers,
                         ::testing::Values(Place::kOtherUser, Place::kOtherPidNamespace,
                                           Place::kInnerPidNamespace),
                         [](const auto& info) { return name_of(info.param); });

// As containers without privileges have them: the ranks may not look into each other in /proc.
TEST(Rendezvous, RanksWithUserNamespacesOfTheirOwnMeet) {
  constexpr int kNotPermitted = 77;
  const Segment segment = *Segment::create(1 << 16);
  (void)meeting_of(0, 2);  // the name follows from this process, also in its children
  std::array<pid_t, 2> ranks{};
  for (const int rank : {0, 1}) {
    ranks[static_cast<size_t>(rank)] = fork();
    if (ranks[static_cast<size_t>(rank)] != 0) continue;
    const uid_t user = getuid();
    if (unshare(CLONE_NEWUSER) != 0) _exit(kNotPermitted);
    if (!(std::ofstream("/proc/self/uid_map") << user << " " << user << " 1" << std::flush)) {
      _exit(kNotPermitted);
    }
    const Deadline deadline = Deadline::after(kWait);
    Status met;
    if (rank == 0) {
      met = serve_segment(meeting_of(0, 2), segment.fd(), segment.bytes(), deadline);
    } else if (const auto received = receive_segment(meeting_of(1, 2), deadline); !received) {
      met = received.status();
    }
    if (!met) std::cerr << rank << ": " << met.message() << "\n";
    _exit(met ? 0 : 1);
  }
  for (const pid_t rank : ranks) {
    int status = 0;
    ASSERT_EQ(waitpid(rank, &status, 0), rank);
    if (WEXITSTATUS(status) == kNotPermitted) GTEST_SKIP() << "user namespaces are not permitted";
    EXPECT_EQ(status, 0);
  }
}

TEST(Rendezvous, ASecondRank0OfTheSameUserIsAMistakeAndFailsAtOnce) {
  const Name name = name_of_meeting(getuid());
  const UniqueFd first(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(first.get(), name.get(), name.length), 0);
  ASSERT_EQ(listen(first.get(), 4), 0);

  const Segment segment = *Segment::create(1 << 16);
  const Status served =
      serve_segment(meeting_of(0, 2), segment.fd(), segment.bytes(), Deadline::after(kWait));

  EXPECT_THAT(served.message(), HasSubstr("already has a rank 0"));
}

TEST(Segment, CannotBeMadeShorterByAnyRank) {
  const Segment segment = *Segment::create(1 << 20);

  EXPECT_EQ(ftruncate(segment.fd(), 4096), -1);
  EXPECT_EQ(ftruncate(segment.fd(), 2 << 20), -1);
  EXPECT_TRUE(segment.commit(0, 1 << 20));
  EXPECT_TRUE(segment.discard(0, 1 << 20));
}

TEST(Segment, IsNotTakenWithAnotherSizeThanItsFile) {
  for (const size_t claimed : {4096, 1 << 21}) {
    const Segment segment = *Segment::create(1 << 20);
    UniqueFd copy(fcntl(segment.fd(), F_DUPFD_CLOEXEC, 3));

    EXPECT_EQ(Segment::adopt(std::move(copy), claimed).status().code(), StatusCode::kCorrupted);
  }
}

}  // namespace
}  // namespace hvd::shm
