// A job on hosts whose network others use, too: ranks with another key, recorded handshakes, port
// scanners. All of it inside the test's own namespaces. Skipped where these are not permitted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <sys/stat.h>

#include <cstring>
#include <deque>
#include <optional>
#include <random>

#include "net/handshake.h"
#include "tests/process/hosts_fixture.h"
#include "tests/process/strangers.h"

namespace hvd::test {
namespace {

using std::chrono::seconds;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using Bytes = std::vector<uint8_t>;
using Endpoint = NetworkHosts::Endpoint;

constexpr size_t kOpening = net::kOpeningBytes;                     // message 1 of the handshake
constexpr size_t kDialled = net::kOpeningBytes + net::kProofBytes;  // and message 3

// What comes until the other end closes the connection, or `enough`. nullopt: neither happened.
std::optional<Bytes> receive(const UniqueFd& socket, size_t enough = SIZE_MAX) {
  Bytes all;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (all.size() < enough) {
    pollfd watch{socket.get(), POLLIN, 0};
    if (::poll(&watch, 1, poll_milliseconds(deadline)) != 1) return std::nullopt;
    std::array<uint8_t, 512> some;
    const ssize_t count = ::recv(socket.get(), some.data(), some.size(), 0);
    if (count <= 0) return all;
    all.insert(all.end(), some.begin(), some.begin() + count);
  }
  return all;
}

// Everything that passes the cable of a host, and from it what was first said on each connection.
class Recorder {
 public:
  bool start(const char* interface) {
    // All protocols: what a bridge takes is not shown to those who ask for IP.
    socket_.reset(::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ALL)));
    const int room = 64 << 20;
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    sockaddr_ll place{};
    place.sll_family = AF_PACKET;
    place.sll_protocol = htons(ETH_P_ALL);
    place.sll_ifindex = static_cast<int>(::if_nametoindex(interface));
    return ::bind(socket_.get(), reinterpret_cast<sockaddr*>(&place), sizeof place) == 0;
  }

  // The first kDialled bytes that diallers sent to this endpoint, one entry per connection.
  std::vector<Bytes> diallers_of(const Endpoint& endpoint) {
    read_packets();
    std::vector<Bytes> found;
    for (const auto& [flow, said] : flows_) {
      char text[INET_ADDRSTRLEN] = {};
      ::inet_ntop(AF_INET, &flow.to, text, sizeof text);
      if (endpoint.address != text || endpoint.port != flow.to_port) continue;
      Bytes bytes;
      for (const auto& [offset, part] : said.parts) {
        if (offset <= bytes.size()) bytes.resize(offset), append(bytes, part);
      }
      if (bytes.size() < kDialled) continue;
      bytes.resize(kDialled);
      found.push_back(bytes);
    }
    return found;
  }

 private:
  struct Flow {
    uint32_t from, to;
    int from_port, to_port;
    auto operator<=>(const Flow&) const = default;
  };
  struct Said {
    uint32_t start = 0;  // sequence number of the first byte
    std::map<uint32_t, Bytes> parts;
  };
  static void append(Bytes& to, const Bytes& from) {
    to.insert(to.end(), from.begin(), from.end());
  }

  void read_packets() {
    Bytes packet(128 << 10);
    for (;;) {
      const ssize_t count = ::recv(socket_.get(), packet.data(), packet.size(), 0);
      if (count <= 0) return;
      read_packet(packet.data(), static_cast<size_t>(count));
    }
  }

  void read_packet(const uint8_t* data, size_t bytes) {
    iphdr ip{};
    tcphdr tcp{};
    if (bytes < ETH_HLEN + sizeof ip + sizeof tcp) return;
    if (data[12] != ETH_P_IP >> 8 || data[13] != (ETH_P_IP & 255)) return;
    std::memcpy(&ip, data + ETH_HLEN, sizeof ip);
    const size_t tcp_at = ETH_HLEN + size_t{ip.ihl} * 4;
    if (ip.protocol != IPPROTO_TCP || bytes < tcp_at + sizeof tcp) return;
    std::memcpy(&tcp, data + tcp_at, sizeof tcp);
    const size_t begin = tcp_at + size_t{tcp.doff} * 4;
    const size_t end = std::min(bytes, ETH_HLEN + size_t{ntohs(ip.tot_len)});
    const Flow flow{ip.saddr, ip.daddr, ntohs(tcp.source), ntohs(tcp.dest)};
    if (tcp.syn != 0) {
      flows_[flow].start = ntohl(tcp.seq) + 1;
      return;
    }
    const auto known = flows_.find(flow);
    if (known == flows_.end() || end <= begin) return;
    const uint32_t offset = ntohl(tcp.seq) - known->second.start;
    if (offset < kDialled) known->second.parts[offset] = Bytes(data + begin, data + end);
  }

