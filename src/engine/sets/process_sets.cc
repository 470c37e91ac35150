#include "engine/sets/process_sets.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"

namespace hvd::engine {

Status ProcessSets::open_global() {
  std::vector<int32_t> ranks(static_cast<size_t>(surroundings_.topology.size));
  std::iota(ranks.begin(), ranks.end(), 0);
  HVD_TRY_ASSIGN(const SetRegistry::Place place, registry_.reserve(ranks));
  const shm::Job& job = *surroundings_.job;
  HVD_TRY(job.segment().commit_if_limited(job.channel_pool_offset() + place.offset, place.bytes));
  registry_.open(place,
                 std::make_unique<Channel>(host_, channel_options(0, 0, ranks), region_of(place)));
  global_ = registry_.channel(0);
  return Status::ok();
}

std::byte* ProcessSets::region_of(const SetRegistry::Place& place) const {
  return surroundings_.job->base() + surroundings_.job->channel_pool_offset() + place.offset;
}

Result<Channel*> ProcessSets::channel_of(int32_t set, std::string_view what) const {
  if (Channel* channel = registry_.channel(set)) return channel;
  const auto ranks = registry_.ranks(set);
  if (!ranks) return invalid_argument(concat(what, ": process set ", set, " does not exist"));
  return invalid_argument(concat(what, ": rank ", surroundings_.rank(),
                                 " is not a member of process set ", set, " [",
                                 join_text(*ranks, ", ", 16), "]"));
}

Status ProcessSets::begin_change(const wire::Request& request, Operation& op) {
  op.work.reset(collective::WorkKind::kFence);
  if (request.kind == wire::Kind::kProcessSetRemove) {
    const int32_t id = request.ranks.at(0);
    Channel* channel = registry_.channel(id);
    HVD_TRY(registry_.remove(id));
    if (channel != nullptr) {
      channel->detach();
      channel->close(Status(StatusCode::kAborted, concat("process set ", id, " has been removed")));
    }
    return Status::ok();
  }
  op.existing_set = registry_.find(request.ranks);
  HVD_TRY_ASSIGN(const SetRegistry::Place place, registry_.reserve(request.ranks));
  op.number = place.id;
  ++generation_;
  opening_[place.id] = place;
  shm::Job* const job = surroundings_.job.get();
  const uint64_t offset = job->channel_pool_offset() + place.offset;
  // A region may have belonged to a set that was removed: it starts as zeros again, when nobody
  // uses it any more.
  op.work.leader_action = [job, offset, place] {
    HVD_TRY(job->segment().discard(offset, place.bytes));
    return job->segment().commit_if_limited(offset, place.bytes);
  };
  return Status::ok();
}

Status ProcessSets::end_change(Operation& op) {
  if (op.kind != wire::Kind::kProcessSetAdd || op.number < 0 || opening_.count(op.number) == 0)
    return Status::ok();
  const SetRegistry::Place place = opening_.at(op.number);
  opening_.erase(op.number);
  HVD_TRY(op.status);
  const std::vector<int32_t>& ranks = op.slot->requests[0].ranks;
  std::unique_ptr<Channel> channel;
  if (std::find(ranks.begin(), ranks.end(), surroundings_.rank()) != ranks.end()) {
    channel = std::make_unique<Channel>(
        host_, channel_options(place.id, next_wire_id(place.id), ranks), region_of(place));
    channel->propose(global_->tuning());
  }
  registry_.open(place, std::move(channel));
  return Status::ok();
}

ChannelOptions ProcessSets::channel_options(int32_t id, uint32_t wire_id,
                                            const std::vector<int32_t>& ranks) const {
  const Settings& settings = surroundings_.settings;
  ChannelOptions options;
  options.id = static_cast<uint32_t>(id);
  options.wire_id = wire_id;
  options.ranks = ranks;
  if (surroundings_.spans_hosts()) {
    for (const int32_t rank : ranks)
      options.host_of.push_back(surroundings_.hosts.host_of[static_cast<size_t>(rank)]);
  }
  const auto me = std::find(ranks.begin(), ranks.end(), surroundings_.rank());
  options.me = static_cast<int>(me - ranks.begin());
  options.gpu.local_rank = surroundings_.topology.local_rank;
  options.gpu.nccl_streams = static_cast<int>(settings.nccl_streams);
  options.gpu.async_completion = settings.async_completion;
  options.gpu.notices = gpu_notices_;
  options.cache_capacity = static_cast<size_t>(settings.cache_capacity);
  return options;
}

}  // namespace hvd::engine
