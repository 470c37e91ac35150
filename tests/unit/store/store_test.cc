#include "store/store.h"

#include <gmock/gmock.h>

#include <thread>

#include "store/client.h"
#include "store/exchange_store.h"
#include "store/memory_store.h"
#include "store/server_thread.h"
#include "tests/unit/net/sockets.h"

namespace hvd::store {
namespace {

using net::test::connect_plainly;
using net::test::DeadPort;
using net::test::key_of;
using net::test::loopback;
using ::testing::HasSubstr;

Deadline patience() { return Deadline::after(net::test::kPatience); }
Deadline soon() { return Deadline::after(std::chrono::milliseconds(30)); }
// Long enough for a connection to be refused on a machine that is busy.
Deadline a_moment() { return Deadline::after(std::chrono::milliseconds(500)); }

std::unique_ptr<ServerThread> serve(const ServerLimits& limits = {},
                                    const net::Address& where = loopback()) {
  auto server = Server::listen({where}, key_of(1), limits);
  EXPECT_TRUE(server) << server.status().message();
  return std::move(*ServerThread::start(std::move(*server)));
}

Client client_of(const ServerThread& server, uint64_t epoch = 0, int32_t rank = 0) {
  return Client(server.addresses(), key_of(1), {.epoch = epoch, .rank = rank});
}

TEST(StoreServer, GivesBackWhatWasSet) {
  const auto server = serve();
  Client a = client_of(*server), b = client_of(*server);
  const std::string bytes("\0opaque\xff\n", 9);

  ASSERT_TRUE(a.set("key", bytes, patience()));
  ASSERT_TRUE(a.set("empty", "", patience()));

  EXPECT_EQ(*b.get("key", patience()), bytes);
  EXPECT_EQ(*b.get("empty", patience()), "");
}

TEST(StoreServer, LetsAGetWaitForTheSet) {
  const auto server = serve();
  std::string seen;
  std::thread reader([&] { seen = *client_of(*server).get("late", patience()); });

  // Whichever comes first, the reader must see it.
  ASSERT_TRUE(client_of(*server).set("late", "value", patience()));
  reader.join();

  EXPECT_EQ(seen, "value");
}

TEST(StoreServer, EndsAGetAtItsDeadlineAndGoesOn) {
  const auto server = serve();
  Client client = client_of(*server);

  const auto value = client.get("never", soon());

  EXPECT_EQ(value.status().code(), StatusCode::kTimedOut);
  EXPECT_THAT(value.status().message(), HasSubstr("'never'"));
  ASSERT_TRUE(client.set("never", "after all", patience()));
  EXPECT_EQ(*client.get("never", patience()), "after all");
}

TEST(StoreServer, WritesAKeyOnce) {
  const auto server = serve();
  Client client = client_of(*server);
  ASSERT_TRUE(client.set("key", "one", patience()));

  EXPECT_TRUE(client.set("key", "one", patience()));
  EXPECT_EQ(client.set("key", "two", patience()).code(), StatusCode::kPreconditionError);

  EXPECT_EQ(*client.get("key", patience()), "one");
}

TEST(StoreServer, KeepsEpochsApart) {
  const auto server = serve();
  Client first = client_of(*server, 1), second = client_of(*server, 2);
  ASSERT_TRUE(first.set("key", "old", patience()));

  EXPECT_EQ(second.get("key", soon()).status().code(), StatusCode::kTimedOut);
  ASSERT_TRUE(second.set("key", "new", patience()));

  EXPECT_EQ(*first.get("key", patience()), "old");
  EXPECT_EQ(*second.get("key", patience()), "new");
}

TEST(StoreServer, CarriesLargeValues) {
  const auto server = serve();
  const std::string large(5 << 20, 'v');
  ASSERT_TRUE(client_of(*server).set("large", large, patience()));

  EXPECT_EQ(*client_of(*server).get("large", patience()), large);
}

TEST(StoreServer, SaysWhenItIsFull) {
  const auto server = serve({.table = {.bytes = 100, .keys = 2}});
  Client client = client_of(*server);

  EXPECT_EQ(client.set("a", std::string(200, 'x'), patience()).code(), StatusCode::kOutOfMemory);
  EXPECT_TRUE(client.set("a", "1", patience()));
  EXPECT_TRUE(client.set("b", "2", patience()));
  EXPECT_EQ(client.set("c", "3", patience()).code(), StatusCode::kOutOfMemory);
}

TEST(StoreServer, BoundsItsClients) {
  const auto server = serve({.clients = 1});
  Client first = client_of(*server);
  ASSERT_TRUE(first.set("key", "value", patience()));

  const Status refused = client_of(*server).get("key", a_moment()).status();

  EXPECT_EQ(refused.code(), StatusCode::kTimedOut);
  EXPECT_THAT(refused.message(), HasSubstr("no room for another connection"));
}

TEST(StoreServer, RefusesAWrongKey) {
  const auto server = serve();
  Client stranger(server->addresses(), key_of(2), {});

  const Status refused = stranger.set("key", "value", a_moment());

  EXPECT_EQ(refused.code(), StatusCode::kTimedOut);
  EXPECT_THAT(refused.message(), HasSubstr("same key?"));
  EXPECT_EQ(client_of(*server).get("key", soon()).status().code(), StatusCode::kTimedOut);
}

TEST(StoreServer, IgnoresStrangersWhoNeverFinish) {
  const auto server = serve();
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 200; ++i) {
    strangers.push_back(connect_plainly(server->addresses()[0]));
    ASSERT_EQ(send(strangers.back().get(), "GET / HTTP/1.1\r\n", 16, MSG_NOSIGNAL), 16);
  }

