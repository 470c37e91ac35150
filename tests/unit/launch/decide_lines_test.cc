// What a cluster engine's driver and `horovodrun --decide` say to each other.
#include "launch/job/decide_lines.h"

#include <gmock/gmock.h>

#include "base/text.h"

namespace hvd::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DecideLines, ReadsHosts) {
  const auto event = parse_event("hosts 10.0.0.1/ab:2 fd00::1:3");
  ASSERT_TRUE(event.is_ok()) << event.status().message();
  EXPECT_THAT(std::get<std::vector<HostSlots>>(*event),
              ElementsAre(HostSlots{"10.0.0.1/ab", 2}, HostSlots{"fd00::1", 3}));
  const auto none = parse_event("hosts");
  ASSERT_TRUE(none.is_ok());
  EXPECT_TRUE(std::get<std::vector<HostSlots>>(*none).empty());
}

TEST(DecideLines, ReadsWhatAWorkerSaid) {
  const elastic::ToLauncher ready = elastic::Ready{.epoch = 3};
  std::string packed;
  for (const char byte : elastic::encode(ready)) {
    constexpr char kDigits[] = "0123456789abcdef";
    packed += kDigits[static_cast<uint8_t>(byte) >> 4];
    packed += kDigits[static_cast<uint8_t>(byte) & 15];
  }
  const auto same = parse_event(concat("message 4 ", packed));
  ASSERT_TRUE(same.is_ok()) << same.status().message();
  EXPECT_EQ(std::get<WorkerMessage>(*same).worker, 4);
  EXPECT_EQ(std::get<WorkerMessage>(*same).message, ready);
  EXPECT_FALSE(parse_event(concat("message 4 ", packed, "00")).is_ok());
}

TEST(DecideLines, ReadsHowAWorkerEnded) {
  const auto event = parse_event("end 7 failure 137 was killed by signal 9 (Killed)");
  ASSERT_TRUE(event.is_ok()) << event.status().message();
  const auto& end = std::get<WorkerEnd>(*event);
  EXPECT_EQ(end.worker, 7);
  EXPECT_FALSE(end.is_success);
  EXPECT_EQ(end.exit_code, 137);
  EXPECT_EQ(end.how, "was killed by signal 9 (Killed)");
  EXPECT_TRUE(std::get<WorkerEnd>(*parse_event("end 0 success 0 has finished")).is_success);
}

TEST(DecideLines, SaysWhatIsWrongWithALine) {
  const std::pair<const char*, const char*> lines[] = {
      {"", "expected hosts, message or end, got ''"},
      {"hello 1", "expected hosts, message or end, got 'hello'"},
      {"hosts a", "expected host:slots, got 'a'"},
      {"hosts a:-1", "-1"},
      {"hosts :1", "expected host:slots, got ':1'"},
      {"message x 00", "x"},
      {"message 1 0g", "hexadecimal"},
      {"message 1 010", "hexadecimal"},
      {"message 1 99", "damaged"},
      {"end -1 success 0", "-1"},
      {"end 1 well 0", "expected success or failure, got 'well'"},
      {"end 1 failure 256", "256"},
  };
  for (const auto& [line, text] : lines) {
    const auto event = parse_event(line);
    ASSERT_FALSE(event.is_ok()) << line;
    EXPECT_THAT(event.status().message(), HasSubstr(text)) << line;
  }
}

TEST(DecideLines, SaysWhatIsToBeDone) {
  EXPECT_EQ(
      action_lines({.kind = ActionKind::kStart, .worker = 2, .host = "h\"1", .slot = 1}, 0, 0),
      "{\"do\": \"start\", \"worker\": 2, \"host\": \"h\\\"1\", \"slot\": 1}\n");
  const Action kill{
      .kind = ActionKind::kKill, .worker = 1, .event = "killed", .reason = "it is late"};
  EXPECT_EQ(action_lines(kill, 5, 0),
            "{\"do\": \"say\", \"worker\": 1, \"event\": \"killed\", \"epoch\": 5, \"reason\": "
            "\"it is late\"}\n{\"do\": \"kill\", \"worker\": 1, \"reason\": \"it is late\"}\n");
  EXPECT_EQ(action_lines({.kind = ActionKind::kEnd, .exit_code = 3, .reason = "x"}, 5, 0),
            "{\"do\": \"end\", \"exit_code\": 3, \"reason\": \"x\"}\n");
  const std::string assign =
      action_lines({.kind = ActionKind::kAssign,
                    .worker = 0,
                    .place = {.epoch = 2, .rank = 1, .size = 3, .local_size = 3}},
                   2, 0);
  EXPECT_THAT(assign, HasSubstr("\"epoch\": 2, \"rank\": 1, \"size\": 3}\n"));
  EXPECT_EQ(store_line("10.0.0.1:5"), "{\"do\": \"store\", \"addresses\": \"10.0.0.1:5\"}\n");
}

}  // namespace
}  // namespace hvd::launch