  UniqueFd socket_;
  std::map<Flow, Said> flows_;
};

class HostsStrangers : public HostsFixture {
 protected:
  static void SetUpTestSuite() { create({"hosta", "hostb"}); }

  std::vector<std::string> waiting_job() {
    EXPECT_EQ(::mkfifo((directory_ / "pipe").c_str(), 0600), 0);
    return ranks(3, "hosta:2,hostb:1", {"wait", directory_ / "pipe"});
  }
  // Listeners of the launcher and of all ranks.
  std::vector<Endpoint> job_endpoints() const {
    std::vector<Endpoint> all;
    for (const char* host : {"", "hosta", "hostb"}) {
      for (const Endpoint& one : hosts_->listening(host)) all.push_back(one);
    }
    return all;
  }
  static void expect_unharmed(LaunchedJob& job) {
    EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
    const std::vector<pid_t> used = job.numbers_after("used ");
    EXPECT_EQ(used.size(), 3u);
    for (const pid_t used_ms : used) {
      EXPECT_LT(used_ms, 2000) << "strangers cost the ranks processor time";
    }
  }

  const TemporaryDirectory directory_;
};

TEST_F(HostsStrangers, NobodyListensOnAWildcardAddress) {
  LaunchedJob job(waiting_job(), {.environment = hosts_->environment()});
  ASSERT_TRUE(job.wait_for("runs with pid ", 3));

  const std::vector<Endpoint> endpoints = job_endpoints();

  EXPECT_GE(endpoints.size(), 4u) << "the launcher's store and every rank";
  for (const Endpoint& one : endpoints) {
    EXPECT_NE(one.address, "0.0.0.0") << one.port;
    EXPECT_NE(one.address, "::") << one.port;
  }
  EXPECT_TRUE(let_go(job, directory_ / "pipe")) << "the job ended before";
  expect_unharmed(job);
}

TEST_F(HostsStrangers, ScannersAndRandomBytesOnEveryPortDoNotDisturbTheJob) {
  LaunchedJob job(waiting_job(), {.environment = hosts_->environment()});
  ASSERT_TRUE(job.wait_for("runs with pid ", 3));
  std::mt19937 random(1);
  Bytes noise(100000);
  for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random());
  std::vector<UniqueFd> silent;

  int reached = 0;
  for (const Endpoint& endpoint : job_endpoints()) {
    for (const size_t bytes : {size_t{0}, size_t{1}, kOpening, noise.size()}) {
      const UniqueFd stranger = connect_to(endpoint);
      if (!stranger.valid()) continue;
      ++reached;
      send_all(stranger, noise.data(), bytes);
    }
    // More than may be half open at a time.
    for (int i = 0; i < 150; ++i) silent.push_back(connect_to(endpoint));
  }

  EXPECT_GE(reached, 16);
  for (const UniqueFd& stranger : silent) {
    if (!stranger.valid()) continue;
    const auto answer = receive(stranger);
    ASSERT_TRUE(answer.has_value()) << "a connection without a proof is kept for ever";
    EXPECT_EQ(answer->size(), 0u) << "a stranger was told something";
  }
  EXPECT_TRUE(let_go(job, directory_ / "pipe")) << "the job ended before";
  expect_unharmed(job);
}

TEST_F(HostsStrangers, ARecordedHandshakeOpensNothing) {
  Recorder recorder;
  ASSERT_TRUE(recorder.start("v-hosta"));
  LaunchedJob job(waiting_job(), {.environment = hosts_->environment()});
  ASSERT_TRUE(job.wait_for("runs with pid ", 3));

  int replayed = 0;
  for (const Endpoint& endpoint : job_endpoints()) {
    for (const Bytes& recorded : recorder.diallers_of(endpoint)) {
      const UniqueFd stranger = connect_to(endpoint);
      ASSERT_TRUE(stranger.valid());
      send_all(stranger, recorded.data(), kOpening);
      const auto answer = receive(stranger, kOpening);
      ASSERT_TRUE(answer.has_value());
      EXPECT_EQ(answer->size(), 0u) << "a recording was answered";
      send_all(stranger, recorded.data() + kOpening, kDialled - kOpening);
      const auto rest = receive(stranger);
      ASSERT_TRUE(rest.has_value()) << "the recorded proof was not refused";
      EXPECT_EQ(rest->size(), 0u);
      ++replayed;
    }
  }

  EXPECT_GE(replayed, 2) << "of rank 0 and 1 with rank 2";
  EXPECT_TRUE(let_go(job, directory_ / "pipe")) << "the job ended before";
  expect_unharmed(job);
}

