#include "tests/explore/world.h"

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "engine/channel/channel.h"
#include "mirror/mirror.h"
#include "tests/explore/delayed_network.h"
#include "tests/explore/expected.h"
#include "tests/explore/jobs.h"
#include "tests/explore/probe.h"

namespace hvd::explore {
namespace {

using engine::Channel;
using engine::Operation;

constexpr uint64_t kMostTurns = 200'000;
// Evicted slots that a rank may hold: what was evicted while its peers went around a ring, twice.
constexpr size_t kMostBuried = 4 * control::kRecords;

// Nothing tuned; payloads in records alone; none larger than what the ring holds; other pieces.
tune::Tuning tuning_of(const Word& word) {
  constexpr const char* kTunings[] = {"", "small_bytes=104", "small_bytes=32768",
                                      "chunk_bytes=16384 part_bytes=16384",
                                      "small_bytes=512 chunk_bytes=65536 pace=deep"};
  auto tuning = tune::parse_tuning(kTunings[static_cast<size_t>(word.name) % std::size(kTunings)]);
  return tuning.value();
}

// What went wrong first.
struct Verdict {
  std::string kind, problem;
  void blame(std::string what, std::string text) {
    if (!problem.empty()) return;
    kind = std::move(what);
    problem = std::move(text);
  }
};

// The slot table after each agreed operation, by process set: whoever comes first says what the
// others must have.
class AgreedTables {
 public:
  void compare(int rank, const Channel& channel, Verdict& verdict) {
    const auto key = std::pair(channel.id(), Probe::agreed(channel));
    const uint64_t digest = Probe::table_digest(channel);
    const auto [at, is_new] = digests_.try_emplace(key, digest, rank);
    if (is_new || at->second.first == digest) return;
    verdict.blame("order", concat("after ", key.second, " operations of set ", key.first, " rank ",
                                  rank, " has another slot table than rank ", at->second.second));
  }

 private:
  std::map<std::pair<uint32_t, uint32_t>, std::pair<uint64_t, int>> digests_;
};

class World;

// One rank: what an engine is to its channels, and its two fibers.
class Rank final : public engine::ChannelHost, public mirror::MirrorHost {
 public:
  Rank(World& world, int rank);

  void run_program();
  void drive();
  bool step();
  bool is_done() const { return program_is_done_; }
  bool rescue();
  uint64_t digest() const;
  const std::string& waits_for() const { return waits_for_; }
  void check_end();

 private:
  // ChannelHost
  engine::SubmitLock& submit_lock() override { return submit_lock_; }
  shm::Job& job() override { return job_; }
  engine::Flight& flight() override { return flight_; }
  engine::Statistics& statistics() override { return statistics_; }
  const std::atomic<trace::Timeline*>& timeline() const override { return no_timeline_; }
  void completed(Operation& op) override;
  void telling_failure(const Status&) override {}
  Status begin_internal(const wire::Request& request, Operation& op) override;
  void end_internal(Operation& op) override;
  void tuned(Channel& channel, const tune::Tuning& tuning) override;
  mirror::Mirror* mirror() override { return mirror_.get(); }
  net::Mesh* mesh() override { return mesh_.get(); }
  // MirrorHost
  void peer_gone(int32_t rank, const Status& why) override;
  void job_failed(int32_t rank, const Status& why) override;
  void stall_reported(int32_t) override {}

  struct Submitted {
    Word word;
    int phase = 0;
    int occurrence = 0;
    bool is_checked = false;
    std::vector<int32_t> input, output;
    Operation op;
  };
  void submit(const Word& word);
  Submitted* pending(const Word& word);
  void wait_for(Submitted& submitted);
  void check(Submitted& submitted);
  bool park();
  void look_at_channels();
  Channel* channel_of(const Word& word) {
    const size_t at = word.in_second_set ? 1 : 0;
    return at < channels_.size() ? channels_[at].get() : nullptr;
  }
  engine::ChannelOptions channel_options(uint32_t id) const;

  World& world_;
  const int rank_;
  shm::Job& job_;
  engine::SubmitLock submit_lock_;
  engine::Flight flight_;
  engine::Statistics statistics_;
  const std::atomic<trace::Timeline*> no_timeline_{nullptr};
  std::unique_ptr<net::Mesh> mesh_;
  std::unique_ptr<mirror::Mirror> mirror_;
  std::deque<Submitted> submitted_;
  std::vector<std::unique_ptr<Channel>> channels_;  // open: one, or two
  std::vector<std::unique_ptr<Channel>> removed_;
  std::map<std::tuple<bool, Kind, int, int>, int> occurrences_;  // set, kind, name, phase
  int phase_ = 0;                                                // joins that are behind this rank
  size_t next_word_ = 0;
  bool program_is_done_ = false;
  // Where the driver is in a step, and what it will return so far: others may come in between.
  size_t steps_in_ = 0;  // number of the channel, from 1
  bool has_advanced_ = false;
  bool has_rung_ = false;  // since it last did something
  std::string waits_for_;
};

class World {
 public:
  World(const Program& program, Grain grain)
      : program_(program),
        jobs_(jobs_for(program)),
        scheduler_(grain),
        network_(scheduler_),
        expected_(program) {
    for (int rank = 0; rank < program.ranks; ++rank)
      ranks_.push_back(std::make_unique<Rank>(*this, rank));
  }

