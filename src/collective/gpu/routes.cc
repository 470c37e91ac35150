// How the members of a channel find out whether NCCL can be used, and meet.
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "collective/gpu/backend.h"

namespace hvd::collective::gpu {

GpuBackend::Route& GpuBackend::route_of(const Work& work) {
  const int stream = static_cast<int>(nccl_works_ % static_cast<uint64_t>(nccl_streams_));
  return routes_[{work.devices, stream}];
}

// Whether the way is known by now.
bool GpuBackend::settle(Route& route, const Work& work, bool& moved) {
  if (route.state == Route::State::kNccl || route.state == Route::State::kStaging) return true;
  if (route.state == Route::State::kFresh) {
    if (is_lane_taken()) return false;
    fail(ask(route, work));
    moved = true;
  }
  const bool asks_ids = route.state == Route::State::kNaming;
  if ((route.state == Route::State::kAsking || asks_ids) && failure_.is_ok()) {
    std::vector<Work*> done;
    moved = lane_.advance(done) != Progress::kBlocked || moved;
    if (done.empty()) return false;
    moved = true;
    fail(asks_ids ? note_ids(route, work) : answer(route, work));
    if (route.state == Route::State::kNaming) return false;
  }
  if (route.state == Route::State::kMeeting && failure_.is_ok()) {
    const auto current = device::Current::enter(device_of(work));
    const auto api = NcclApi::get();
    const auto has_met = !api ? Result<bool>(api.status()) : route.comms.meet(**api);
    if (!has_met) fail(has_met.status());
    if (!has_met || !*has_met) return false;
    route.state = Route::State::kNccl;
    moved = true;
  }
  return failure_.is_ok();
}

Status GpuBackend::ask(Route& route, const Work& work) {
  route.state = Route::State::kAsking;
  route.mine = own_facts(device_of(work), options_.host, options_.me == 0);
  route.mine.nccl_streams = options_.nccl_streams;
  route.facts.resize(static_cast<size_t>(options_.size));
  return exchange(route, work, &route.mine, route.facts.data(), sizeof(Facts));
}

// So many bytes of each member, to all; through host memory.
Status GpuBackend::exchange(Route& route, const Work& work, const void* mine, void* all,
                            uint64_t bytes) {
  Work& question = route.question;
  question.reset(WorkKind::kExchange);
  question.cut = work.cut;
  Exchange x;
  x.same_block_for_all = true;
  x.moves_bytes = true;  // where NCCL meets is for members alone
  x.in = static_cast<const std::byte*>(mine);
  x.out = static_cast<std::byte*>(all);
  x.send_offset = {0};
  x.send_bytes = {bytes};
  for (size_t r = 0; r < static_cast<size_t>(options_.size); ++r) {
    x.receive_offset.push_back(r * bytes);
    x.receive_bytes.push_back(bytes);
  }
  x.largest_block_bytes = bytes;
  question.exchanges.push_back(std::move(x));
  return lane_.add(question);
}

void GpuBackend::say_about_levels(const Route& route) {
  // All members know that one of them has said it. A member alone has nothing to say.
  if (options_.size == 1 || std::exchange(options_.notices->levels, true) || options_.me != 0)
    return;
  if ((route.mine.asks & kAsksGather) != 0)
    HVD_LOG(kWarning,
            "HOROVOD_HIERARCHICAL_ALLGATHER: no effect on GPU tensors, which NCCL "
            "gathers in one step");
  if (!route.decision.without_levels.empty())
    HVD_LOG(kWarning, route.decision.without_levels, " (process set ", options_.process_set, ")");
}

Status GpuBackend::answer(Route& route, const Work& work) {
  route.decision = decide(route.facts);
  const Decision& decision = route.decision;
  nccl_streams_ = decision.nccl_streams;
  if (!decision.use_nccl) {
    route.state = Route::State::kStaging;
    // All members know that one of them has said it.
    if (!std::exchange(options_.notices->host_memory, true) && options_.me == 0) {
      HVD_LOG(kWarning, "GPU tensors of process set ", options_.process_set,
              " travel through host memory, which is slower than NCCL: ", decision.reason);
    }
    return Status::ok();
  }
  say_about_levels(route);
  const int device = device_of(work);
  if (decision.may_leave_host)
    route.comms.plan(Reach::kAll, {device, options_.size, options_.me}, route.facts[0].id);
  if (decision.levels != Levels::kNone) return ask_ids(route, work);
  tell(work, "INIT_NCCL");
  route.state = Route::State::kMeeting;
  return Status::ok();
}

// Who leads is known by now: only they make ids, each of which waits for those who meet by it.
Status GpuBackend::ask_ids(Route& route, const Work& work) {
  route.state = Route::State::kNaming;
  route.layout = layout_of(members_by_host(route.facts), options_.me);
  const Layout& layout = route.layout;
  HVD_TRY_ASSIGN(const NcclApi* const api, NcclApi::get());
  const auto make = [&](NcclId& id) {
    return api->check(api->get_unique_id(&id), "ncclGetUniqueId");
  };
  if (layout.host_leader == options_.me) HVD_TRY(make(route.my_ids.host));
  const bool is_torus = route.decision.levels == Levels::kTorus;
  if (is_torus && layout.across_leader == options_.me) HVD_TRY(make(route.my_ids.across));
  route.ids.resize(static_cast<size_t>(options_.size));
  return exchange(route, work, &route.my_ids, route.ids.data(), sizeof(LevelIds));
}

Status GpuBackend::note_ids(Route& route, const Work& work) {
  const Layout& l = route.layout;
  const int device = device_of(work);
  route.comms.plan(Reach::kHost, {device, l.host_size, l.place},
                   route.ids[static_cast<size_t>(l.host_leader)].host);
  if (route.decision.levels == Levels::kTorus)
    route.comms.plan(Reach::kAcross, {device, l.host_count, l.host},
                     route.ids[static_cast<size_t>(l.across_leader)].across);
  tell(work, "INIT_NCCL");
  route.state = Route::State::kMeeting;
  return Status::ok();
}

}  // namespace hvd::collective::gpu