  Client client = client_of(*server);

  ASSERT_TRUE(client.set("key", "value", patience()));
  EXPECT_EQ(*client.get("key", patience()), "value");
}

TEST(StoreServer, ServesTheLauncherWithoutAConnection) {
  auto server = *Server::listen({loopback()}, key_of(1));

  EXPECT_EQ(server->set(3, "key", "value"), Outcome::kOk);
  EXPECT_EQ(*server->find(3, "key"), "value");
  EXPECT_EQ(server->find(2, "key"), nullptr);
  server->forget_epochs_before(4);
  EXPECT_EQ(server->find(3, "key"), nullptr);
}

TEST(StoreClient, ConnectsAgainWhenTheServerWasReplaced) {
  auto server = serve({}, net::test::own_loopback());
  const net::Address where = server->addresses()[0];
  Client client = client_of(*server);
  ASSERT_TRUE(client.set("key", "value", patience()));
  server.reset();

  server = serve({}, where);

  ASSERT_TRUE(client.set("key", "again", patience()));
  EXPECT_EQ(*client.get("key", patience()), "again");
}

TEST(StoreClient, ListsTheAddressesItTried) {
  const DeadPort dead;
  Client client({dead.address()}, key_of(1), {});

  const Status failure = client.get("key", a_moment()).status();

  EXPECT_EQ(failure.code(), StatusCode::kTimedOut);
  EXPECT_THAT(failure.message(), HasSubstr("cannot reach the rendezvous store"));
  EXPECT_THAT(failure.message(), HasSubstr(net::to_text(dead.address())));
}

TEST(MemoryStore, BehavesLikeAStore) {
  MemoryStore store;
  std::thread writer([&] { EXPECT_TRUE(store.set("key", "value", patience())); });

  EXPECT_EQ(*store.get("key", patience()), "value");

  writer.join();
  EXPECT_EQ(store.set("key", "other", patience()).code(), StatusCode::kPreconditionError);
  EXPECT_EQ(store.get("none", soon()).status().code(), StatusCode::kTimedOut);
}

// What a front end would hand in, over a MemoryStore.
ExchangeCallbacks callbacks_over(MemoryStore& store) {
  return {.context = &store,
          .set =
              [](void* context, const char* key, const void* value, size_t bytes) {
                auto& memory = *static_cast<MemoryStore*>(context);
                const std::string_view text(static_cast<const char*>(value), bytes);
                return memory.set(key, text, patience()).is_ok() ? 0 : 2;
              },
          .get =
              [](void* context, const char* key, void* buffer, size_t capacity, size_t* bytes,
                 int64_t nanoseconds) {
                auto& memory = *static_cast<MemoryStore*>(context);
                const auto deadline = Deadline::after(Nanoseconds(nanoseconds));
                const auto value = memory.get(key, deadline);
                if (!value) return value.status().code() == StatusCode::kTimedOut ? 1 : 2;
                *bytes = value->size();
                std::copy_n(value->data(), std::min(capacity, value->size()),
                            static_cast<char*>(buffer));
                return 0;
              }};
}

TEST(ExchangeStore, PassesCallsOn) {
  MemoryStore memory;
  ExchangeStore store(callbacks_over(memory), "job1/");
  const std::string large(100'000, 'l');

  ASSERT_TRUE(store.set("small", "value", patience()));
  ASSERT_TRUE(store.set("large", large, patience()));

  EXPECT_EQ(*store.get("small", patience()), "value");
  EXPECT_EQ(*store.get("large", patience()), large);
  EXPECT_EQ(*memory.get("job1/small", patience()), "value");
  EXPECT_EQ(store.get("none", soon()).status().code(), StatusCode::kTimedOut);
  EXPECT_THAT(store.set("small", "other", patience()).message(),
              HasSubstr("'job1/small' failed with code 2"));
}

}  // namespace
}  // namespace hvd::store
