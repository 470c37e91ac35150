#include "mpi/tcp_beside.h"

#include <poll.h>

#include <algorithm>

#include "base/text.h"
#include "bootstrap/sealed_store.h"

namespace hvd::mpi {
namespace {

// A round trip is enough; where a firewall swallows what it does not let through, init takes so
// much longer.
constexpr Nanoseconds kReachTime = std::chrono::seconds(5);
constexpr Nanoseconds kPatientReachTime = std::chrono::seconds(20);
constexpr int kMillisecondsBetweenLooks = 1;
// Neither control nor that of a process set.
constexpr uint64_t kReachPurpose = uint64_t{1} << 16;
static_assert(net::is_plain_lane(kReachPurpose), "nothing is sent, so nothing is encrypted");

// MPI is looked at meanwhile: others may still wait for what this rank has sent.
Status try_to_reach(Group& group, net::Mesh& mesh, const TcpQuestion& question, Deadline deadline) {
  std::vector<int32_t> left = partners_of(question.hosts, group.rank());
  for (;;) {
    group.poll();
    mesh.poll();
    for (size_t i = 0; i < left.size();) {
      HVD_TRY_ASSIGN(const auto stream, mesh.connect(left[i], kReachPurpose));
      if (stream == nullptr) {
        ++i;
      } else {
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    if (left.empty()) return Status::ok();
    if (deadline.passed()) {
      const bootstrap::Member& one = question.members[static_cast<size_t>(left.front())];
      return Status(StatusCode::kTimedOut, concat(bootstrap::member_text(one), " at ",
                                                  net::to_text(one.addresses), " does not answer"));
    }
    pollfd item{mesh.descriptor(), POLLIN, 0};
    ::poll(&item, 1, kMillisecondsBetweenLooks);
  }
}

}  // namespace

std::vector<int32_t> partners_of(const topology::HostMap& hosts, int32_t rank) {
  const auto own = static_cast<size_t>(hosts.host_of[static_cast<size_t>(rank)]);
  const std::vector<int32_t>& mine = hosts.ranks_of[own];
  const auto place = static_cast<size_t>(std::find(mine.begin(), mine.end(), rank) - mine.begin());
  std::vector<int32_t> out;
  for (size_t host = 0; host < hosts.ranks_of.size(); ++host) {
    if (host == own) continue;
    const std::vector<int32_t>& theirs = hosts.ranks_of[host];
    const size_t fewer = std::min(mine.size(), theirs.size());
    for (size_t other = 0; other < theirs.size(); ++other) {
      if (other % fewer == place % fewer) out.push_back(theirs[other]);
    }
  }
  return out;
}

Result<std::string> ask_for_tcp(Group& group, store::Store& store, const TcpQuestion& question,
                                const Result<net::Mesh*>& mesh, Deadline deadline) {
  Status own = mesh.status();
  if (mesh) {
    const Nanoseconds most =
        question.is_needed ? deadline.remaining(2 * kPatientReachTime) / 2 : kReachTime;
    own = try_to_reach(group, **mesh, question, Deadline::after(deadline.remaining(most)));
  }
  bootstrap::SealedStore answers(store, question.key);
  const std::string prefix = concat("horovod/", question.epoch, "/tcp/");
  const auto name_of = [&](int32_t rank) { return concat(prefix, rank); };
  HVD_TRY(answers.set(name_of(group.rank()),
                      own ? "" : concat("rank ", group.rank(), ": ", own.message()), deadline));
  if (group.rank() == 0) {
    std::string problem;
    for (int32_t rank = 0; rank < group.size(); ++rank) {
      HVD_TRY_ASSIGN(const std::string said, answers.get(name_of(rank), deadline));
      if (problem.empty()) problem = said;
    }
    HVD_TRY(answers.set(prefix + "all", problem, deadline));
  }
  return answers.get(prefix + "all", deadline);
}

}  // namespace hvd::mpi
