// The parts of the Gloo backend that need no Gloo: its thread, the cards of a meeting, how works
// become calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>

#include "collective/gloo/exchange.h"
#include "collective/gloo/meeting.h"
#include "collective/gloo/worker.h"
#include "collective/select.h"

namespace hvd::collective::gloo {
namespace {

using ::testing::HasSubstr;

bool is_readable(int descriptor, int milliseconds) {
  pollfd watch{descriptor, POLLIN, 0};
  return ::poll(&watch, 1, milliseconds) == 1;
}

TEST(GlooWorker, TellsByItsDescriptorThatACallIsDone) {
  Worker worker;
  for (int round = 0; round < 3; ++round) {
    std::atomic<bool> may_go{false};
    worker.start([&] {
      may_go.wait(false);
      return Status(StatusCode::kAborted, "so it ends");
    });
    EXPECT_FALSE(worker.is_done());
    EXPECT_FALSE(is_readable(worker.descriptor(), 0));
    may_go.store(true);
    may_go.notify_all();
    EXPECT_TRUE(is_readable(worker.descriptor(), 30000));
    EXPECT_TRUE(worker.is_done());
    EXPECT_EQ(worker.take().message(), "so it ends");
    EXPECT_TRUE(worker.is_idle());
    EXPECT_FALSE(is_readable(worker.descriptor(), 0));
  }
}

TEST(GlooWorker, AWaitEndsAtItsDeadlineAndAnExceptionIsAStatus) {
  Worker worker;
  std::atomic<bool> may_go{false};
  worker.start([&]() -> Status {
    may_go.wait(false);
    throw std::bad_alloc();
  });
  EXPECT_FALSE(worker.wait(Deadline::after(std::chrono::milliseconds(1))));
  may_go.store(true);
  may_go.notify_all();
  EXPECT_TRUE(worker.wait(Deadline::after(std::chrono::seconds(30))));
  EXPECT_FALSE(worker.take().is_ok());
}

TEST(GlooMeeting, ACardCarriesAnAddressOrWhyThereIsNone) {
  std::byte card[kCardBytes];
  write_card(card, std::string("address\0with zeros", 18));
  EXPECT_EQ(*read_card(card), std::string("address\0with zeros", 18));
  write_card(card, Result<std::string>(unknown_error("no port is free")));
  EXPECT_THAT(read_card(card).status().message(), HasSubstr("no port is free"));
  write_card(card, std::string(2 * kCardBytes, 'x'));
  EXPECT_FALSE(read_card(card)) << "half an address is none";
  std::fill(std::begin(card), std::end(card), std::byte{0xff});
  EXPECT_EQ(read_card(card).status().code(), StatusCode::kCorrupted);
}

TEST(GlooExchange, OneBlockForAllIsABroadcast) {
  Exchange exchange;
  exchange.receive_bytes = {0, 0, 8};
  EXPECT_EQ(only_sender(exchange), 2);
  exchange.receive_bytes = {4, 0, 8};
  EXPECT_EQ(only_sender(exchange), std::nullopt);
}

TEST(GlooSelection, BytesThatMayBeObjectsGoWhereTheyAreProtected) {
  const Capabilities open = {{.kind = WorkKind::kExchange, .takes_objects = false}};
  const Capabilities guarded = {{.kind = WorkKind::kExchange}};
  const Candidate candidates[] = {{"gloo", &open}, {"hosts", &guarded}};
  Work work;
  work.reset(WorkKind::kExchange);
  work.exchanges.emplace_back();
  EXPECT_EQ(select(traits_of(work), candidates), 0u);
  work.exchanges.back().moves_bytes = true;
  EXPECT_EQ(select(traits_of(work), candidates), 1u);
  EXPECT_THAT(explain_route(traits_of(work), candidates),
              HasSubstr("gloo does not protect bytes that may be objects"));
}

}  // namespace
}  // namespace hvd::collective::gloo
