// Elastic jobs without ssh: every host runs the same command, one of them launches, the others join
// it whenever they come (--join).
#include <sys/stat.h>

#include "tests/process/cable_listener.h"
#include "tests/process/elastic_fixture.h"
#include "tests/process/network_hosts.h"

namespace hvd::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kLaunchAddress[] = "10.99.0.100";  // of the test's own network

class ElasticJoin : public ElasticJobs {
 protected:
  static void SetUpTestSuite() {
    hosts_ = std::make_unique<NetworkHosts>();
    if (hosts_->create({"hosta", "hostb"})) return;
    problem_ = hosts_->problem();
    hosts_.reset();
  }
  static void TearDownTestSuite() { hosts_.reset(); }
  void SetUp() override {
    if (!hosts_) GTEST_SKIP() << "hosts as network namespaces: " << problem_;
    write_key("key", 'k');
    port_ = free_port();
  }

  void write_key(const std::string& name, char byte) const {
    std::ofstream(directory_ / name) << std::string(32, byte);
    ::chmod((directory_ / name).c_str(), 0600);
  }
  static int free_port() {
    const UniqueFd probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in name{};
    name.sin_family = AF_INET;
    ::inet_pton(AF_INET, kLaunchAddress, &name.sin_addr);
    socklen_t size = sizeof name;
    if (::bind(probe.get(), reinterpret_cast<sockaddr*>(&name), size) != 0) return 0;
    ::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&name), &size);
    return ntohs(name.sin_port);
  }

  // The command that every host runs.
  std::vector<std::string> words(std::vector<std::string> options,
                                 const std::string& key = "key") const {
    for (const std::string& word : {std::string("--join"), concat(place_, ":", port_),
                                    std::string("--key-file"), directory_ / key}) {
      options.push_back(word);
    }
    return command(std::move(options));
  }
  std::unique_ptr<LaunchedJob> launch(const std::vector<std::string>& options) const {
    return std::make_unique<LaunchedJob>(words(options));
  }
  std::unique_ptr<LaunchedJob> join(const std::string& host,
                                    const std::vector<std::string>& options,
                                    const std::string& key = "key") const {
    std::vector<std::string> all = words(options, key);
    all.insert(all.begin(), launcher_path());
    all = hosts_->enter(host, all);
    const std::string program = all.front();
    all.erase(all.begin());
    return std::make_unique<LaunchedJob>(all, LaunchedJob::Settings{.program = program});
  }

  static std::unique_ptr<NetworkHosts> hosts_;
  static std::string problem_;
  std::string place_ = kLaunchAddress;
  int port_ = 0;
};
std::unique_ptr<NetworkHosts> ElasticJoin::hosts_;
std::string ElasticJoin::problem_;

TEST_F(ElasticJoin, HostsJoinBeforeTheJobStartsAndWhileItRuns) {
  const std::vector<std::string> options = {"-np", "2", "--min-np", "1"};
  const auto first = join("hosta", options);
  const auto job = launch(options);
  ASSERT_TRUE(wait_for_world(*job, 1, 2)) << job->err() << first->err();

  const auto second = join("hostb", {"-np", "2", "--min-np", "1", "--slots-per-host", "2"});
  ASSERT_TRUE(job->wait_for("rank 3 of 4 is ")) << job->err() << second->err();
  stop();

  EXPECT_EQ(job->wait(), 0) << job->err();
  EXPECT_EQ(first->wait(), 0) << first->err();
  EXPECT_EQ(second->wait(), 0) << second->err();
  EXPECT_THAT(job->err(), HasSubstr("host hostb with 2 slots was added"));
  EXPECT_THAT(first->err(), HasSubstr("host hosta has joined the job at "));
  EXPECT_THAT(second->err(), HasSubstr("is over for host hostb: the workers have finished"));
  EXPECT_THAT(second->out(), Not(HasSubstr("epoch"))) << "output is shown where it was launched";
}

// Not what the launcher tells the host to run, nor what the worker there prints, nor the key that
// opened the connection.
TEST_F(ElasticJoin, NothingThatPassesIsInTheClear) {
  CableListener listener;
  ASSERT_TRUE(listener.start("v-hosta"));
  const std::vector<std::string> options = {"-np", "2", "--min-np", "1"};
  const auto host = join("hosta", options);
  const auto job = launch(options);
  ASSERT_TRUE(wait_for_world(*job, 1, 2)) << job->err() << host->err();
  ASSERT_TRUE(job->wait_for("rank 1 of 2 is ")) << job->err() << host->err();
  stop();

  EXPECT_EQ(job->wait(), 0) << job->err();
  EXPECT_EQ(host->wait(), 0) << host->err();
  const std::string& heard = listener.heard();
  EXPECT_GT(heard.size(), 5000u) << "this listener is deaf";
  for (const std::string& secret :
       {std::string(32, 'k'), std::string("hosta"), std::string(" of 2 is "),
        std::string("HOROVOD_"), std::string(directory_ / "")}) {
    EXPECT_EQ(heard.find(secret), std::string::npos) << "'" << secret << "' is in the clear";
  }
}

