#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "base/fake_environment.h"
#include "base/fd.h"
#include "base/text.h"
#include "bootstrap/join_network.h"
#include "bootstrap/pmi_client.h"
#include "bootstrap/process_manager.h"
#include "tests/unit/net/sockets.h"

namespace hvd::bootstrap {
namespace {

using net::test::key_of;
using net::test::patience;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A process manager as Hydra is one: a descriptor for each rank, one key-value space.
class Manager {
 public:
  explicit Manager(size_t ranks) : rank_count_(ranks) {
    for (size_t rank = 0; rank < ranks; ++rank) {
      int ends[2];
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
      theirs_.emplace_back(ends[0]);
      ours_.emplace_back(ends[1]);
    }
    for (size_t rank = 0; rank < ranks; ++rank) {
      threads_.emplace_back([this, rank] { serve(ours_[rank].get()); });
    }
  }
  ~Manager() { theirs_.clear(); }  // ends the threads

  Environment environment(size_t rank) const {
    return fake_environment(
        {{"PMI_FD", concat(theirs_[rank].get())}, {"HOROVOD_GLOO_IFACE", "lo"}});
  }
  size_t finalized_count() {
    const std::lock_guard lock(mutex_);
    return finalized_;
  }
  std::map<std::string, std::string> values() {
    const std::lock_guard lock(mutex_);
    return values_;
  }

 private:
  void serve(int fd) {
    std::string buffer;
    for (char byte = 0; read(fd, &byte, 1) == 1;) {
      if (byte != '\n') {
        buffer += byte;
        continue;
      }
      const std::string answer = answer_to(buffer) + "\n";
      buffer.clear();
      if (write(fd, answer.data(), answer.size()) < 0) return;
    }
  }

  std::string answer_to(const std::string& line) {
    std::unique_lock lock(mutex_);
    const std::string command = pmi_field(line, "cmd");
    if (command == "init") return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0";
    if (command == "get_maxes") return "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024";
    if (command == "get_my_kvsname") return "cmd=my_kvsname kvsname=kvs_1_0";
    if (command == "put") {
      values_[pmi_field(line, "key")] = pmi_field(line, "value");
      return "cmd=put_result rc=0 msg=success";
    }
    if (command == "get") {
      const auto found = values_.find(pmi_field(line, "key"));
      if (found == values_.end()) return "cmd=get_result rc=-1 msg=key_not_found value=unknown";
      return "cmd=get_result rc=0 msg=success value=" + found->second;
    }
    if (command == "barrier_in") {
      ++arrived_;
      all_came_.notify_all();
      all_came_.wait_for(lock, net::test::kPatience, [&] { return arrived_ >= rank_count_; });
      return "cmd=barrier_out";
    }
    ++finalized_;
    return "cmd=finalize_ack";
  }

