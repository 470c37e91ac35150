#include "collective/gpu/staging.h"

#include <algorithm>
#include <utility>

namespace hvd::collective::gpu {

Status StagingMemory::reserve(uint64_t bytes, uint64_t turns) {
  if (memory.bytes() >= bytes * turns) return Status::ok();
  const uint64_t wanted = std::max<uint64_t>(bytes * turns, memory.bytes() / 2 * 3);
  HVD_TRY_ASSIGN(device::PinnedMemory larger, device::PinnedMemory::make(wanted));
  // Not freed now: the driver would wait for the device, and with it for peers.
  outgrown.push_back(std::exchange(memory, std::move(larger)));
  return Status::ok();
}

Status Staging::begin() {
  has_begun_ = true;
  part_count_ = part_count(work_);
  part_bytes_ = largest_part(work_);
  turns_ = std::clamp<uint64_t>(part_count_, 1, kTurns);
  HVD_TRY(means_.memory.reserve(part_bytes_, turns_));
  // A member that has joined has no buffers, and nothing to wait for.
  if (work_.use == nullptr) return Status::ok();
  HVD_TRY(work_.use->hold_back(means_.in.handle()));
  return work_.use->hold_back(means_.out.handle());
}

Status Staging::start_next(Turn& turn) {
  make_part(work_, started_, memory_of(started_), turn.part, turn.host);
  for (const Transfer& t : turn.part.in)
    HVD_TRY(means_.in.copy(memory_of(started_) + t.offset, t.device, t.bytes));
  HVD_TRY_ASSIGN(turn.event, device::Event::take(means_.device));
  HVD_TRY(turn.event.record(means_.in.handle()));
  HVD_TRY(Waker::wake_after(means_.waker, means_.in));
  turn.state = State::kComingIn;
  ++started_;
  return Status::ok();
}

Status Staging::go_out(Turn& turn) {
  std::byte* memory = memory_of(static_cast<uint64_t>(&turn - all_.data()));
  for (const Transfer& t : turn.part.out)
    HVD_TRY(means_.out.copy(t.device, memory + t.offset, t.bytes));
  HVD_TRY_ASSIGN(turn.event, device::Event::take(means_.device));
  HVD_TRY(turn.event.record(means_.out.handle()));
  HVD_TRY(Waker::wake_after(means_.waker, means_.out));
  turn.state = State::kGoingOut;
  return Status::ok();
}

Status Staging::step(bool& moved) {
  for (; finished_ < started_; ++finished_, moved = true) {
    Turn& turn = all_[finished_ % turns_];
    if (turn.state != State::kGoingOut) break;
    HVD_TRY_ASSIGN(const bool is_over, turn.event.is_over());
    if (!is_over) break;
    turn.state = State::kFree;
  }
  for (; started_ < part_count_ && started_ - finished_ < turns_; moved = true)
    HVD_TRY(start_next(all_[started_ % turns_]));
  for (; queued_ < started_; ++queued_, moved = true) {
    Turn& turn = all_[queued_ % turns_];
    HVD_TRY_ASSIGN(const bool is_over, turn.event.is_over());
    if (!is_over) break;
    turn.state = State::kReducing;
    HVD_TRY(means_.lane.add(turn.host));
  }
  std::vector<Work*> done;
  if (!means_.lane.is_idle() && means_.lane.advance(done) != Progress::kBlocked) moved = true;
  for (Work* host : done) {
    if (work_.status.is_ok()) work_.status = host->status;
    const auto turn = std::find_if(all_.begin(), all_.end(),
                                   [&](const Turn& candidate) { return &candidate.host == host; });
    HVD_TRY(go_out(*turn));
    moved = true;
  }
  return Status::ok();
}

Progress Staging::advance() {
  bool moved = false;
  if (!has_begun_) status_ = begin();
  if (status_.is_ok()) status_ = step(moved);
  if (!status_.is_ok()) return Progress::kBlocked;
  if (finished_ == part_count_) return Progress::kDone;
  return moved ? Progress::kAdvanced : Progress::kBlocked;
}

}  // namespace hvd::collective::gpu
