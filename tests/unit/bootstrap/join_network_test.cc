#include "bootstrap/join_network.h"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <thread>

#include "base/fake_environment.h"
#include "base/text.h"
#include "bootstrap/host_identity.h"
#include "store/exchange_store.h"
#include "store/memory_store.h"
#include "tests/unit/net/sockets.h"

namespace hvd::bootstrap {
namespace {

using net::test::DeadPort;
using net::test::key_of;
using net::test::loopback;
using net::test::patience;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

// A key as a launcher leaves it: a memory file.
UniqueFd key_descriptor(uint8_t fill) {
  UniqueFd fd(memfd_create("key", MFD_CLOEXEC));
  const net::Key key = key_of(fill);
  EXPECT_EQ(write(fd.get(), key.bytes().data(), net::kKeyBytes), 32);
  return fd;
}

// Ranks fill hosts of two.
topology::Topology topology_of(int32_t rank, int32_t size) {
  return {.rank = rank,
          .size = size,
          .local_rank = rank % 2,
          .local_size = 2,
          .cross_rank = rank / 2,
          .cross_size = size / 2,
          .hostname = concat("host", rank / 2),
          .job_id = "test"};
}

using Join = std::function<Result<Network>(int32_t rank)>;

std::vector<Result<Network>> run_ranks(int32_t count, const Join& join) {
  std::vector<Result<Network>> out;
  for (int32_t rank = 0; rank < count; ++rank) out.emplace_back(unknown_error("not run"));
  std::vector<std::jthread> threads;
  for (int32_t rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] { out[static_cast<size_t>(rank)] = join(rank); });
  }
  threads.clear();  // joins
  return out;
}

// Sends a byte from each rank to every other.
void expect_connected(std::vector<Result<Network>>& networks) {
  const auto size = static_cast<int32_t>(networks.size());
  std::map<std::pair<int32_t, int32_t>, std::unique_ptr<net::Stream>> streams;
  ASSERT_TRUE(net::test::wait_until({}, [&] {
    bool all = true;
    for (int32_t a = 0; a < size; ++a) {
      net::Mesh& mesh = *networks[static_cast<size_t>(a)]->mesh;
      mesh.poll();
      for (int32_t b = 0; b < size; ++b) {
        auto& stream = streams[{a, b}];
        if (a == b || stream != nullptr) continue;
        auto opened = mesh.connect(b, net::kControlPurpose);
        EXPECT_TRUE(opened) << opened.status().message();
        if (opened) stream = std::move(*opened);
        all = all && stream != nullptr;
      }
    }
    return all;
  }));
  for (auto& [pair, stream] : streams) {
    if (stream == nullptr) continue;
    char byte = static_cast<char>(10 * pair.first + pair.second);
    const iovec part{&byte, 1};
    char seen = 0;
    const iovec into{&seen, 1};
    net::Stream& other = *streams[{pair.second, pair.first}];
    size_t sent = 0;
    ASSERT_TRUE(net::test::wait_until({}, [&] {
      if (sent == 0) sent = *stream->send({&part, 1});  // TLS has words of its own to say first
      return *other.receive({&into, 1}) == 1;
    }));
    EXPECT_EQ(seen, byte);
  }
}

