#include "capi/elastic_jobs.h"

#include "base/log.h"
#include "base/text.h"
#include "elastic/leave_signal.h"

namespace hvd::capi {
namespace {

// Worlds that fall apart while they meet are not tried for ever, whatever the launcher allows.
constexpr int kMostAttempts = 20;

// Failures that say something about the others, not about this process.
bool may_next_world_differ(const Status& failure) {
  switch (failure.code()) {
    case StatusCode::kPeerLost:
    case StatusCode::kTimedOut:
    case StatusCode::kUnknownError:
    case StatusCode::kAborted:
    case StatusCode::kShutDown:
      return true;
    default:
      return false;
  }
}

}  // namespace

ElasticJobs::Found& ElasticJobs::found() {
  // Never destroyed, as the Runtime; a socket is looked for once, since it is taken over then.
  static Found* const found = [] {
    auto result = std::make_unique<Found>();
    Result<UniqueFd> socket = elastic::Channel::find(process_environment());
    result->status = socket.status();
    if (socket && socket->valid()) {
      result->channel = std::make_unique<elastic::Channel>(*std::move(socket));
    }
    return result.release();
  }();
  return *found;
}

bool ElasticJobs::is_active() {
  const Found& known = found();
  return !known.status.is_ok() || (known.channel != nullptr && known.channel->is_active());
}

Status ElasticJobs::run(const Environment& environment, const Start& start) {
  Found& known = found();
  HVD_TRY(known.status);
  elastic::Channel& channel = *known.channel;
  HVD_TRY(read_settings(environment).status());  // a mistake is told before anybody waits
  elastic::take_leave_signal(channel.launcher());
  Status failure;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    HVD_TRY_ASSIGN(const elastic::Assign assign,
                   channel.await_assignment(epoch(), failure.message()));
    epoch_.store(assign.epoch, std::memory_order_relaxed);
    const Interrupt interrupt = channel.interrupt_for(assign.epoch);
    failure = start(assign, interrupt);
    if (failure.is_ok()) return failure;
    // Whatever it looks like: if the launcher says that this world fell apart, that is the reason.
    if (!may_next_world_differ(failure) && interrupt.look().is_ok()) return failure;
    HVD_LOG(kInfo, "init of epoch ", assign.epoch, " as rank ", assign.rank, " of ", assign.size,
            " failed and is tried again: ", failure.message());
  }
  return failure;
}

hvd_elastic_news ElasticJobs::look() {
  hvd_elastic_news out{};
  Found& known = found();
  if (known.channel == nullptr || !known.channel->is_active()) return out;
  const elastic::News news = known.channel->look();
  out.timestamp_ns = news.timestamp_ns;
  out.changes = news.changes;
  out.is_asked_to_leave =
      known.channel->is_asked_to_leave() || elastic::has_leave_signal_come() ? 1 : 0;
  return out;
}

Status ElasticJobs::tell(const hvd_elastic_report& report) {
  if (report.kind < HVD_ELASTIC_COMMITTED || report.kind > HVD_ELASTIC_DONE) {
    return invalid_argument(concat("hvd_elastic_tell: there is no report of kind ", report.kind));
  }
  Found& known = found();
  if (known.channel == nullptr || !known.channel->is_active()) return Status::ok();
  return known.channel->tell({.kind = report.kind, .number = report.number});
}

}  // namespace hvd::capi
