#include "net/mesh.h"

#include <gmock/gmock.h>
#include <netinet/tcp.h>

#include "base/text.h"
#include "net/pair_mesh.h"
#include "net/tcp_mesh.h"
#include "net/tls_stream.h"
#include "tests/unit/net/sockets.h"

namespace hvd::net {
namespace {

using test::DeadPort;
using test::key_of;
using test::loopback;
using test::send_text;
using test::wait_until;
using ::testing::HasSubstr;

using MaybeStream = Result<std::unique_ptr<Stream>>;

// Meshes of ranks 0 .. n-1 of this process over TCP.
std::vector<std::unique_ptr<Mesh>> tcp_meshes(int32_t size, TcpMeshOptions options = {},
                                              std::vector<Address> dead_first = {}) {
  std::vector<TcpPort> ports;
  std::vector<MeshPeer> peers;
  const Address where = loopback();
  for (int32_t rank = 0; rank < size; ++rank) {
    ports.push_back(*TcpPort::listen({&where, 1}));
    std::vector<Address> addresses = dead_first;
    addresses.push_back(ports.back().addresses()[0]);
    peers.push_back({.host = concat("host", rank), .addresses = addresses});
  }
  std::vector<std::unique_ptr<Mesh>> meshes;
  for (int32_t rank = 0; rank < size; ++rank) {
    options.rank = rank;
    auto mesh =
        make_tcp_mesh(std::move(ports[static_cast<size_t>(rank)]), peers, key_of(1), options);
    EXPECT_TRUE(mesh) << mesh.status().message();
    meshes.push_back(std::move(*mesh));
  }
  return meshes;
}

struct Pair {
  std::unique_ptr<Stream> low, high;
};

// Both ends of a stream between two meshes.
Pair connect(Mesh& low_mesh, int32_t low, Mesh& high_mesh, int32_t high, uint64_t purpose) {
  Pair pair;
  EXPECT_TRUE(wait_until({low_mesh.descriptor(), high_mesh.descriptor()}, [&] {
    low_mesh.poll();
    high_mesh.poll();
    for (auto [mesh, peer, end] :
         {std::tuple(&low_mesh, high, &pair.low), std::tuple(&high_mesh, low, &pair.high)}) {
      if (*end != nullptr) continue;
      MaybeStream stream = mesh->connect(peer, purpose);
      EXPECT_TRUE(stream) << stream.status().message();
      if (stream) *end = std::move(*stream);
    }
    return pair.low != nullptr && pair.high != nullptr;
  }));
  return pair;
}

Result<std::string> receive_text(Stream& stream, size_t count) {
  std::string text(count, '\0');
  size_t done = 0;
  Status failure;
  wait_until({stream.descriptor()}, [&] {
    const iovec part{text.data() + done, count - done};
    const auto got = stream.receive({&part, 1});
    if (!got) failure = got.status();
    if (got) done += *got;
    return !got || done == count;
  });
  if (!failure) return failure;
  text.resize(done);
  return text;
}

TEST(TcpMesh, CarriesBytesBothWays) {
  auto meshes = tcp_meshes(2);

  Pair pair = connect(*meshes[0], 0, *meshes[1], 1, kControlPurpose);

  ASSERT_TRUE(send_text(*pair.low, "hello"));
  ASSERT_TRUE(send_text(*pair.high, "world"));
  EXPECT_EQ(*receive_text(*pair.high, 5), "hello");
  EXPECT_EQ(*receive_text(*pair.low, 5), "world");
  EXPECT_THAT(pair.low->peer(), HasSubstr("rank 1 (host host1, 127.0.0.1:"));
  EXPECT_THAT(pair.high->peer(), HasSubstr("rank 0 (host host0, 127.0.0.1:"));
}

TEST(TcpMesh, CarriesBytesUnderTls) {
  if (const Status loaded = load_tls(); !loaded) GTEST_SKIP() << loaded.message();
  auto meshes = tcp_meshes(2, {.protection = Protection::kAll});
  Pair pair = connect(*meshes[0], 0, *meshes[1], 1, kControlPurpose);
  size_t sent = 0, received = 0;
  std::string text(5, '\0');

  ASSERT_TRUE(wait_until({}, [&] {
    if (sent == 0) sent = *send_text(*pair.high, "hello");
    // TLS needs both ends to look at what comes.
    const iovec part{text.data() + received, text.size() - received};
    received += *pair.low->receive({&part, 1});
    return received == text.size();
  }));

  EXPECT_EQ(text, "hello");
}

TEST(TcpMesh, KeepsPurposesApart) {
  auto meshes = tcp_meshes(2);
  const uint64_t one = data_purpose(0, 0), two = data_purpose(0, 1);
  Pair first = connect(*meshes[0], 0, *meshes[1], 1, one);
  Pair second = connect(*meshes[0], 0, *meshes[1], 1, two);

  ASSERT_TRUE(send_text(*second.low, "two"));
  ASSERT_TRUE(send_text(*first.low, "one"));

  EXPECT_EQ(*receive_text(*first.high, 3), "one");
  EXPECT_EQ(*receive_text(*second.high, 3), "two");
}

TEST(TcpMesh, KeepsWhatDialsInBeforeItIsAskedFor) {
  auto meshes = tcp_meshes(2);
  std::unique_ptr<Stream> low;
  ASSERT_TRUE(wait_until({meshes[0]->descriptor(), meshes[1]->descriptor()}, [&] {
    meshes[1]->poll();
    if (low == nullptr) low = std::move(*meshes[0]->connect(1, 7));
    return low != nullptr;
  }));
  ASSERT_TRUE(send_text(*low, "early"));
  std::unique_ptr<Stream> high;

  ASSERT_TRUE(wait_until({meshes[1]->descriptor()}, [&] {
    meshes[1]->poll();
    high = std::move(*meshes[1]->connect(0, 7));
    return high != nullptr;
  }));

  EXPECT_EQ(*receive_text(*high, 5), "early");
}

TEST(TcpMesh, ConnectsEveryPairOfFour) {
  auto meshes = tcp_meshes(4);
  for (int32_t low = 0; low < 4; ++low) {
    for (int32_t high = low + 1; high < 4; ++high) {
      Pair pair = connect(*meshes[static_cast<size_t>(low)], low,
                          *meshes[static_cast<size_t>(high)], high, kControlPurpose);
      ASSERT_TRUE(send_text(*pair.high, "x"));
      EXPECT_EQ(*receive_text(*pair.low, 1), "x");
    }
  }
}

TEST(TcpMesh, CanOpenAPurposeAgain) {
  auto meshes = tcp_meshes(2);
  { Pair gone = connect(*meshes[0], 0, *meshes[1], 1, 7); }

  Pair again = connect(*meshes[0], 0, *meshes[1], 1, 7);

  ASSERT_TRUE(send_text(*again.low, "again"));
  EXPECT_EQ(*receive_text(*again.high, 5), "again");
}

TEST(TcpMesh, GoesAroundADeadAddress) {
  const DeadPort dead;
  auto meshes = tcp_meshes(2, {}, {dead.address()});

  Pair pair = connect(*meshes[0], 0, *meshes[1], 1, kControlPurpose);

  ASSERT_TRUE(send_text(*pair.low, "x"));
  EXPECT_EQ(*receive_text(*pair.high, 1), "x");
}

// The first address swallows connections without an answer, as behind a firewall.
TEST(TcpMesh, PaysForASilentAddressOnce) {
  const Address where = loopback();
  const auto silent = *Listener::listen({&where, 1});
  const auto patient = std::chrono::hours(1);  // nothing would move on from it by itself
  auto meshes = tcp_meshes(2,
                           {.dial = {.next_address_after = std::chrono::milliseconds(1),
                                     .handshake_time = patient,
                                     .contested_handshake_time = std::chrono::milliseconds(20)}},
                           {silent.addresses()[0]});
  Pair first = connect(*meshes[0], 0, *meshes[1], 1, 1);
  size_t tried = 0;
  while (Listener::accept(silent.sockets()[0]).socket.valid()) ++tried;
  ASSERT_GE(tried, 1u);

  Pair second = connect(*meshes[0], 0, *meshes[1], 1, 2);

  EXPECT_FALSE(Listener::accept(silent.sockets()[0]).socket.valid());
}

TEST(TcpMesh, NamesThePeerWhoseStreamEnds) {
  auto meshes = tcp_meshes(2);
  Pair pair = connect(*meshes[0], 0, *meshes[1], 1, kControlPurpose);
  pair.high.reset();

  const auto got = receive_text(*pair.low, 1);

  EXPECT_EQ(got.status().code(), StatusCode::kPeerLost);
  EXPECT_THAT(got.status().message(), HasSubstr("rank 1 (host host1, "));
  EXPECT_EQ(receive_text(*pair.low, 1).status(), got.status());
}

TEST(TcpMesh, GivesUpOnAPeerThatNeverDials) {
  auto meshes = tcp_meshes(2, {.wait_time = std::chrono::milliseconds(1)});
  Status failure;

  ASSERT_TRUE(wait_until({}, [&] {
    const auto stream = meshes[1]->connect(0, kControlPurpose);
    failure = stream.status();
    return !stream;
  }));

  EXPECT_EQ(failure.code(), StatusCode::kTimedOut);
  EXPECT_THAT(failure.message(), HasSubstr("rank 0 (host host0) did not open a stream to rank 1"));
}

TEST(TcpMesh, GivesUpOnAPeerThatCannotBeReached) {
  auto meshes = tcp_meshes(2, {.wait_time = std::chrono::milliseconds(100)});
  meshes[1].reset();
  Status failure;

  ASSERT_TRUE(wait_until({meshes[0]->descriptor()}, [&] {
    meshes[0]->poll();
    const auto stream = meshes[0]->connect(1, kControlPurpose);
    failure = stream.status();
    return !stream;
  }));

  EXPECT_EQ(failure.code(), StatusCode::kTimedOut);
  EXPECT_THAT(failure.message(), HasSubstr("cannot reach rank 1 (host host1)"));
  EXPECT_THAT(failure.message(), HasSubstr("Connection refused"));
}

TEST(TcpMesh, RefusesPeersThatDoNotExist) {
  auto meshes = tcp_meshes(2);
  for (const int32_t peer : {-1, 0, 2}) {
    EXPECT_EQ(meshes[0]->connect(peer, 0).status().code(), StatusCode::kInvalidArgument);
  }
}

TEST(TcpMesh, PreparesItsSockets) {
  auto meshes = tcp_meshes(2, {.congestion_control = "reno"});
  Pair pair = connect(*meshes[0], 0, *meshes[1], 1, data_purpose(0, 0));
  for (const Stream* end : {pair.low.get(), pair.high.get()}) {
    int value = 0;
    socklen_t length = sizeof value;
    EXPECT_EQ(getsockopt(end->descriptor(), IPPROTO_TCP, TCP_NODELAY, &value, &length), 0);
    EXPECT_NE(value, 0);
    // A receiver that computes for a while must not look dead.
    EXPECT_EQ(getsockopt(end->descriptor(), IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &length), 0);
    EXPECT_EQ(value, 0);
    char name[16] = {};
    length = sizeof name;
    EXPECT_EQ(getsockopt(end->descriptor(), IPPROTO_TCP, TCP_CONGESTION, name, &length), 0);
    EXPECT_STREQ(name, "reno");
  }
}

TEST(TcpMesh, GivesAHostThatDoesNotAnswerSoMuchTime) {
  auto meshes = tcp_meshes(2, {.control_user_timeout = std::chrono::milliseconds(1234)});
  Pair pair = connect(*meshes[0], 0, *meshes[1], 1, kControlPurpose);
  for (const Stream* end : {pair.low.get(), pair.high.get()}) {
    int value = 0;
    socklen_t length = sizeof value;
    EXPECT_EQ(getsockopt(end->descriptor(), IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &length), 0);
    EXPECT_EQ(value, 1234);
  }
}

TEST(TcpMesh, NamesACongestionControlThatDoesNotExist) {
  auto meshes = tcp_meshes(2, {.congestion_control = "warp"});
  Status failure;

  ASSERT_TRUE(wait_until({meshes[0]->descriptor(), meshes[1]->descriptor()}, [&] {
    meshes[1]->poll();
    failure = meshes[0]->connect(1, 0).status();
    return !failure.is_ok();
  }));

  EXPECT_THAT(failure.message(), HasSubstr("HOROVOD_TCP_CONGESTION 'warp'"));
}

TEST(TcpStream, TakesOnlyWhatFitsAndGoesOnLater) {
  auto meshes = tcp_meshes(2);
  Pair pair = connect(*meshes[0], 0, *meshes[1], 1, data_purpose(0, 0));
  const std::string block(1 << 20, 'b');
  size_t sent = 0;
  for (;;) {
    const auto one = send_text(*pair.low, block);
    ASSERT_TRUE(one);
    if (*one == 0) break;
    sent += *one;
  }

  EXPECT_EQ(receive_text(*pair.high, sent)->size(), sent);
  EXPECT_GT(*send_text(*pair.low, block), 0u);
}

TEST(PairMesh, CarriesBytesBothWays) {
  PairNetwork network(2);
  const auto zero = network.mesh(0), one = network.mesh(1);
  Pair pair = connect(*zero, 0, *one, 1, kControlPurpose);

  ASSERT_TRUE(send_text(*pair.low, "a"));
  ASSERT_TRUE(send_text(*pair.high, "b"));

  EXPECT_EQ(*receive_text(*pair.high, 1), "a");
  EXPECT_EQ(*receive_text(*pair.low, 1), "b");
}

TEST(PairMesh, ShowsAClosedLinkAtBothEnds) {
  PairNetwork network(2);
  const auto zero = network.mesh(0), one = network.mesh(1);
  Pair pair = connect(*zero, 0, *one, 1, kControlPurpose);

  network.cut(1, 0, Cut::kClosed);

  EXPECT_EQ(receive_text(*pair.low, 1).status().code(), StatusCode::kPeerLost);
  EXPECT_EQ(receive_text(*pair.high, 1).status().code(), StatusCode::kPeerLost);
  EXPECT_EQ(send_text(*pair.low, "x").status().code(), StatusCode::kPeerLost);
  EXPECT_EQ(zero->connect(1, 5).status().code(), StatusCode::kPeerLost);
}

TEST(PairMesh, LetsNothingThroughASilentLink) {
  PairNetwork network(3);
  const auto zero = network.mesh(0), one = network.mesh(1), two = network.mesh(2);
  Pair cut = connect(*zero, 0, *one, 1, kControlPurpose);
  Pair whole = connect(*zero, 0, *two, 2, kControlPurpose);
  ASSERT_TRUE(send_text(*cut.low, "lost"));

  network.cut(0, 1, Cut::kSilent);

  EXPECT_EQ(*send_text(*cut.low, "more"), 4u);
  char byte;
  const iovec part{&byte, 1};
  EXPECT_EQ(*cut.high->receive({&part, 1}), 0u);
  pollfd item{cut.high->descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&item, 1, 0), 0);
  EXPECT_EQ(*zero->connect(1, 5), nullptr);
  ASSERT_TRUE(send_text(*whole.low, "x"));
  EXPECT_EQ(*receive_text(*whole.high, 1), "x");
}

}  // namespace
}  // namespace hvd::net