void expect_two_hosts_of_two(const Network& network) {
  EXPECT_THAT(network.hosts.host_of, ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(network.hosts.ranks_of, ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
  EXPECT_THAT(network.hosts.names, ElementsAre("host0", "host1"));
}

TEST(JoinNetwork, ThroughTheStoreOfALauncher) {
  const UniqueFd key = key_descriptor(1);
  const auto store = *store::ServerThread::start(*store::Server::listen({loopback()}, key_of(1)));
  const Environment environment =
      fake_environment({{"HOROVOD_STORE_ADDRESSES", net::to_text(store->addresses())},
                        {"HOROVOD_KEY_FD", concat(key.get())},
                        {"HOROVOD_GLOO_IFACE", "lo"}});

  auto networks = run_ranks(4, [&](int32_t rank) {
    return join_network(topology_of(rank, 4), environment, 7, patience());
  });

  for (const auto& network : networks) {
    ASSERT_TRUE(network) << network.status().message();
    expect_two_hosts_of_two(*network);
    EXPECT_EQ(network->store, nullptr);
  }
  expect_connected(networks);
}

// The port must be known beforehand; it is free when the holder lets it go.
TEST(JoinNetwork, ThroughAStoreThatRank0Runs) {
  for (const auto& [address_name, port_name] :
       {std::pair("HOROVOD_RENDEZVOUS_ADDR", "HOROVOD_RENDEZVOUS_PORT"),
        std::pair("HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT"),
        std::pair("MASTER_ADDR", "HOROVOD_STORE_PORT")}) {
    const UniqueFd key = key_descriptor(1);
    const std::string place = net::to_text(DeadPort(net::test::own_loopback()).address());
    const size_t colon = place.find(':');
    const Environment environment = fake_environment({{address_name, place.substr(0, colon)},
                                                      {port_name, place.substr(colon + 1)},
                                                      {"HOROVOD_KEY_FD", concat(key.get())},
                                                      {"HOROVOD_GLOO_IFACE", "lo"}});

    auto networks = run_ranks(4, [&](int32_t rank) {
      return join_network(topology_of(rank, 4), environment, 0, patience());
    });

    for (const auto& network : networks) {
      ASSERT_TRUE(network) << network.status().message();
      expect_two_hosts_of_two(*network);
    }
    EXPECT_NE(networks[0]->store, nullptr);
    expect_connected(networks);
  }
}

// What Slurm without PMI, pods and SageMaker lead to; a second init must find the store too.
TEST(JoinNetwork, AtTheFirstHostThatTheLauncherNamesAndThereAgain) {
  const UniqueFd key = key_descriptor(1);
  const net::Address place = DeadPort(net::test::own_loopback()).address();
  const Environment environment =
      fake_environment({{"HOROVOD_KEY_FD", concat(key.get())}, {"HOROVOD_GLOO_IFACE", "lo"}});
  std::vector<Memory> memories(4);

  for (const uint64_t epoch : {1, 2, 3}) {
    auto networks = run_ranks(4, [&](int32_t rank) {
      topology::Topology topology = topology_of(rank, 4);
      const std::string text = net::to_text(place);
      topology.first_host = text.substr(0, text.find(':'));
      topology.store_port = place.port;
      return join_network(topology, environment, epoch, patience(),
                          memories[static_cast<size_t>(rank)]);
    });

    for (const auto& network : networks) {
      ASSERT_TRUE(network) << network.status().message();
      expect_two_hosts_of_two(*network);
    }
    expect_connected(networks);
  }
  EXPECT_TRUE(memories[0].hosted);
  EXPECT_FALSE(memories[1].hosted);
}

TEST(JoinNetwork, SaysWhatIsMissingUnderEachLauncher) {
  using topology::Launcher;
  const struct {
    Launcher launcher;
    const char* first_host;
    const char* text;
  } kCases[] = {
      {Launcher::kTorchrun, "", "HOROVOD_STORE_PORT (a free port of MASTER_ADDR)"},
      {Launcher::kSlurm, "127.0.0.1", "start it with srun --mpi=pmi2, or set HOROVOD_KEY_FILE"},
      {Launcher::kIndexedJob, "", "a headless service as their subdomain"},
      {Launcher::kIndexedJob, "127.0.0.1", "a mounted secret: set HOROVOD_KEY_FILE"},
      {Launcher::kSageMaker, "127.0.0.1", "but there is no key: set HOROVOD_KEY_FILE"},
      {Launcher::kByHand, "", "set on every rank HOROVOD_RENDEZVOUS_ADDR"},
  };
  for (const auto& [launcher, first_host, text] : kCases) {
    topology::Topology topology = topology_of(1, 4);
    topology.launcher = launcher;
    topology.first_host = first_host;
    topology.store_port = 29410;

    const auto network = join_network(topology, fake_environment({}), 0, patience());

    EXPECT_EQ(network.status().code(), StatusCode::kPreconditionError);
    EXPECT_THAT(network.status().message(), HasSubstr("rank 1 (host host0)"));
    EXPECT_THAT(network.status().message(), HasSubstr(text));
  }
}

TEST(JoinNetwork, ThroughAStoreOfAFrontEndWithAFreshKey) {
  store::MemoryStore store;
  const Environment environment = fake_environment({{"HOROVOD_GLOO_IFACE", "lo"}});

  auto networks = run_ranks(4, [&](int32_t rank) {
    return join_network(topology_of(rank, 4), environment, store, 0, patience());
  });

  for (const auto& network : networks) {
    ASSERT_TRUE(network) << network.status().message();
    expect_two_hosts_of_two(*network);
  }
  expect_connected(networks);
}

TEST(JoinNetwork, GoesOnToTheNextEpochInTheSameStore) {
  store::MemoryStore store;
  const Environment environment = fake_environment({{"HOROVOD_GLOO_IFACE", "lo"}});
  for (const uint64_t epoch : {0, 1}) {
    auto networks = run_ranks(2, [&](int32_t rank) {
      return join_network(topology_of(rank, 2), environment, store, epoch, patience());
    });

    for (const auto& network : networks) ASSERT_TRUE(network) << network.status().message();
  }
}

TEST(JoinNetwork, SaysHowToStartWhenNothingIsKnown) {
  const auto network = join_network(topology_of(1, 4), fake_environment({}), 0, patience());

  EXPECT_EQ(network.status().code(), StatusCode::kPreconditionError);
  for (const char* word : {"horovodrun", "HOROVOD_RENDEZVOUS_ADDR", "HOROVOD_KEY_FILE"}) {
    EXPECT_THAT(network.status().message(), HasSubstr(word));
  }
}

TEST(JoinNetwork, RefusesToRunWithoutAKey) {
  const auto network =
      join_network(topology_of(1, 4),
                   fake_environment({{"HOROVOD_STORE_ADDRESSES", "127.0.0.1:9"}}), 0, patience());

  EXPECT_EQ(network.status().code(), StatusCode::kPreconditionError);
  EXPECT_THAT(network.status().message(), HasSubstr("rank 1 (host host0)"));
  EXPECT_THAT(network.status().message(), HasSubstr("HOROVOD_KEY_FILE"));
}

TEST(JoinNetwork, NamesTheVariableWithTheBadValue) {
  const struct {
    Variables variables;
    const char* text;
  } kCases[] = {
      {{{"HOROVOD_STORE_ADDRESSES", "nonsense"}}, "HOROVOD_STORE_ADDRESSES: expected an address"},
      {{{"HOROVOD_STORE_ADDRESSES", "127.0.0.1:9"}, {"HOROVOD_KEY_FD", "x"}}, "HOROVOD_KEY_FD: "},
      {{{"HOROVOD_STORE_ADDRESSES", "127.0.0.1:9"}, {"HOROVOD_KEY_FILE", "/nonexistent"}},
       "HOROVOD_KEY_FILE: key file '/nonexistent'"},
      {{{"HOROVOD_RENDEZVOUS_ADDR", "127.0.0.1"}, {"HOROVOD_RENDEZVOUS_PORT", "99999"}},
       "HOROVOD_RENDEZVOUS_PORT: expected an integer from 1 to 65535"},
  };
  for (const auto& [variables, text] : kCases) {
    const auto network =
        join_network(topology_of(1, 4), fake_environment(variables), 0, patience());

    EXPECT_THAT(network.status().message(), HasSubstr(text));
  }
  store::MemoryStore store;
  const auto network =
      join_network(topology_of(0, 4), fake_environment({{"HOROVOD_GLOO_IFACE", "no-such-nic"}}),
                   store, 0, patience());
  EXPECT_THAT(network.status().message(), HasSubstr("HOROVOD_GLOO_IFACE: network interface "
                                                    "'no-such-nic' is not up"));
}

// Every rank that came must learn the same reason.
TEST(JoinNetwork, TellsEveryRankWhoIsMissing) {
  store::MemoryStore store;
  const UniqueFd key = key_descriptor(1);
  const Environment environment =
      fake_environment({{"HOROVOD_GLOO_IFACE", "lo"}, {"HOROVOD_KEY_FD", concat(key.get())}});

  const auto networks = run_ranks(4, [&](int32_t rank) {
    if (rank == 2) return Result<Network>(unknown_error("stays away"));
    if (rank > 0) return join_network(topology_of(rank, 4), environment, store, 0, patience());
    // Rank 0 comes when the others are there, and waits hardly at all.
    EXPECT_TRUE(store.get("horovod/0/member/1", patience()));
    EXPECT_TRUE(store.get("horovod/0/member/3", patience()));
    return join_network(topology_of(0, 4), environment, store, 0,
                        Deadline::after(std::chrono::milliseconds(50)));
  });

  for (const size_t rank : {0, 1, 3}) {
    EXPECT_EQ(networks[rank].status().code(), StatusCode::kTimedOut);
    EXPECT_EQ(networks[rank].status().message(), "rendezvous: timed out waiting for rank 2 of 4");
  }
}

TEST(JoinNetwork, TellsEveryRankThatSizesDiffer) {
  store::MemoryStore store;
  const Environment environment = fake_environment({{"HOROVOD_GLOO_IFACE", "lo"}});

  const auto networks = run_ranks(4, [&](int32_t rank) {
    return join_network(topology_of(rank, rank == 3 ? 8 : 4), environment, store, 0, patience());
  });

  for (const auto& network : networks) {
    EXPECT_THAT(network.status().message(),
                HasSubstr("rank 3 (host host1) says the size is 8, rank 0 (host host0) says the "
                          "size is 4"));
  }
}

TEST(JoinNetwork, NamesBothHostsThatClaimARank) {
  store::MemoryStore store;
  const Environment environment = fake_environment({{"HOROVOD_GLOO_IFACE", "lo"}});

  const auto networks = run_ranks(4, [&](int32_t rank) {
    auto topology = topology_of(rank == 3 ? 1 : rank, 4);
    if (rank == 3) topology.hostname = "intruder";
    return join_network(topology, environment, store, 0, patience());
  });

  for (const auto& network : networks) {
    EXPECT_THAT(network.status().message(), HasSubstr("two processes claim rank 1: one on host "));
    EXPECT_THAT(network.status().message(), HasSubstr("intruder"));
    EXPECT_THAT(network.status().message(), HasSubstr("host0"));
  }
}

TEST(HostIdentity, DependsOnTheNameTheLauncherUses) {
  EXPECT_EQ(host_identity("a"), host_identity("a"));
  EXPECT_NE(host_identity("a"), host_identity("b"));
  EXPECT_EQ(host_identity("a").size(), 64u);
}

}  // namespace
}  // namespace hvd::bootstrap