  const size_t rank_count_;
  std::mutex mutex_;
  std::condition_variable all_came_;
  size_t arrived_ = 0, finalized_ = 0;
  std::map<std::string, std::string> values_;
  std::vector<UniqueFd> theirs_, ours_;
  std::vector<std::jthread> threads_;
};

topology::Topology one_rank_per_host(int32_t rank, int32_t size) {
  return {.rank = rank,
          .size = size,
          .local_rank = 0,
          .local_size = 1,
          .cross_rank = rank,
          .cross_size = size,
          .hostname = concat("host", rank),
          .job_id = "test"};
}

std::vector<Result<Network>> join_all(Manager& manager, std::vector<Memory>& memories,
                                      uint64_t epoch) {
  std::vector<Result<Network>> networks;
  const auto size = static_cast<int32_t>(memories.size());
  for (int32_t rank = 0; rank < size; ++rank) networks.emplace_back(unknown_error("not run"));
  std::vector<std::jthread> threads;
  for (int32_t rank = 0; rank < size; ++rank) {
    const auto i = static_cast<size_t>(rank);
    threads.emplace_back([&, rank, i] {
      networks[i] = join_network(one_rank_per_host(rank, size), manager.environment(i), epoch,
                                 patience(), memories[i]);
    });
  }
  threads.clear();
  return networks;
}

TEST(Pmi, ValuesAreLeftOutOfMessages) {
  EXPECT_EQ(without_value("cmd=get_result rc=1 value=secret more=1"),
            "cmd=get_result rc=1 value=(left out) more=1");
  EXPECT_EQ(without_value("value=a value=b"), "value=(left out) value=(left out)");
  EXPECT_EQ(without_value("cmd=barrier_out"), "cmd=barrier_out");
}

TEST(Pmi, CarriesAFreshKeyAndThePlaceOfTheStore) {
  Manager manager(3);
  std::vector<Memory> memories(3);

  const auto networks = join_all(manager, memories, 0);

  for (const auto& network : networks) {
    ASSERT_TRUE(network) << network.status().message();
    EXPECT_THAT(network->hosts.names, ElementsAre("host0", "host1", "host2"));
  }
  EXPECT_EQ(manager.finalized_count(), 3u);
  EXPECT_EQ(manager.values().size(), 1u);
}

// The process manager has been taken leave of by then.
TEST(Pmi, ALaterInitMeetsAtTheSamePlace) {
  Manager manager(2);
  std::vector<Memory> memories(2);
  for (const uint64_t epoch : {1, 2}) {
    for (const auto& network : join_all(manager, memories, epoch)) {
      ASSERT_TRUE(network) << network.status().message();
    }
  }
  EXPECT_EQ(manager.finalized_count(), 2u);
}

TEST(Pmi, IsNotUsedWithoutADescriptorThatIsOpen) {
  EXPECT_FALSE(has_process_manager(fake_environment({})));
  EXPECT_FALSE(has_process_manager(fake_environment({{"PMI_FD", "1000000"}})));
  EXPECT_FALSE(has_process_manager(fake_environment({{"PMI_FD", "x"}})));
  EXPECT_TRUE(has_process_manager(fake_environment({{"PMI_FD", concat(STDERR_FILENO)}})));
  // PMIx has a server besides.
  EXPECT_FALSE(
      has_process_manager(fake_environment({{"PMIX_NAMESPACE", "n"}, {"PMIX_RANK", "0"}})));
}

TEST(Pmi, AManagerThatSpeaksSomethingElseIsAnError) {
  const struct {
    const char* answer;
    StatusCode code;
    const char* text;
  } kCases[] = {
      {"cmd=response_to_init pmi_version=2 rc=-1\n", StatusCode::kPreconditionError,
       "refuses version 1"},
      {"nonsense\n", StatusCode::kCorrupted, "expected 'response_to_init'"},
      {"", StatusCode::kPeerLost, "has gone"},
  };
  for (const auto& [answer, code, text] : kCases) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const UniqueFd theirs(ends[0]), ours(ends[1]);
    ASSERT_EQ(write(ours.get(), answer, strlen(answer)), static_cast<ssize_t>(strlen(answer)));
    shutdown(ours.get(), SHUT_WR);

    const auto client =
        PmiClient::open(fake_environment({{"PMI_FD", concat(theirs.get())}}), patience());

    EXPECT_EQ(client.status().code(), code);
    EXPECT_THAT(client.status().message(), HasSubstr(text));
  }
}

TEST(Pmi, AMeetingFitsIntoAValue) {
  const net::Key key = key_of(7);
  std::vector<net::Address> addresses;
  for (uint16_t port = 1000; port < 1100; ++port) {
    addresses.push_back(*net::parse_host("fd00:1234:5678:9abc:def0:1234:5678:9abc", port));
  }

  const std::string text = encode_meeting(key, addresses, 1023);

  EXPECT_LE(text.size(), 1023u);
  const auto meeting = decode_meeting(text);
  ASSERT_TRUE(meeting) << meeting.status().message();
  EXPECT_TRUE(std::equal(key.bytes().begin(), key.bytes().end(), meeting->key->bytes().begin()));
  EXPECT_GT(meeting->addresses.size(), 10u);
  EXPECT_EQ(meeting->addresses.front(), addresses.front());
  EXPECT_FALSE(decode_meeting(encode_meeting(std::nullopt, addresses, 1023))->key);
  for (const char* bad : {"", "abc", "abc/10.0.0.1:1", "-/", "-/nonsense"}) {
    EXPECT_FALSE(decode_meeting(bad)) << bad;
  }
}

}  // namespace
}  // namespace hvd::bootstrap
