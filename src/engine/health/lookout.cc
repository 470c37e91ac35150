#include "engine/health/lookout.h"

#include <signal.h>

#include <algorithm>

#include "base/log.h"
#include "base/text.h"

namespace hvd::engine {
namespace {

// What ranks that left had agreed on comes from other hosts within this time, or not at all.
constexpr Nanoseconds kLeaversTime = std::chrono::seconds(5);

bool is_stall_signal(int32_t number) {
  return number > 0 && number <= SIGRTMAX && number != SIGKILL && number != SIGSTOP;
}

bool has_left(const shm::RankBlock& block) {
  return block.state.load() != static_cast<uint32_t>(shm::RankState::kRunning);
}

}  // namespace

Status check_stall_signal(int32_t number) {
  if (number == 0 || is_stall_signal(number)) return Status::ok();
  return invalid_argument(concat("stall signal: expected 0, or 1 to ", SIGRTMAX, " without ",
                                 SIGKILL, " and ", SIGSTOP, ", got ", number));
}

void Lookout::handle_failures() {
  for (const Channel* channel : view_.sets.open_channels()) {
    if (!channel->failure().is_ok()) view_.failure.fail(channel->failure(), rank());
  }
  if (view_.failure.is_broken(std::memory_order_acquire)) fail_everything(view_.failure.health());
}

void Lookout::fail_everything(const Status& status) {
  const bool had_pending = view_.pending.count() != 0;
  if (had_pending && status.code() != StatusCode::kShutDown) print_flight_record(status);
  for (Channel* channel : view_.sets.open_channels()) channel->close(status);
  for (const auto& channel : view_.sets.registry().all_channels()) channel->abort_streams();
  job().wake_everybody();  // nobody may wait for this rank any more
}

void Lookout::print_flight_record(const Status& status) {
  if (!view_.failure.take_record()) return;
  const topology::Topology& topology = view_.surroundings.topology;
  if (view_.surroundings.settings.elastic && status.code() == StatusCode::kPeerLost) {
    // Expected there: the survivors go on, and the launcher says why.
    HVD_LOG(kWarning, "rank ", rank(), " on ", topology.hostname, ": ", status.message());
    return;
  }
  HVD_LOG(kError, "rank ", rank(), " on ", topology.hostname, ": ", status.message(),
          "\nlast operations of this rank:\n", recent_operations(16));
}

bool Lookout::is_busy() const {
  const auto& channels = view_.sets.open_channels();
  return std::any_of(channels.begin(), channels.end(),
                     [](const Channel* channel)
                         HVD_REQUIRES(engine_role) { return channel->is_busy(); });
}

bool Lookout::streams_are_late() {
  const TimePoint now = std::chrono::steady_clock::now();
  const auto& channels = view_.sets.open_channels();
  return std::any_of(channels.begin(), channels.end(),
                     [&](Channel* channel)
                         HVD_REQUIRES(engine_role) { return channel->streams_are_late(now); });
}

bool Lookout::waits_for_somebody_who_left() const {
  const auto& channels = view_.sets.open_channels();
  return std::any_of(channels.begin(), channels.end(),
                     [](const Channel* channel) HVD_REQUIRES(engine_role) {
                       return channel->is_busy() && channel->waits_for_closed_member();
                     });
}

void Lookout::look() {
  looked_at_ = std::chrono::steady_clock::now();
  if (const Status failure = job().failure(); !failure.is_ok())
    return view_.failure.fail(failure, rank());
  if (const Status status = check_words(); !status.is_ok())
    return view_.failure.fail(status, rank());
  if (job().header().leaving.load(std::memory_order_acquire) != 0 ||
      view_.sets.registry().has_met())
    close_when_peers_leave();
  check_streams(looked_at_);
  if (stall_.is_due(looked_at_)) check_stalls(looked_at_);
}

// In shared memory: what everybody could overwrite.
Status Lookout::check_words() {
  HVD_TRY(job().check_header());
  if (has_left(job().mine()) && !is_shut_down_.load()) {
    return corrupted(
        concat("the state of rank ", rank(), " in the shared segment is not what it wrote"));
  }
  for (Channel* channel : view_.sets.open_channels()) {
    HVD_TRY(channel->check_shared_words());
    channel->refuse_other_groupings();
  }
  return Status::ok();
}

// A rank has begun to leave: in the sets it belongs to, what is agreed is finished, the rest can
// never be.
void Lookout::close_when_peers_leave() {
  if (leavers_deadline_.is_never()) leavers_deadline_ = Deadline::after(kLeaversTime);
  for (size_t i = 0; i < view_.sets.open_channels().size(); ++i) {
    Channel& channel = *view_.sets.open_channels()[i];
    if (channel.is_closed() || !channel.has_leaving_member()) continue;
    while (channel.step(Channel::Effort::kEverything) == StepResult::kAdvanced) {
    }
    if (channel.is_busy() && !channel.waits_for_closed_member())
      continue;  // still runs; look again later
    if (channel.streams_are_late(looked_at_)) continue;
    if (channel.lags_behind_leavers() && !leavers_deadline_.passed()) continue;
    // Whoever leaves a job that failed has said before why; the next look finds it.
    if (job().has_failed()) return;
    view_.failure.note_leaver(leaver_of(channel));
    channel.close(status_without(channel));
    channel.abort_streams();
    job().wake_everybody();
  }
}

// Which member of a set has shut down; -1: none.
int Lookout::leaver_of(const Channel& channel) const {
  const std::vector<int32_t>& ranks = channel.ranks();
  const int first = first_leaver(job(), -1);
  if (std::find(ranks.begin(), ranks.end(), first) != ranks.end()) return first;
  const auto gone = std::find_if(ranks.begin(), ranks.end(),
                                 [&](int32_t member) { return has_left(job().block(member)); });
  return gone == ranks.end() ? -1 : *gone;
}

// Why a set of which a member takes no further part is closed.
Status Lookout::status_without(const Channel& channel) const {
  if (const int leaver = leaver_of(channel); leaver >= 0) return shut_down_status(job(), leaver);
  return Status(StatusCode::kAborted,
                concat("process set ", channel.id(), " [", join_text(channel.ranks(), ", ", 16),
                       "]: rank ", channel.ranks()[channel.first_closed_member()], " has left it"));
}

void Lookout::check_streams(TimePoint now) {
  for (Channel* channel : view_.sets.open_channels()) {
    if (const Status status = channel->broken_stream(now); !status.is_ok())
      return view_.failure.fail(status, rank());
  }
}

void Lookout::check_stalls(TimePoint now) {
  stall_.looked(now);
  for (const Channel* channel : view_.sets.open_channels()) {
    const auto last_done = [&](int member) {
      return view_.flight.describe(channel->rank_of(member), 1);
    };
    const StallReport report =
        stall_.look(now, channel->id(), channel->ranks(), channel->waiting(), last_done);
    if (act_on_stall(report, channel->ranks(), channel->me() == 0)) return;
  }
  check_stalled_meetings(now);
}

void Lookout::check_stalled_meetings(TimePoint now) {
  for (const auto& [change, missing, is_first] : view_.met_sets.awaited()) {
    const std::vector<int32_t>& ranks = change->ranks;
    const auto last_done = [&](int member) {
      return view_.flight.describe(ranks[static_cast<size_t>(member)], 1);
    };
    const auto set = static_cast<uint32_t>(SetRegistry::met_id(change->place));
    const StallReport report = stall_.look(
        now, set, ranks, {{concat("meet '", change->key, "'"), change->place.generation, missing}},
        last_done);
    if (act_on_stall(report, ranks, is_first)) return;
  }
}

bool Lookout::act_on_stall(const StallReport& report, const std::vector<int32_t>& ranks,
                           bool reports) {
  if (report.text.empty()) return false;
  if (reports) {
    view_.statistics.stall_warnings.add();
    if (report.shut_down) {
      HVD_LOG(kError, report.text);
    } else {
      HVD_LOG(kWarning, report.text);
    }
    for (const int member : report.missing) signal_stalled(ranks[static_cast<size_t>(member)]);
  }
  if (!report.shut_down) return false;
  // Where one rank alone is awaited, it is the one that failed.
  const bool is_one = report.missing.size() == 1;
  const int cause = is_one ? ranks[static_cast<size_t>(report.missing.front())] : rank();
  view_.failure.fail(
      Status(StatusCode::kStalled,
             concat("the stall limit (HOROVOD_STALL_SHUTDOWN_TIME_SECONDS) was reached. ",
                    report.text)),
      cause);
  return true;
}

void Lookout::check_role_word() {
  const uint32_t stray = role_check_.look(std::chrono::steady_clock::now());
  if (stray == 0) return;
  view_.failure.fail(
      corrupted(concat("the role word of rank ", rank(),
                       " in the shared segment has bits that it did not set: ", stray)),
      rank());
}

void Lookout::signal_stalled(int rank) {
  if (!job().is_here(rank)) return view_.mirror->report_stall(rank);
  const int32_t number = job().block(rank).stall_signal.load();
  if (is_stall_signal(number)) processes_.send_signal(rank, number);
}

}  // namespace hvd::engine