  Outcome run(Strategy& strategy);

  const Program& program() const { return program_; }
  shm::Job& job(int rank) { return *jobs_.jobs[static_cast<size_t>(rank)]; }
  const topology::HostMap& hosts() const { return jobs_.hosts; }
  Scheduler& scheduler() { return scheduler_; }
  DelayedNetwork& network() { return network_; }
  const Expected& expected() const { return expected_; }
  Verdict& verdict() { return verdict_; }
  AgreedTables& tables() { return tables_; }
  // Somebody did something: those who wait for what nobody announces look again.
  void note_change() { ++changes_; }
  uint64_t changes() const { return changes_; }
  // Everything is done, something is wrong, or the strategy has seen enough.
  bool is_over() const { return !verdict_.problem.empty() || is_stopped_ || all_programs_done(); }

 private:
  bool all_programs_done() const;
  uint64_t digest() const;
  std::string who_waits() const;

  const Program& program_;
  JobSet& jobs_;
  Scheduler scheduler_;
  DelayedNetwork network_;
  const Expected expected_;
  Verdict verdict_;
  AgreedTables tables_;
  uint64_t changes_ = 0;
  bool is_stopped_ = false;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

Rank::Rank(World& world, int rank)
    : world_(world),
      rank_(rank),
      job_(world.job(rank)),
      submit_lock_(job_.mine().role),
      flight_(job_) {
  if (!world.hosts().is_one_host()) {
    mesh_ = world.network().mesh(rank);
    mirror_ = std::make_unique<mirror::Mirror>(job_, world.hosts(), *mesh_, *this);
  }
  channels_.push_back(
      std::make_unique<Channel>(*this, channel_options(0), channel_region(job_, 0)));
}

engine::ChannelOptions Rank::channel_options(uint32_t id) const {
  engine::ChannelOptions options;
  options.id = id;
  options.wire_id = id;
  for (int32_t member = 0; member < world_.program().ranks; ++member)
    options.ranks.push_back(member);
  if (!world_.hosts().is_one_host()) options.host_of = world_.hosts().host_of;
  options.me = rank_;
  options.cache_capacity = static_cast<size_t>(world_.program().capacity);
  return options;
}

// ---- the program

void Rank::run_program() {
  for (const Word& word : world_.program().words[static_cast<size_t>(rank_)]) {
    if (next_word_++ > 0) world_.scheduler().step_point();
    if (world_.is_over()) return;
    if (word.what == Word::What::kTune) channels_[0]->propose(tuning_of(word));
    if (word.what == Word::What::kSubmit) submit(word);
    if (word.what == Word::What::kWait || word.waits) {
      if (Submitted* found = pending(word)) wait_for(*found);
    }
    if (word.what == Word::What::kWaitAll) {
      for (Submitted& each : submitted_) wait_for(each);
    }
    if (world_.is_over()) return;
  }
  for (Submitted& each : submitted_) wait_for(each);
  if (world_.is_over()) return;
  program_is_done_ = true;
  world_.note_change();
}

Rank::Submitted* Rank::pending(const Word& word) {
  for (Submitted& each : submitted_) {
    if (!each.is_checked && each.word.kind == word.kind && each.word.name == word.name &&
        each.word.in_second_set == word.in_second_set)
      return &each;
  }
  return nullptr;
}

void Rank::submit(const Word& word) {
  // A name is in flight once. Programs that were made shorter may lack the wait for it.
  if (Submitted* before = pending(word)) wait_for(*before);
  if (world_.is_over()) return;
  Submitted& submitted = submitted_.emplace_back();
  submitted.word = word;
  submitted.phase = phase_;
  submitted.occurrence = occurrences_[{word.in_second_set, word.kind, word.name, phase_}]++;
  Call call(word, rank_, world_.program().ranks, submitted.phase, submitted.occurrence);
  submitted.input = call.input();
  submitted.output.assign(submitted.input.size(), -1);
  call.set_buffers(submitted.input.data(), submitted.output.data());
  Channel* const channel = channel_of(word);
  if (channel == nullptr) return world_.verdict().blame("refused", "there is no second set");
  Status status;
  {
    engine::SubmitGuard guard(submit_lock_);
    status = channel->admit(call.submission(), submitted.op);
    if (status.is_ok()) channel->publish(submitted.op);
  }
  if (!status.is_ok()) {
    return world_.verdict().blame("refused", concat("rank ", rank_, ": ", status.message()));
  }
  if (word.kind == Kind::kJoin) ++phase_;
  channel->ring();
  world_.note_change();
}

void Rank::wait_for(Submitted& submitted) {
  if (submitted.is_checked || world_.is_over()) return;
  waits_for_ = to_text(submitted.word);
  if (!submitted.op.is_done())
    world_.scheduler().wait_until([&] { return submitted.op.is_done() || world_.is_over(); });
  if (world_.is_over()) return;
  waits_for_.clear();
  check(submitted);
}

void Rank::check(Submitted& submitted) {
  submitted.is_checked = true;
  const Answer answer{
      submitted.op.status, submitted.op.outputs.empty() ? nullptr : submitted.op.outputs[0].data,
      submitted.op.outputs.empty() ? 0 : submitted.op.outputs[0].bytes, submitted.output};
  const std::string wrong = world_.expected().complaint(rank_, submitted.word, submitted.phase,
                                                        submitted.occurrence, answer);
  if (!wrong.empty()) world_.verdict().blame("value", concat("rank ", rank_, ": ", wrong));
}

// ---- the engine around the channels

void Rank::completed(Operation& op) {
  op.state.store(static_cast<uint32_t>(engine::OperationState::kDone), std::memory_order_release);
}

// As ProcessSets::begin_change and end_change do.
Status Rank::begin_internal(const wire::Request& request, Operation& op) {
  op.work.reset(collective::WorkKind::kFence);
  const bool has_second_set = channels_.size() > 1;
  if (request.kind == wire::Kind::kProcessSetRemove) {
    if (!has_second_set) return invalid_argument("there is no second set");
    Channel& channel = *channels_[1];
    removed_.push_back(std::move(channels_[1]));
    channels_.pop_back();
    channel.detach();
    channel.close(Status(StatusCode::kAborted, "the set has been removed"));
    return Status::ok();
  }
  if (has_second_set) return invalid_argument("there is a second set");
  op.number = static_cast<int32_t>(removed_.size()) + 1;
  // Another set may have been there; nobody uses it any more.
  op.work.leader_action = [this] {
    clear_region(job_, 1);
    return Status::ok();
  };
  return Status::ok();
}

void Rank::end_internal(Operation& op) {
  if (op.kind != wire::Kind::kProcessSetAdd || !op.status.is_ok()) return;
  const auto id = static_cast<uint32_t>(op.number);
  channels_.push_back(
      std::make_unique<Channel>(*this, channel_options(id), channel_region(job_, 1)));
  channels_[1]->propose(channels_[0]->tuning());
}

// As EngineTuning::switched does: the first set leads.
void Rank::tuned(Channel& channel, const tune::Tuning& tuning) {
  for (const auto& other : channels_) {
    if (other.get() != &channel && channel.id() == 0) other->propose(tuning);
  }
}

void Rank::peer_gone(int32_t rank, const Status& why) {
  world_.verdict().blame("stream",
                         concat("rank ", rank_, " gave up rank ", rank, ": ", why.message()));
}
void Rank::job_failed(int32_t rank, const Status& why) {
  world_.verdict().blame("stream",
                         concat("rank ", rank_, " heard of rank ", rank, ": ", why.message()));
}

bool Rank::step() {
  has_advanced_ = mirror_ != nullptr && mirror_->pump();
  // By index: a step may open another channel, or close one.
  for (size_t i = 0; i < channels_.size(); ++i) {
    Channel& channel = *channels_[i];
    steps_in_ = i + 1;
    const bool advanced = channel.step(Channel::Effort::kOne) != engine::StepResult::kNothing;
    has_advanced_ = has_advanced_ || advanced;
    if (channel.failure().is_ok()) continue;
    world_.verdict().blame("failed", concat("rank ", rank_, ": ", channel.failure().message()));
  }
  steps_in_ = 0;
  if (has_advanced_) world_.note_change();
  look_at_channels();
  return std::exchange(has_advanced_, false);
}

void Rank::look_at_channels() {
  for (const auto& channel : channels_) {
    world_.tables().compare(rank_, *channel, world_.verdict());
    if (Probe::buried(*channel) > kMostBuried) {
      world_.verdict().blame("memory", concat("rank ", rank_, " holds ", Probe::buried(*channel),
                                              " evicted slots, expected at most ", kMostBuried));
    }
  }
}

// As Driver::drive does: step, tell sleepers what was published, sleep.
void Rank::drive() {
  while (!world_.is_over()) {
    if (step()) {
      has_rung_ = false;
      world_.scheduler().step_point();
      continue;
    }
    if (!has_rung_) {
      for (const auto& channel : channels_) channel->ring();
    }
    has_rung_ = !park();
  }
}

// As Driver::park does: say that we sleep and for what, look once more, sleep until somebody rings.
// Nothing ends a sleep by time here, so a ring that is lost leaves the job stuck.
bool Rank::park() {
  shm::RankBlock& mine = job_.mine();
  const auto want_now = [&] {
    return shm::pack(channels_.size() == 1 ? channels_[0]->want() : shm::Want{});
  };
  uint64_t want = want_now();
  mine.want.store(want);
  mine.park.store(1);
  job_.header().parked.fetch_add(1);
  bool has_work = false;
  for (;;) {
    schedule_point("look once more");
    has_work = step();
    const uint64_t fresh = want_now();
    if (has_work || fresh == want) break;
    mine.want.store(want = fresh);
  }
  if (!has_work && !world_.is_over()) {
    bool polls = mirror_ != nullptr;  // what the streams bring, and read marks of other hosts
    for (const auto& channel : channels_) polls = polls || channel->has_overflow();
    world_.scheduler().wait_until([this, &mine, polls, seen = world_.changes()] {
      return mine.park.load() == 0 || world_.is_over() ||
             (polls && (world_.changes() != seen || world_.network().has_news(rank_)));
    });
  }
  job_.header().parked.fetch_sub(1);
  mine.park.store(0);
  return has_work;
}

// What an engine does after a sleep that ended by time.
bool Rank::rescue() {
  for (const auto& channel : channels_) channel->refuse_other_groupings();
  return job_.wake(rank_);
}

uint64_t Rank::digest() const {
  uint64_t digest = mix(next_word_, waits_for_.size());
  for (const Submitted& each : submitted_) {
    digest = mix(digest, each.is_checked ? 2 : each.op.is_done() ? 1 : 0);
  }
  for (const auto& channel : channels_) digest = mix(digest, Probe::state_digest(*channel));
  digest = mix(digest, removed_.size());
  digest = mix(digest, steps_in_);
  digest = mix(digest, (has_advanced_ ? 1 : 0) + (has_rung_ ? 2 : 0));
  digest = mix(digest, job_.mine().park.load());
  return mix(digest, job_.mine().want.load());
}

void Rank::check_end() {
  for (const auto& channel : channels_) {
    const Status status = channel->check_shared_words();
    if (!status.is_ok()) world_.verdict().blame("words", status.message());
    if (Probe::held_records(*channel) > 0) {
      world_.verdict().blame("left over", concat("rank ", rank_, " still holds ",
                                                 Probe::held_records(*channel), " records"));
    }
  }
}

// ---- the world

bool World::all_programs_done() const {
  for (const auto& rank : ranks_) {
    if (!rank->is_done()) return false;
  }
  return true;
}

uint64_t World::digest() const {
  uint64_t digest = jobs_.shared_digest();
  for (const auto& rank : ranks_) digest = mix(digest, rank->digest());
  return mix(digest, network_.digest());
}

std::string World::who_waits() const {
  std::string text = "nobody can go on:";
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (!ranks_[rank]->is_done())
      text += concat(" rank ", rank, " waits for ", ranks_[rank]->waits_for(), ";");
  }
  return text;
}

Outcome World::run(Strategy& strategy) {
  for (size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = *ranks_[i];
    scheduler_.add(concat(i), Scheduler::Role::kMustEnd, [&rank] { rank.run_program(); });
  }
  for (size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = *ranks_[i];
    scheduler_.add(concat(i, "d"), Scheduler::Role::kMustEnd, [&rank] { rank.drive(); });
  }
  strategy.begin({[this] { return digest(); }, [this] { is_stopped_ = true; }});
  const End end = scheduler_.run(strategy, kMostTurns, [this] {
    bool woken = false;
    for (const auto& rank : ranks_) woken = rank->rescue() || woken;
    return expected_.has_other_groupings() && woken;
  });
  if (verdict_.problem.empty() && !is_stopped_) {
    if (end == End::kStuck) verdict_.blame("stuck", who_waits());
    if (end == End::kTooLong) verdict_.blame("endless", "the job does not come to an end");
    // What all have agreed on and nobody waits for.
    for (bool advanced = end == End::kDone; advanced && verdict_.problem.empty();) {
      advanced = network_.deliver_all();
      for (const auto& rank : ranks_) advanced = rank->step() || advanced;
    }
    for (const auto& rank : ranks_) rank->check_end();
  }
  Outcome outcome{verdict_.problem, verdict_.kind, {}, scheduler_.turns()};
  outcome.has_ended = outcome.is_ok() && !is_stopped_;
  if (!outcome.is_ok()) outcome.schedule = scheduler_.trace();
  return outcome;
}

}  // namespace

Outcome run(const Program& program, Grain grain, Strategy& strategy) {
  World world(program, grain);
  return world.run(strategy);
}

}  // namespace hvd::explore