// The third host stands by until there is room for it. That a host went is no fault of its own: it
// may come back.
TEST_F(ElasticJoin, AHostThatIsKilledIsReplacedAndMayComeBack) {
  const std::vector<std::string> options = {"-np", "2", "--min-np", "1", "--max-np", "2"};
  const auto job = launch(options);
  const auto first = join("hosta", options);
  ASSERT_TRUE(wait_for_world(*job, 1, 2)) << job->err() << first->err();
  const ProcessWatch worker(process(*job, 1, 1, 2));
  auto spare = join("hostb", options);
  ASSERT_TRUE(job->wait_for_error("host hostb with 1 slot was added")) << spare->err();

  first->send(SIGKILL);
  ASSERT_TRUE(job->wait_for("of 2 is ", 4)) << job->err();
  EXPECT_TRUE(worker.ends()) << "no worker stays behind";
  const auto again = join("hosta", options);
  ASSERT_TRUE(job->wait_for_error("host hosta with 1 slot was added", 2)) << again->err();
  spare->send(SIGKILL);
  ASSERT_TRUE(job->wait_for("of 2 is ", 6)) << job->err();
  stop();

  EXPECT_EQ(job->wait(), 0) << job->err();
  EXPECT_EQ(again->wait(), 0) << again->err();
  EXPECT_THAT(job->err(), HasSubstr("host hosta was removed"));
  EXPECT_THAT(job->err(), Not(HasSubstr("gets no new workers")));
}

TEST_F(ElasticJoin, SigtermToAHostIsAPlannedLeave) {
  const std::vector<std::string> options = {"-np", "2", "--min-np", "1"};
  const auto job = launch(options);
  const auto host = join("hosta", options);
  ASSERT_TRUE(wait_for_world(*job, 1, 2)) << job->err() << host->err();

  host->send(SIGTERM);
  ASSERT_TRUE(wait_for_world(*job, 2, 1)) << job->err();
  EXPECT_EQ(host->wait(), 0) << host->err();
  stop();

  EXPECT_EQ(job->wait(), 0) << job->err();
  EXPECT_THAT(job->err(), HasSubstr("rank 1 on hosta had to go: host hosta was removed"));
  EXPECT_THAT(job->err(), Not(HasSubstr("was lost")));
  EXPECT_THAT(host->err(), HasSubstr("this host has left the job"));
}

TEST_F(ElasticJoin, WhoMayNotJoinIsToldWhy) {
  write_key("other", 'o');
  const std::vector<std::string> options = {"-np", "1", "--min-np", "1", "--start-timeout", "20"};
  const auto job = launch(options);
  ASSERT_TRUE(wait_for_world(*job, 1, 1)) << job->err();

  const auto stranger = join("hosta", options, "other");
  EXPECT_EQ(stranger->wait(), 125);
  EXPECT_THAT(stranger->err(), HasSubstr("has another key than this process"));

  const auto host = join("hosta", options);
  ASSERT_TRUE(wait_for_world(*job, 2, 2)) << job->err();
  const auto twin = join("hosta", options);
  EXPECT_EQ(twin->wait(), 125);
  EXPECT_THAT(twin->err(), HasSubstr("does not let this host join: host hosta takes part already"));
  const auto rival = launch(options);
  EXPECT_EQ(rival->wait(), 125);
  EXPECT_THAT(rival->err(), HasSubstr("where the job is launched: cannot listen on any address"));
  EXPECT_THAT(rival->err(), HasSubstr("Address already in use"));
  stop();

  EXPECT_EQ(job->wait(), 0) << job->err();
  EXPECT_EQ(host->wait(), 0) << host->err();
}

TEST_F(ElasticJoin, AHostWithoutALauncherGivesUpInTime) {
  const auto host = join("hosta", {"-np", "1", "--start-timeout", "1"});

  EXPECT_EQ(host->wait(), 125);
  EXPECT_THAT(host->err(), HasSubstr("nobody launches a job at 10.99.0.100:"));
  EXPECT_THAT(host->err(), HasSubstr("within 1 s (--start-timeout)"));
}

// The names that a host knows are those of a file of the test.
class ElasticJoinByName : public ElasticJoin {
 protected:
  void SetUp() override {
    ElasticJoin::SetUp();
    if (IsSkipped()) return;
    place_ = "meeting";
    know("");
    ASSERT_TRUE(
        hosts_->run_on("hosta", concat("mount --bind ", directory_ / "names", " /etc/hosts")));
  }
  void TearDown() override {
    if (hosts_) hosts_->run_on("hosta", "umount /etc/hosts");
  }
  // In place: the mount is of the file, not of its name.
  void know(const std::string& text) const { std::ofstream(directory_ / "names") << text; }
};

