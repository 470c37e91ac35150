#include "bootstrap/key_agreement.h"

#include <gmock/gmock.h>

#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "base/text.h"
#include "store/memory_store.h"
#include "tests/unit/net/sockets.h"

namespace hvd::bootstrap {
namespace {

using net::test::key_of;
using net::test::patience;
using ::testing::HasSubstr;
using ::testing::Not;

// A store like torchrun's: anybody reads and overwrites, and nobody is told.
class OpenStore final : public store::Store {
 public:
  Status set(std::string_view key, std::string_view value, Deadline) override {
    const std::lock_guard lock(mutex_);
    written_ += value;
    values_[std::string(key)] = tamper_ ? tamper_(key, value) : std::string(value);
    return Status::ok();
  }
  Result<std::string> get(std::string_view key, Deadline deadline) override {
    for (;;) {
      {
        const std::lock_guard lock(mutex_);
        if (const auto at = values_.find(std::string(key)); at != values_.end()) return at->second;
      }
      if (deadline.passed()) return Status(StatusCode::kTimedOut, "nobody");
      std::this_thread::yield();
    }
  }
  Forget forget() {
    return [this](const std::string& key) {
      const std::lock_guard lock(mutex_);
      EXPECT_EQ(values_.erase(key), 1u) << key;
    };
  }
  std::function<std::string(std::string_view key, std::string_view value)> tamper_;
  std::mutex mutex_;
  std::map<std::string, std::string> values_;
  std::string written_;  // all that ever was
};

KeyAgreement::Self self_of(int32_t rank, int32_t size) {
  return {.rank = rank, .size = size, .epoch = 3, .hostname = concat("host", rank)};
}

using Keys = std::vector<Result<net::Key>>;
Keys agree_all(store::Store& store, int32_t size, const std::map<int32_t, net::Key>& given = {}) {
  Keys out(static_cast<size_t>(size), Result<net::Key>(unknown_error("not run")));
  std::vector<std::jthread> threads;
  for (int32_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto own = given.find(rank);
      out[static_cast<size_t>(rank)] =
          KeyAgreement(store, self_of(rank, size))
              .agree(own == given.end() ? std::nullopt : std::optional(own->second), patience());
    });
  }
  threads.clear();
  return out;
}

std::string_view text_of(const net::Key& key) {
  return {reinterpret_cast<const char*>(key.bytes().data()), key.bytes().size()};
}

TEST(KeyAgreement, GivesAllRanksOneKeyThatWasNeverInTheStore) {
  OpenStore store;

  const Keys keys = agree_all(store, 4);

  for (const auto& key : keys) {
    ASSERT_TRUE(key) << key.status().message();
    EXPECT_EQ(*key, *keys[0]);
  }
  EXPECT_THAT(store.written_, Not(HasSubstr(std::string(text_of(*keys[0])))));
}

TEST(KeyAgreement, GivesEveryJobAnotherKey) {
  OpenStore a, b;

  EXPECT_FALSE(*agree_all(a, 2)[0] == *agree_all(b, 2)[0]);
}

TEST(KeyAgreement, LeavesNothingBehind) {
  OpenStore store;
  agree_all(store, 3);

  for (int32_t rank = 0; rank < 3; ++rank) {
    KeyAgreement(store, self_of(rank, 3)).clean_up(store.forget());
  }

  EXPECT_TRUE(store.values_.empty());
}

TEST(KeyAgreement, DoesNotTakeAChangedKey) {
  OpenStore store;
  store.tamper_ = [](std::string_view key, std::string_view value) {
    std::string out(value);
    if (key.ends_with("sealed")) out[out.size() - 40] ^= 1;
    return out;
  };

  const Keys keys = agree_all(store, 2);

  EXPECT_EQ(keys[1].status().code(), StatusCode::kCorrupted);
  EXPECT_THAT(keys[1].status().message(), HasSubstr("somebody changed the store"));
}

TEST(KeyAgreement, DoesNotTakeHalfAnAnswer) {
  for (const size_t bytes : {0, 1, 20, 33, 96}) {
    OpenStore store;
    store.tamper_ = [bytes](std::string_view key, std::string_view value) {
      return std::string(key.ends_with("sealed") ? value.substr(0, bytes) : value);
    };

    EXPECT_EQ(agree_all(store, 2)[1].status().code(), StatusCode::kCorrupted) << bytes;
  }
}

TEST(KeyAgreement, RefusesAPointOfSmallOrder) {
  OpenStore store;
  store.tamper_ = [](std::string_view key, std::string_view value) {
    return key.ends_with("/key/1") ? std::string(32, '\0') : std::string(value);
  };

  const Keys keys = agree_all(store, 2);

  EXPECT_EQ(keys[0].status().code(), StatusCode::kCorrupted);
  EXPECT_THAT(keys[0].status().message(), HasSubstr("rank 1"));
  EXPECT_FALSE(keys[1]);
}

TEST(KeyAgreement, LeavesAKeyThatWasGivenAlone) {
  OpenStore store;
  const net::Key key = key_of(7);

  const Keys keys = agree_all(store, 2, {{0, key}, {1, key}});

  EXPECT_EQ(*keys[0], key);
  EXPECT_EQ(*keys[1], key);
  EXPECT_THAT(store.written_, Not(HasSubstr(std::string(text_of(key)))));
}

TEST(KeyAgreement, TellsEveryRankWithoutAKeyThatAnotherHasOne) {
  for (const int32_t with : {0, 1}) {
    OpenStore store;

    const Keys keys = agree_all(store, 3, {{with, key_of(7)}});

    for (const int32_t rank : {0, 1, 2}) {
      if (rank == with) continue;
      const Status& status = keys[static_cast<size_t>(rank)].status();
      EXPECT_EQ(status.code(), StatusCode::kPreconditionError);
      EXPECT_THAT(status.message(), HasSubstr(concat("rank ", with, " has a key from its")));
      EXPECT_THAT(status.message(), HasSubstr("on every rank or on none"));
    }
  }
}

TEST(SealedKey, OpensForItsContextAlone) {
  const net::Key key = key_of(1), secret = key_of(2);
  const SealContext context{.epoch = 1, .rank = 2, .from = {3}, .to = {4}};
  const std::string sealed = seal_key(key, secret, context);

  EXPECT_EQ(*open_key(sealed, secret, context), key);
  EXPECT_FALSE(open_key(sealed, key_of(3), context));
  for (SealContext other : {SealContext{.epoch = 2, .rank = 2, .from = {3}, .to = {4}},
                            SealContext{.epoch = 1, .rank = 3, .from = {3}, .to = {4}},
                            SealContext{.epoch = 1, .rank = 2, .from = {4}, .to = {4}},
                            SealContext{.epoch = 1, .rank = 2, .from = {3}, .to = {3}}}) {
    EXPECT_FALSE(open_key(sealed, secret, other));
  }
  for (size_t at = 0; at < sealed.size(); ++at) {
    std::string changed = sealed;
    changed[at] ^= 0x20;
    EXPECT_FALSE(open_key(changed, secret, context)) << at;
  }
}

}  // namespace
}  // namespace hvd::bootstrap
