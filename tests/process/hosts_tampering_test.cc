// Jobs on hosts with somebody between them: one who reads everything that passes, and one who
// relays handshakes and then flips, drops, repeats or reorders bytes. No rank may ever take a
// changed object for a true one; the job ends, and says why. All of it inside the test's own
// namespaces. Skipped where these are not permitted.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cstring>

#include "tests/process/cable_listener.h"
#include "tests/process/hosts_fixture.h"
#include "tests/process/tampering_host.h"

namespace hvd::test {
namespace {

using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// Where the loader finds OpenSSL; empty: it is not installed.
std::string openssl_path() {
  void* library = ::dlopen("libssl.so.3", RTLD_LAZY);
  if (library == nullptr) return "";
  link_map* map = nullptr;
  ::dlinfo(library, RTLD_DI_LINKMAP, &map);
  std::string path = std::filesystem::canonical(map->l_name).string();
  ::dlclose(library);
  return path;
}

constexpr Tamper kWays[] = {Tamper::kFlip, Tamper::kDrop, Tamper::kRepeat, Tamper::kReorder};

// hosta runs rank 0, hostb rank 1; mallory stands between hosta and everybody else.
class Tampering : public HostsFixture {
 protected:
  static void create_network() {
    create({"hosta", "hostb", "mallory"});
    if (!hosts_) return;
    between_ = std::make_unique<TamperingHost>(*hosts_, "hosta", "hostb", "mallory");
    if (between_->is_ready()) return;
    problem_ = hosts_->problem();
    between_.reset();
    hosts_.reset();
  }
  static void TearDownTestSuite() {
    between_.reset();
    HostsFixture::TearDownTestSuite();
  }

  static std::vector<std::string> settings(std::vector<std::string> more = {}) {
    more.push_back("HOROVOD_GLOO_TIMEOUT_SECONDS=8");
    return hosts_->environment(std::move(more));
  }
  static std::vector<std::string> objects() {
    return ranks(2, "hosta:1,hostb:1", {"objects", "40", "200000"});
  }

  // The job notices, whatever is done to a stream, and in whichever direction.
  static void expect_noticed(StreamKind kind, std::vector<std::string> environment = {}) {
    bool forth = true;
    for (const Tamper way : kWays) {
      // Behind what TLS itself says first; the store has no more than a few hundred bytes.
      const uint64_t at = kind == StreamKind::kStore ? 50 : 1200;
      between_->attack({.how = way, .kind = kind, .forth = forth, .at_byte = at});
      LaunchedJob job(objects(), {.environment = settings(environment)});

      const int code = job.wait();

      const std::string said = job.out() + job.err();
      const std::string where = "way " + std::to_string(static_cast<int>(way)) +
                                (forth ? " forth" : " back") + "\n" + said;
      EXPECT_NE(code, 0) << where;
      EXPECT_GE(between_->hits(), 1) << where;
      EXPECT_THAT(said, Not(HasSubstr("wrong object")));
      expect_words(kind, way, said, where);
      forth = !forth;
    }
  }
  static void expect_words(StreamKind kind, Tamper way, const std::string& said,
                           const std::string& where) {
    if (kind != StreamKind::kStore) {
      EXPECT_THAT(said, ContainsRegex("rank [01] .host host[ab], 10\\.99\\.[0-9.:]*.: .*bytes were "
                                      "changed on the way"))
          << where;
    } else if (way != Tamper::kDrop) {  // then it waits for the rest
      EXPECT_THAT(said, AnyOf(HasSubstr("bytes were changed on the way"),
                              HasSubstr("change what is sent?")))
          << where;
    } else {
      EXPECT_THAT(said, AnyOf(HasSubstr("no answer in time"), HasSubstr("timed out waiting for")))
          << where;
    }
  }

