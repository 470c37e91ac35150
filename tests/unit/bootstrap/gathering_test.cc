// Rosters and what ranks say about themselves, in a store whose owner changes them.
#include "bootstrap/gathering.h"

#include <gmock/gmock.h>

#include <functional>
#include <thread>

#include "bootstrap/sealed_store.h"
#include "store/memory_store.h"
#include "tests/unit/net/sockets.h"

namespace hvd::bootstrap {
namespace {

using net::test::key_of;
using net::test::patience;
using ::testing::HasSubstr;

Member simple_member(int32_t rank) {
  return {.version = "1.0",
          .rank = rank,
          .size = 2,
          .host = "identity " + std::to_string(rank),
          .hostname = rank == 0 ? "a" : "b",
          .addresses = *net::parse_addresses("10.0.0." + std::to_string(1 + rank) + ":4100")};
}

// A store that gives one of its values in another form than it was set.
class FalseStore final : public store::Store {
 public:
  using Change = std::function<std::string(std::string)>;

  FalseStore(store::Store& true_store, std::string suffix, Change change)
      : true_(true_store), suffix_(std::move(suffix)), change_(std::move(change)) {}

  Status set(std::string_view key, std::string_view value, Deadline deadline) override {
    return true_.set(key, value, deadline);
  }
  Result<std::string> get(std::string_view key, Deadline deadline) override {
    HVD_TRY_ASSIGN(std::string value, true_.get(key, deadline));
    return key.ends_with(suffix_) ? change_(std::move(value)) : value;
  }

 private:
  store::Store& true_;
  const std::string suffix_;
  const Change change_;
};

struct Outcome {
  Result<Roster> zero, one;
};

Outcome gather_both(store::Store& of_zero, store::Store& of_one,
                    const net::Key& key_of_one = key_of(1)) {
  Result<Roster> zero = Roster{}, one = Roster{};
  std::thread first([&] { zero = gather(simple_member(0), of_zero, key_of(1), 0, patience()); });
  one = gather(simple_member(1), of_one, key_of_one, 0, patience());
  first.join();
  return {std::move(zero), std::move(one)};
}

TEST(Gathering, GivesAllRanksTheSameRoster) {
  store::MemoryStore store;

  const Outcome outcome = gather_both(store, store);

  ASSERT_TRUE(outcome.zero) << outcome.zero.status().message();
  ASSERT_TRUE(outcome.one) << outcome.one.status().message();
  EXPECT_EQ(outcome.zero->members, outcome.one->members);
  EXPECT_EQ(outcome.zero->salt, outcome.one->salt);
  EXPECT_EQ(outcome.zero->salt.size(), 32u);
}

TEST(Gathering, RefusesARosterThatWasChanged) {
  for (const size_t at : {size_t{0}, size_t{31}, size_t{32}, size_t{45}, size_t{100}}) {
    store::MemoryStore store;
    FalseStore changed(store, "roster", [at](std::string value) {
      value.at(at) = static_cast<char>(value.at(at) ^ 1);
      return value;
    });

    const Outcome outcome = gather_both(store, changed);

    EXPECT_EQ(outcome.one.status().code(), StatusCode::kCorrupted) << at;
    EXPECT_THAT(outcome.one.status().message(),
                HasSubstr("rendezvous: 'horovod/0/roster' in the rendezvous store"));
    EXPECT_THAT(outcome.one.status().message(), HasSubstr("key of this job"));
  }
}

TEST(Gathering, RefusesARosterThatSomebodyWrote) {
  store::MemoryStore store;
  FalseStore changed(store, "roster", [](const std::string&) {
    return encode_roster({.failure = precondition_error("words of an attacker")});
  });

  const Outcome outcome = gather_both(store, changed);

  EXPECT_EQ(outcome.one.status().code(), StatusCode::kCorrupted);
  EXPECT_THAT(outcome.one.status().message(), ::testing::Not(HasSubstr("attacker")));
}

TEST(Gathering, RefusesTheRosterOfAnEarlierJobWithTheSameKeyAndAddresses) {
  store::MemoryStore earlier, store;
  ASSERT_TRUE(gather_both(earlier, earlier).one);
  const std::string old = *earlier.get("horovod/0/roster", patience());
  FalseStore replaying(store, "roster", [&](const std::string&) { return old; });

  const Outcome outcome = gather_both(store, replaying);

  EXPECT_EQ(outcome.one.status().code(), StatusCode::kCorrupted);
  EXPECT_THAT(outcome.one.status().message(), HasSubstr("is that of an earlier job"));
}

TEST(Gathering, RefusesAMemberThatWasChangedOrTakenForAnother) {
  for (const bool swaps : {false, true}) {
    store::MemoryStore store;
    FalseStore changed(store, "member/1", [&](std::string value) {
      if (swaps) return *store.get("horovod/0/member/0", patience());
      value.back() = static_cast<char>(value.back() ^ 1);
      return value;
    });

    const Outcome outcome = gather_both(changed, store);

    EXPECT_EQ(outcome.zero.status().code(), StatusCode::kCorrupted);
    EXPECT_THAT(outcome.zero.status().message(), HasSubstr("'horovod/0/member/1'"));
    // Rank 0 tells the others why there is no job.
    EXPECT_EQ(outcome.one.status().message(), outcome.zero.status().message());
  }
}

TEST(Gathering, RefusesARankWithAnotherKey) {
  store::MemoryStore store;

  const Outcome outcome = gather_both(store, store, key_of(2));

  EXPECT_EQ(outcome.zero.status().code(), StatusCode::kCorrupted);
  EXPECT_EQ(outcome.one.status().code(), StatusCode::kCorrupted);
}

TEST(SealedStore, RefusesEveryChangedByteAndAnotherName) {
  const std::string bytes = seal_value(key_of(1), "name", {1, 2, 3}, "value");

  EXPECT_EQ(*unseal_value(key_of(1), "name", bytes), "value");
  EXPECT_FALSE(unseal_value(key_of(1), "other", bytes));
  EXPECT_FALSE(unseal_value(key_of(2), "name", bytes));
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x40);
    EXPECT_FALSE(unseal_value(key_of(1), "name", changed)) << i;
    EXPECT_FALSE(unseal_value(key_of(1), "name", std::string_view(bytes).substr(0, i))) << i;
  }
}

TEST(SealedStore, WhoReadsTheStoreBelowLearnsNothingOfAValue) {
  store::MemoryStore below;
  SealedStore store(below, key_of(1));
  ASSERT_TRUE(store.set("name", "a secret of some length", patience()));
  ASSERT_TRUE(store.set("other", "a secret of some length", patience()));

  const std::string one = *below.get("name", patience()), two = *below.get("other", patience());

  EXPECT_EQ(*store.get("name", patience()), "a secret of some length");
  EXPECT_THAT(one, ::testing::Not(HasSubstr("secret")));
  EXPECT_NE(one.substr(32), two.substr(32)) << "equal values cannot be told";
}

TEST(Gathering, LeavesNoNameAddressOrSaltToReadInTheStore) {
  store::MemoryStore store;
  const Outcome outcome = gather_both(store, store);
  ASSERT_TRUE(outcome.one) << outcome.one.status().message();

  for (const char* name : {"member/0", "member/1", "roster"}) {
    const std::string bytes = *store.get(std::string("horovod/0/") + name, patience());
    for (const std::string& secret :
         {std::string("identity"), std::string("10.0.0."), outcome.one->salt}) {
      EXPECT_EQ(bytes.find(secret), std::string::npos) << name;
    }
  }
}

}  // namespace
}  // namespace hvd::bootstrap