TEST_F(HostsStrangers, TenThousandRecordedHandshakesCostTheJobNothing) {
  constexpr int kReplays = 10'000;
  Recorder recorder;
  ASSERT_TRUE(recorder.start("v-hosta"));
  LaunchedJob job(waiting_job(), {.environment = hosts_->environment()});
  ASSERT_TRUE(job.wait_for("runs with pid ", 3));
  std::vector<std::pair<Endpoint, Bytes>> all;
  for (const Endpoint& endpoint : job_endpoints()) {
    for (const Bytes& recorded : recorder.diallers_of(endpoint))
      all.emplace_back(endpoint, recorded);
  }
  ASSERT_GE(all.size(), 2u);

  size_t answered = 0;
  std::deque<UniqueFd> open;  // as many at a time as hold a table of half-open connections
  for (int i = 0; i < kReplays; ++i) {
    const auto& [endpoint, recorded] = all[static_cast<size_t>(i) % all.size()];
    open.push_back(connect_to(endpoint));
    ASSERT_TRUE(open.back().valid()) << i;
    send_all(open.back(), recorded.data(), recorded.size());
    if (open.size() < 200) continue;
    const auto answer = receive(open.front(), 1);
    ASSERT_TRUE(answer.has_value()) << i;
    answered += answer->size();
    open.pop_front();
  }

  EXPECT_EQ(answered, 0u);
  EXPECT_TRUE(let_go(job, directory_ / "pipe")) << "the job ended before";
  EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
  EXPECT_LT(std::count(job.err().begin(), job.err().end(), '\n'), 60) << "the log was filled";
}

TEST_F(HostsStrangers, TricklersAndAThousandHalfOpenConnectionsPerPortDoNotKeepAJobFromStarting) {
  Flood flood(*hosts_, {"", "hosta", "hostb"}, 1000);
  LaunchedJob job(waiting_job(), {.environment = hosts_->environment()});

  EXPECT_TRUE(job.wait_for("runs with pid ", 3)) << "the job starts";
  EXPECT_TRUE(flood.reaches(4, job)) << "the launcher's store and every rank";
  EXPECT_TRUE(let_go(job, directory_ / "pipe")) << "the job ended before";

  EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
  EXPECT_THAT(job.err(), ContainsRegex("audit: rank.* from .*; refused [0-9]* connections"));
}

// What the tests above rely on if one fails: their end comes with that of the job, not with the
// limit of the whole suite.
TEST_F(HostsStrangers, ARankThatCrashesEndsTheTestInSeconds) {
  LaunchedJob job(waiting_job(), {.environment = hosts_->environment()});
  ASSERT_TRUE(job.wait_for("runs with pid ", 3));
  const auto began = std::chrono::steady_clock::now();

  ::kill(job.numbers_after("rank 0 runs with pid ").at(0), SIGKILL);  // it would read the pipe
  while (!job.has_ended_within(seconds(60))) FAIL() << "the job goes on without rank 0";

  EXPECT_FALSE(let_go(job, directory_ / "pipe"));
  Flood flood(*hosts_, {"hosta"}, 10);
  EXPECT_FALSE(flood.reaches(100, job));
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(40));
  EXPECT_NE(job.wait(), 0);
  EXPECT_THAT(job.err(), ContainsRegex("signal 9"));
}

TEST_F(HostsStrangers, ARankWithAnotherKeyIsRefusedAndSaysSo) {
  std::ofstream(directory_ / "key") << std::string(32, 'k');
  std::filesystem::permissions(directory_ / "key", std::filesystem::perms::owner_read);
  std::vector<std::string> words = ranks(2, "hosta:1,hostb:1", {"steps", "1", "8"});
  const std::vector<std::string> shell = {
      "sh", "-c",
      "if [ $HOROVOD_RANK = 1 ]; then unset HOROVOD_KEY_FD; export HOROVOD_KEY_FILE=" +
          (directory_ / "key") + "; fi; exec \"$@\"",
      "rank"};
  words.insert(words.begin() + 4, shell.begin(), shell.end());

  LaunchedJob job(words, {.environment = hosts_->environment({"HOROVOD_GLOO_TIMEOUT_SECONDS=50"})});

  EXPECT_NE(job.wait(), 0);
  EXPECT_LT(job.took(), seconds(20)) << "it should not try for the whole time that init has";
  EXPECT_THAT(job.err(),
              ContainsRegex("\\[1\\]<stderr>:init failed: .*the rendezvous store at .* has another "
                            "key than this process"));
}

}  // namespace
}  // namespace hvd::test