TEST_F(ElasticJoinByName, AHostWhoseNameBecomesKnownLateLaunches) {
  const auto job = join("hosta", {"-np", "1", "--start-timeout", "60"});
  ASSERT_TRUE(job->wait_for_error("meeting has no address yet")) << job->err();

  know(concat(hosts_->address("hosta"), " meeting\n"));
  ASSERT_TRUE(wait_for_world(*job, 1, 1)) << job->err();
  stop();

  EXPECT_EQ(job->wait(), 0) << job->err();
  EXPECT_THAT(job->err(), HasSubstr("meeting is this host, hosta: it launches the job"));
}

TEST_F(ElasticJoinByName, AHostWhoseNameStillBelongsToAnotherOneLaunchesWhenItIsItsOwn) {
  know("10.99.0.77 meeting\n");
  const auto job = join("hosta", {"-np", "1", "--start-timeout", "60"});
  ASSERT_TRUE(job->wait_for_error("meeting is 10.99.0.77")) << job->err();

  know(concat(hosts_->address("hosta"), " meeting\n"));
  ASSERT_TRUE(wait_for_world(*job, 1, 1)) << job->err();
  stop();

  EXPECT_EQ(job->wait(), 0) << job->err();
}

TEST_F(ElasticJoinByName, WhoFindsNobodyIsToldBothReadings) {
  const auto nameless = join("hosta", {"-np", "1", "--start-timeout", "1"});
  EXPECT_EQ(nameless->wait(), 125);
  EXPECT_THAT(nameless->err(), HasSubstr("cannot resolve 'meeting'"));
  EXPECT_THAT(nameless->err(), HasSubstr("host hosta wanted to join, since the name says nothing"));

  know("10.99.0.77 meeting\n");
  const auto stranger = join("hosta", {"-np", "1", "--start-timeout", "1"});
  EXPECT_EQ(stranger->wait(), 125);
  EXPECT_THAT(stranger->err(), HasSubstr("since meeting is 10.99.0.77:"));
  EXPECT_THAT(stranger->err(), HasSubstr("if it is this one, give --join its name"));
}

// The launcher has room for hosts that come later; its workers have the limit of before.
TEST_F(ElasticJoin, TheLimitOfOpenFilesIsRaisedForHostsThatMayJoin) {
  const std::string script =
      concat("ulimit -Sn 200; exec ", launcher_path(), " -np 1 --max-np 100 --join ",
             kLaunchAddress, ":", port_, " --key-file ", directory_ / "key",
             " sh -c 'echo worker $(ulimit -Sn); grep open /proc/$PPID/limits'");
  LaunchedJob job({"-c", script}, LaunchedJob::Settings{.program = "/bin/sh"});

  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.out(), HasSubstr("worker 200"));
  const auto limits = job.numbers_after("Max open files");
  ASSERT_EQ(limits.size(), 1u) << job.out();
  EXPECT_GE(limits.front(), 1000);
}

TEST_F(ElasticJoin, ALauncherThatIsKilledTakesTheHostsAlong) {
  const std::vector<std::string> options = {"-np", "2", "--min-np", "1"};
  const auto job = launch(options);
  const auto host = join("hosta", options);
  ASSERT_TRUE(wait_for_world(*job, 1, 2)) << job->err();
  const ProcessWatch worker(process(*job, 1, 1, 2));

  job->send(SIGKILL);

  EXPECT_EQ(host->wait(), 125);
  EXPECT_TRUE(worker.ends());
  EXPECT_THAT(host->err(), HasSubstr("host hosta has lost the launcher: "));
}

TEST_F(ElasticJoin, AHostWhoseLinkIsCutGoesAndMayJoinAgain) {
  const std::vector<std::string> options = {"-np", "2", "--min-np", "1"};
  const auto job = launch(options);
  const auto host = join("hosta", options);
  ASSERT_TRUE(wait_for_world(*job, 1, 2)) << job->err();

  ASSERT_TRUE(hosts_->cut_link("hosta"));
  EXPECT_EQ(host->wait(), 125);
  ASSERT_TRUE(hosts_->restore_link("hosta"));
  const auto again = join("hosta", options);
  ASSERT_TRUE(job->wait_for("rank 1 of 2 is ", 2)) << job->err() << again->err();
  stop();

  EXPECT_EQ(job->wait(), 0) << job->err();
  EXPECT_EQ(again->wait(), 0) << again->err();
  EXPECT_THAT(job->err(), Not(HasSubstr("gets no new workers")));
}

}  // namespace
}  // namespace hvd::test
