#include "bindings/common/name_queue.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "bindings/common/call.h"

namespace hvd::bindings {
namespace {

// Notes its end; the core is never asked.
class NotedCall final : public Call {
 public:
  NotedCall(std::string name, std::vector<std::string>& ended, std::string label)
      : queue_(std::move(name)), ended_(ended), label_(std::move(label)) {}

  const std::string& queue() const override { return queue_; }
  using Call::finish;

 private:
  void take_results(hvd_handle) override {}
  void fail(hvd_status, const char*) override {}
  void resume() override { finish(); }
  void end() override {
    ended_.push_back(label_);
    delete this;
  }

  const std::string queue_;
  std::vector<std::string>& ended_;
  const std::string label_;
};

TEST(NameQueue, LetsCallsOfOneNameFollowEachOther) {
  std::vector<std::string> ended;
  auto* const first = new NotedCall("0:x", ended, "first");
  auto* const second = new NotedCall("0:x", ended, "second");
  auto* const third = new NotedCall("0:x", ended, "third");
  auto* const other = new NotedCall("1:x", ended, "other");

  EXPECT_TRUE(NameQueue::instance().enter(*first));
  EXPECT_FALSE(NameQueue::instance().enter(*second));
  EXPECT_FALSE(NameQueue::instance().enter(*third));
  EXPECT_TRUE(NameQueue::instance().enter(*other));
  other->finish();
  first->finish();

  EXPECT_EQ(ended, (std::vector<std::string>{"other", "first", "second", "third"}));
}

TEST(NameQueue, IsFreeAgainAfterTheLast) {
  std::vector<std::string> ended;
  for (int i = 0; i < 2; ++i) {
    auto* const call = new NotedCall("0:again", ended, "call");
    EXPECT_TRUE(NameQueue::instance().enter(*call));
    call->finish();
  }
  EXPECT_EQ(ended.size(), 2U);
}

TEST(NameQueue, TakesNoNoticeOfACallThatNeverEntered) {
  std::vector<std::string> ended;
  auto* const head = new NotedCall("0:head", ended, "head");
  auto* const refused = new NotedCall("0:head", ended, "refused");

  EXPECT_TRUE(NameQueue::instance().enter(*head));
  refused->finish();
  head->finish();

  EXPECT_EQ(ended, (std::vector<std::string>{"refused", "head"}));
}

}  // namespace
}  // namespace hvd::bindings
