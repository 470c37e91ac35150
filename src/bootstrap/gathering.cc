#include "bootstrap/gathering.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/parse.h"
#include "base/text.h"
#include "bootstrap/sealed_store.h"

namespace hvd::bootstrap {
namespace {

constexpr size_t kSaltBytes = 32, kFreshBytes = 16;
// How often rank 0, while it waits for a rank, looks whether somebody complained.
constexpr auto kLookForComplaints = std::chrono::milliseconds(500);
// The store is asked at least this long, also when the time is over: it may well know the answer.
constexpr auto kShortestLook = std::chrono::milliseconds(20);
constexpr size_t kMostMissing = 16;  // enough to see what is wrong
// What others leave rank 0 to say who is missing, and rank 0 itself to say so.
constexpr auto kExtraTime = std::chrono::seconds(2);

Deadline later(Deadline deadline) {
  return deadline.is_never() ? deadline : Deadline::at(deadline.when() + kExtraTime);
}

Result<std::string> random_bytes(size_t count) {
  std::string out(count, '\0');
  HVD_TRY(net::fill_random({reinterpret_cast<uint8_t*>(out.data()), count}));
  return out;
}

class Names {
 public:
  explicit Names(uint64_t epoch) : prefix_(concat("horovod/", epoch, "/")) {}
  std::string member(int32_t rank) const { return concat(prefix_, "member/", rank); }
  std::string roster() const { return prefix_ + "roster"; }
  std::string complaint() const { return prefix_ + "complaint"; }

 private:
  std::string prefix_;
};

// Tells the store who we are. Somebody else may have said so before us.
Status introduce(const Member& self, store::Store& store, const Names& names, Deadline deadline) {
  const Status set = store.set(names.member(self.rank), encode_member(self), deadline);
  if (set.code() != StatusCode::kPreconditionError) return set;
  const auto bytes = store.get(names.member(self.rank), deadline);
  if (!bytes) return set;  // the store does not let us in
  HVD_TRY_ASSIGN(const Member other, decode_member(*bytes));
  const Status twice = precondition_error(
      concat("two processes claim rank ", self.rank, ": one on host ", other.hostname, " (",
             net::to_text(other.addresses), ") and one on host ", self.hostname, " (",
             net::to_text(self.addresses), ")"));
  // For rank 0, which may wait for the rank that this process should have been. The first complaint
  // is enough.
  (void)store.set(names.complaint(), twice.message(), deadline).is_ok();
  return twice;
}

// nullopt: nobody came until the deadline.
Result<std::optional<Member>> await_member(int32_t rank, store::Store& store, const Names& names,
                                           Deadline deadline) {
  for (;;) {
    const Deadline soon = Deadline::after(
        std::max<Nanoseconds>(deadline.remaining(kLookForComplaints), kShortestLook));
    auto bytes = store.get(names.member(rank), soon);
    if (bytes) {
      HVD_TRY_ASSIGN(Member member, decode_member(*bytes));
      if (member.rank != rank) {
        return corrupted(concat("rank ", member.rank, " introduced itself as rank ", rank));
      }
      return std::optional(std::move(member));
    }
    if (bytes.status().code() != StatusCode::kTimedOut) return bytes.status();
    if (auto complaint = store.get(names.complaint(), Deadline::after(kShortestLook))) {
      return precondition_error(*complaint);
    }
    if (deadline.passed()) return std::optional<Member>();
  }
}

bool is_out_of_reach(const Status& status) {
  return status.code() == StatusCode::kTimedOut || status.code() == StatusCode::kPeerLost;
}

// Nobody is to blame for a wait that was ended from outside.
void miss(const Interrupt* interrupt, std::span<const int32_t> ranks) {
  if (interrupt == nullptr || !interrupt->miss || !interrupt->look().is_ok()) return;
  for (int32_t rank : ranks) interrupt->miss(rank);
}

Result<Roster> collect(const Member& self, store::Store& store, const Names& names,
                       Deadline deadline, const Interrupt* interrupt) {
  Roster roster;
  std::vector<int32_t> missing;
  for (int32_t rank = 0; rank < self.size && missing.size() < kMostMissing; ++rank) {
    HVD_TRY_ASSIGN(auto member, await_member(rank, store, names, deadline));
    if (!member) {
      missing.push_back(rank);
      continue;
    }
    HVD_TRY(check_member(self, *member));
    roster.members.push_back(std::move(*member));
  }
  if (!missing.empty()) {
    miss(interrupt, missing);
    return Status(
        StatusCode::kTimedOut,
        concat("timed out waiting for ", missing.size() == 1 ? "rank " : "ranks ",
               join_text(missing), missing.size() < kMostMissing ? "" : " ...", " of ", self.size));
  }
  if (const auto map = make_host_map(roster.members); !map) return map.status();
  HVD_TRY_ASSIGN(roster.salt, random_bytes(kSaltBytes));
  return roster;
}

Result<Roster> gather_as_rank0(const Member& self, store::Store& store, const Names& names,
                               Deadline deadline, const Interrupt* interrupt) {
  auto roster = collect(self, store, names, deadline, interrupt);
  const Roster published = roster ? *roster : Roster{.failure = roster.status()};
  const Status set = store.set(names.roster(), encode_roster(published), later(deadline));
  if (!roster) return blame("rendezvous", roster.status());
  HVD_TRY(set);
  return roster;
}

}  // namespace

Result<Roster> gather(Member self, store::Store& open_store, const net::Key& key, uint64_t epoch,
                      Deadline deadline, const Interrupt* interrupt) {
  SealedStore store(open_store, key);
  const Names names(epoch);
  HVD_TRY_ASSIGN(self.fresh, random_bytes(kFreshBytes));
  if (const Status status = introduce(self, store, names, deadline); !status) {
    if (is_out_of_reach(status)) miss(interrupt, {&kStorePeer, 1});
    return blame("rendezvous", status);
  }
  if (self.rank == 0) return gather_as_rank0(self, store, names, deadline, interrupt);
  const auto bytes = store.get(names.roster(), later(deadline));
  if (!bytes) {
    constexpr int32_t kWriter = 0;
    if (is_out_of_reach(bytes.status())) miss(interrupt, {&kWriter, 1});
    return blame("rendezvous", bytes.status());
  }
  HVD_TRY_ASSIGN(Roster roster, decode_roster(*bytes));
  if (!roster.failure) return blame("rendezvous", roster.failure);
  if (roster.members.empty() || self.rank >= static_cast<int32_t>(roster.members.size()) ||
      roster.members.size() != static_cast<size_t>(roster.members.front().size)) {
    return corrupted(concat("rendezvous: a roster of ", roster.members.size(), " ranks"));
  }
  if (const Status fits = check_member(roster.members.front(), self); !fits) {
    return blame("rendezvous", fits);
  }
  const Member& listed = roster.members[static_cast<size_t>(self.rank)];
  if (listed == self) return roster;
  if (listed.addresses == self.addresses) {
    return corrupted("rendezvous: the roster is that of an earlier job");
  }
  return precondition_error(concat("rendezvous: two processes claim rank ", self.rank,
                                   ": one on host ", listed.hostname, " and one on host ",
                                   self.hostname));
}

}  // namespace hvd::bootstrap
