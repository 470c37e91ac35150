#include "launch/link/agent_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "launch/doctor/doctor_facts.h"
#include "launch/doctor/doctor_report.h"

namespace hvd::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

StartMessage sample_start() {
  return {.key = std::string("\0\1key", 5),
          .working_directory = "/work",
          .command = {"python", "", "a b"},
          .environment = {"A=1", "B=x\ny"},
          .ranks = {{.rank = 4, .variables = {"HOROVOD_RANK=4"}}, {.rank = 5, .variables = {}}},
          .termination_grace = std::chrono::milliseconds(1500)};
}

TEST(LaunchAgentMessage, AStartSurvivesTheJourney) {
  const auto message = decode_start(encode(sample_start()));

  ASSERT_TRUE(message.is_ok()) << message.status().message();
  EXPECT_EQ(message->key, sample_start().key);
  EXPECT_EQ(message->working_directory, "/work");
  EXPECT_THAT(message->command, ElementsAre("python", "", "a b"));
  EXPECT_THAT(message->environment, ElementsAre("A=1", "B=x\ny"));
  ASSERT_EQ(message->ranks.size(), 2U);
  EXPECT_EQ(message->ranks[1].rank, 5);
  EXPECT_THAT(message->ranks[0].variables, ElementsAre("HOROVOD_RANK=4"));
  EXPECT_EQ(message->termination_grace, std::chrono::milliseconds(1500));
}

TEST(LaunchAgentMessage, AnExitSurvivesTheJourney) {
  const WorkerExit exit{.rank = 7,
                        .status = {.code = 0, .signal = 9, .core_dumped = true, .exec_error = 2},
                        .was_asked = true,
                        .note = FailureNote{.rank = 2, .text = "rank 2 has ended"}};

  const auto message = decode_exit(encode(exit));

  ASSERT_TRUE(message.is_ok());
  EXPECT_EQ(message->rank, 7);
  EXPECT_EQ(message->status, exit.status);
  EXPECT_TRUE(message->was_asked);
  EXPECT_EQ(message->note, exit.note);
}

TEST(LaunchAgentMessage, AnExitWithAnImpossibleNoteIsRefused) {
  const auto with_note = [](const FailureNote& note) {
    return decode_exit(encode(WorkerExit{.rank = 7, .note = note})).is_ok();
  };

  EXPECT_FALSE(with_note({.rank = 1, .code = StatusCode::kOk}));
  EXPECT_FALSE(with_note({.rank = 1, .code = static_cast<StatusCode>(99)}));
  EXPECT_FALSE(with_note({.rank = 1, .text = std::string(kMaxFailureTextBytes + 1, 'x')}));
  EXPECT_TRUE(with_note({.rank = 1, .text = std::string(kMaxFailureTextBytes, 'x')}));
}

TEST(LaunchAgentMessage, DamageIsNoticedWhereverItIs) {
  const std::string start = encode(sample_start());
  for (size_t size = 0; size < start.size(); ++size) {
    EXPECT_FALSE(decode_start(start.substr(0, size)).is_ok()) << size;
  }
  EXPECT_FALSE(decode_start(start + "x").is_ok());
  EXPECT_FALSE(decode_exit("").is_ok());
  EXPECT_FALSE(decode_hello("\xff\xff\xff\xff").is_ok());
  EXPECT_FALSE(decode_output("abc").is_ok());
  EXPECT_FALSE(decode_facts("\xff\xff\xff\xff").is_ok());
  EXPECT_FALSE(decode_probe("x").is_ok());
}

TEST(LaunchFrameReader, CutsAStreamHoweverItArrives) {
  const std::string stream = concat("motd\n", kAgentMagic, encode_frame(FrameKind::kReady, ""),
                                    encode_frame(FrameKind::kProblem, "text"));
  for (size_t step : {size_t{1}, size_t{7}, stream.size()}) {
    FrameReader reader(true);
    std::vector<std::string> payloads;
    for (size_t at = 0; at < stream.size(); at += step) {
      reader.append(std::string_view(stream).substr(at, step));
      while (true) {
        const auto frame = reader.next();
        ASSERT_TRUE(frame.is_ok());
        if (!*frame) break;
        payloads.push_back((*frame)->payload);
      }
    }
    EXPECT_THAT(payloads, ElementsAre("", "text")) << step;
    EXPECT_EQ(reader.noise(), "motd\n");
  }
}

TEST(LaunchFrameReader, RefusesWhatIsTooLong) {
  FrameReader frames(false);
  frames.append("\xff\xff\xff\xff\x01");
  FrameReader noise(true);
  noise.append(std::string(kMaxNoiseBytes + 1, 'x'));

  EXPECT_THAT(frames.next().status().message(), HasSubstr("too long"));
  EXPECT_THAT(noise.next().status().message(), HasSubstr("something else than horovodrun"));
}

TEST(LaunchDoctorReport, EveryProblemGetsItsSentence) {
  DoctorFindings findings;
  const HostFacts good{.facts = {{"Machine", "2 processors", ""}}, .probe_addresses = {}};
  const HostFacts poor{.facts = {{"Shared memory", "64 MiB", shared_memory_advice(64 << 20)},
                                 {"Limits", "256", open_files_advice(256)}},
                       .probe_addresses = {}};
  findings.hosts = {{.name = "a", .is_local = true, .failure = {}, .facts = good},
                    {.name = "b", .is_local = false, .failure = {}, .facts = poor},
                    {.name = "c", .is_local = false, .failure = "ssh could not connect"}};
  findings.probes[{0, 1}] = {.address = "10.0.0.2:1",
                             .failure = {},
                             .round_trip = std::chrono::microseconds(80),
                             .bytes_per_second = 1250000000};
  findings.probes[{1, 0}] = {.address = {}, .failure = "connection refused"};

  const std::string text = doctor_report(findings) + doctor_advice(findings);

  EXPECT_FALSE(is_usable(findings));
  EXPECT_THAT(text, HasSubstr("80 us, 1.2 GB/s"));
  EXPECT_THAT(text, HasSubstr("host c cannot be used: ssh could not connect"));
  EXPECT_THAT(text, HasSubstr("host b: little shared memory"));
  EXPECT_THAT(text, HasSubstr("host b: few open files"));
  EXPECT_THAT(text, HasSubstr("host b does not reach host a: connection refused; open the ports"));
  EXPECT_THAT(text, Not(HasSubstr("\n  host a:")));
}

TEST(LaunchDoctorReport, WithoutProblemsItSaysSo) {
  DoctorFindings findings;
  findings.hosts = {{.name = "a",
                     .is_local = true,
                     .failure = {},
                     .facts = HostFacts{.facts = {{"Machine", "x", ""}}, .probe_addresses = {}}}};

  EXPECT_TRUE(is_usable(findings));
  EXPECT_THAT(doctor_advice(findings), HasSubstr("no problems found"));
  EXPECT_THAT(doctor_report(findings), Not(HasSubstr("reachability")));
}

}  // namespace
}  // namespace hvd::launch