  static std::unique_ptr<TamperingHost> between_;
};
std::unique_ptr<TamperingHost> Tampering::between_;

class HostsTampering : public Tampering {
 protected:
  static void SetUpTestSuite() { create_network(); }
};

TEST_F(HostsTampering, ARelayAloneHarmsNothing) {
  between_->attack({});
  LaunchedJob job(objects(), {.environment = settings()});

  EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
  EXPECT_EQ(LaunchedJob::occurrences(job.out(), "has all objects"), 2);
  EXPECT_GE(between_->relayed(), 4) << "store, control, numbers and objects";
}

TEST_F(HostsTampering, WhatIsChangedOnTheWayToTheStoreIsNoticed) {
  expect_noticed(StreamKind::kStore);
}

TEST_F(HostsTampering, WhatIsChangedOnAControlStreamIsNoticed) {
  expect_noticed(StreamKind::kControl);
}

TEST_F(HostsTampering, AChangedObjectIsNeverGivenOut) { expect_noticed(StreamKind::kObjects); }

TEST_F(HostsTampering, ChangedNumbersAreNoticedUnderTls) {
  if (openssl_path().empty()) GTEST_SKIP() << "OpenSSL is not installed";
  expect_noticed(StreamKind::kNumbers, {"HOROVOD_TLS=1"});
}

TEST_F(HostsTampering, ChangesInTheFirstMessagesOfTlsEndTheJob) {
  if (openssl_path().empty()) GTEST_SKIP() << "OpenSSL is not installed";
  for (const bool forth : {true, false}) {
    between_->attack(
        {.how = Tamper::kFlip, .kind = StreamKind::kControl, .forth = forth, .at_byte = 60});
    LaunchedJob job(objects(), {.environment = settings()});

    EXPECT_NE(job.wait(), 0);

    EXPECT_GE(between_->hits(), 1);
    EXPECT_THAT(job.out() + job.err(), ContainsRegex("rank [01] .host host[ab], .*TLS: "));
    EXPECT_THAT(job.out(), Not(HasSubstr("runs with pid")));
  }
}

// One host has no OpenSSL, so that our own records take the place of TLS.
class HostsTamperingWithoutOpenSsl : public Tampering {
 protected:
  static void SetUpTestSuite() {
    create_network();
    const std::string library = openssl_path();
    if (!hosts_ || library.empty()) return;
    if (hosts_->run_on("hostb", "mount --bind /dev/null " + library)) return;
    problem_ = hosts_->problem();
    between_.reset();
    hosts_.reset();
  }
};

TEST_F(HostsTamperingWithoutOpenSsl, EveryOperationWorks) {
  between_->attack({});
  LaunchedJob job(ranks(3, "hosta:2,hostb:1", {"operations"}), {.environment = settings()});

  EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
  EXPECT_EQ(LaunchedJob::occurrences(job.out(), "has checked every operation"), 3);
}

TEST_F(HostsTamperingWithoutOpenSsl, WhatIsChangedOnAControlStreamIsNoticed) {
  expect_noticed(StreamKind::kControl);
}

TEST_F(HostsTamperingWithoutOpenSsl, AChangedObjectIsNeverGivenOut) {
  expect_noticed(StreamKind::kObjects);
}

TEST_F(HostsTamperingWithoutOpenSsl, AskingForTlsNamesWhatIsMissing) {
  between_->attack({});
  LaunchedJob job(objects(), {.environment = settings({"HOROVOD_TLS=1"})});

  EXPECT_NE(job.wait(), 0);
  EXPECT_THAT(job.err(), HasSubstr("HOROVOD_TLS needs OpenSSL 3 (libssl.so.3)"));
}

class HostsListening : public HostsFixture {
 protected:
  static void SetUpTestSuite() { create({"hosta-of-ours", "hostb-of-ours"}); }

  // The ranks meet at rank 0, with a key that the test knows.
  std::string hear(const std::vector<std::string>& environment) {
    const std::string key = directory_ / "key";
    std::ofstream(key) << kKey;
    std::filesystem::permissions(key, std::filesystem::perms::owner_read);
    std::vector<std::string> words =
        ranks(2, "hosta-of-ours:1,hostb-of-ours:1", {"objects", "4", "400000"});
    const std::vector<std::string> shell = {
        "sh", "-c",
        "unset HOROVOD_KEY_FD HOROVOD_STORE_ADDRESSES; export HOROVOD_KEY_FILE=" + key +
            " HOROVOD_RENDEZVOUS_ADDR=" + hosts_->address("hosta-of-ours") +
            " HOROVOD_RENDEZVOUS_PORT=4711; exec \"$@\"",
        "rank"};
    words.insert(words.begin() + 4, shell.begin(), shell.end());
    CableListener listener;
    EXPECT_TRUE(listener.start("v-hosta-of-ours"));

    LaunchedJob job(words, {.environment = hosts_->environment(environment)});

    EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
    said_ = job.out() + job.err();
    return listener.heard();
  }
  static void expect_nothing_in(const std::string& heard) {
    EXPECT_GT(heard.size(), 1000000u);
    for (const char* secret : {testing::kObjectMark, "of-ours", kKey}) {
      EXPECT_EQ(heard.find(secret), std::string::npos) << "'" << secret << "' is in the clear";
    }
  }

  static constexpr char kKey[] = "this is the 32 byte key of a job";
  static_assert(sizeof kKey == 33);
  const TemporaryDirectory directory_;
  std::string said_;
};

TEST_F(HostsListening, NoNameKeyOrObjectIsInTheClear) {
  const std::string heard = hear({});

  expect_nothing_in(heard);
  EXPECT_TRUE(has_numbers(heard))
      << "tensors are not encrypted by default, so this listener is deaf";
}

TEST_F(HostsListening, NothingAtAllIsInTheClearUnderTls) {
  if (openssl_path().empty()) GTEST_SKIP() << "OpenSSL is not installed";
  const std::string heard = hear({"HOROVOD_TLS=1"});

  expect_nothing_in(heard);
  EXPECT_FALSE(has_numbers(heard));
}

TEST_F(HostsListening, WhoTurnsProtectionOffIsToldWhatThatMeans) {
  const std::string heard = hear({"HOROVOD_TLS=0"});

  EXPECT_NE(heard.find(testing::kObjectMark), std::string::npos);
  EXPECT_EQ(heard.find(kKey), std::string::npos);
  EXPECT_EQ(LaunchedJob::occurrences(said_, "can run code on every rank"), 1) << said_;
}

}  // namespace
}  // namespace hvd::test
