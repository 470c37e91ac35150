#include "mpi/mpi_mesh.h"

#include <poll.h>

#include <deque>
#include <map>
#include <utility>

#include "base/text.h"
#include "base/thread_annotations.h"
#include "mpi/pacer.h"

namespace hvd::mpi {
namespace {

// Control messages are small and many streams have nothing else; data fills what it gets.
constexpr size_t kControlSlotBytes = 16 << 10;
constexpr size_t kDataSlotBytes = 128 << 10;
// When a mesh goes, peers end their streams about now or are gone.
constexpr auto kDrainTime = std::chrono::milliseconds(500);

class MpiStream final : public net::Stream {
 public:
  MpiStream(Group& group, std::shared_ptr<Pacer> pacer, std::unique_ptr<Pipe> pipe,
            std::string peer)
      : group_(group), pacer_(std::move(pacer)), pipe_(std::move(pipe)), peer_(std::move(peer)) {}
  ~MpiStream() override { group_.give_back(std::move(pipe_)); }

  Result<size_t> send(std::span<const iovec> parts) override {
    if (!send_failure_) return send_failure_;
    auto taken = pipe_->send(parts);
    if (!taken) return send_failure_ = lost(taken.status());
    if (*taken > 0) pacer_->progress();
    return taken;
  }
  Result<size_t> receive(std::span<const iovec> parts) override {
    if (!receive_failure_) return receive_failure_;
    auto received = pipe_->receive(parts);
    if (!received) return receive_failure_ = lost(received.status());
    if (received->is_end) {
      return receive_failure_ =
                 Status(StatusCode::kPeerLost, concat(peer_, ": it closed the connection"));
    }
    if (received->bytes > 0) pacer_->progress();
    return received->bytes;
  }
  int descriptor() const override { return pacer_->descriptor(); }
  short wake_events(short) const override { return POLLIN; }
  bool has_buffered() const override { return pipe_->has_buffered(); }
  const std::string& peer() const override { return peer_; }

 private:
  Status lost(const Status& why) const {
    return Status(StatusCode::kPeerLost, concat(peer_, ": ", why.message()));
  }

  Group& group_;
  const std::shared_ptr<Pacer> pacer_;  // shared with the mesh and the other streams
  std::unique_ptr<Pipe> pipe_;
  const std::string peer_;
  Status send_failure_, receive_failure_;
};

// The requests outlive the mesh if a job fails in the middle: the library may still write then.
class MpiLaneReduce final : public net::LaneReduce {
 public:
  MpiLaneReduce(Api& api, Comm comm, std::shared_ptr<Pacer> pacer)
      : api_(api), comm_(comm), pacer_(std::move(pacer)) {}

  bool can_reduce(DType dtype, ReduceOp op) const override { return api_.can_reduce(dtype, op); }
  Result<uint64_t> start(const void* in, void* out, size_t count, DType dtype,
                         ReduceOp op) override {
    Request request{};
    HVD_TRY(api_.allreduce(comm_, in, out, count, dtype, op, request));
    requests_.push_back(request);
    return first_ + requests_.size() - 1;
  }
  Result<bool> is_done(uint64_t number) override {
    HVD_ASSERT(number == first_ && !requests_.empty(), "asked in order");
    HVD_TRY_ASSIGN(const bool is_done, api_.test(requests_.front(), nullptr));
    if (!is_done) return false;
    requests_.pop_front();
    ++first_;
    pacer_->progress();
    return true;
  }

 private:
  Api& api_;
  const Comm comm_;
  const std::shared_ptr<Pacer> pacer_;  // shared with the mesh
  std::deque<Request> requests_;        // of the numbers from first_ on
  uint64_t first_ = 0;
};

class MpiMesh final : public net::Mesh {
 public:
  MpiMesh(Group& group, MpiMeshOptions options, std::shared_ptr<Pacer> pacer)
      : group_(group),
        options_(std::move(options)),
        pacer_(std::move(pacer)),
        lane_reduce_(group.api(), group.comm(), pacer_) {}
  ~MpiMesh() override { group_.drain_until(Deadline::after(kDrainTime)); }

  Result<std::unique_ptr<net::Stream>> connect(int32_t peer, uint64_t purpose) override
      HVD_EXCLUDES(mutex_);
  void poll() override { group_.poll(); }
  int descriptor() const override { return pacer_->descriptor(); }
  // Where hosts have one rank each, the lane is the whole group.
  net::LaneReduce* lane_reduce() override { return &lane_reduce_; }

 private:
  std::unique_ptr<net::Stream> wrap(std::unique_ptr<Pipe> pipe, int32_t peer) {
    return std::make_unique<MpiStream>(group_, pacer_, std::move(pipe), peer_text(peer));
  }
  std::string peer_text(int32_t peer) const {
    return concat("rank ", peer, " (host ", options_.hosts[static_cast<size_t>(peer)], ", MPI)");
  }

  Group& group_;
  const MpiMeshOptions options_;
  const std::shared_ptr<Pacer> pacer_;  // shared with the streams
  MpiLaneReduce lane_reduce_;
  Mutex mutex_;
  // When this rank first asked for a stream that has not come yet.
  std::map<std::pair<int32_t, uint64_t>, Deadline> waiting_ HVD_GUARDED_BY(mutex_);
};

Result<std::unique_ptr<net::Stream>> MpiMesh::connect(int32_t peer, uint64_t purpose) {
  if (peer < 0 || peer >= group_.size() || peer == group_.rank()) {
    return invalid_argument(
        concat("rank ", group_.rank(), ": no stream to rank ", peer, " of ", group_.size()));
  }
  const StreamName name{peer, options_.epoch, purpose};
  const size_t slot_bytes = purpose == net::kControlPurpose ? kControlSlotBytes : kDataSlotBytes;
  if (group_.rank() < peer) {
    HVD_TRY_ASSIGN(auto pipe, group_.dial(name, slot_bytes));
    return wrap(std::move(pipe), peer);
  }
  HVD_TRY(group_.status());
  const MutexLock lock(mutex_);
  const auto waiting =
      waiting_.try_emplace({peer, purpose}, Deadline::after(options_.wait_time)).first;
  if (auto pipe = group_.accept(name, slot_bytes)) {
    waiting_.erase(waiting);
    return wrap(std::move(pipe), peer);
  }
  if (!waiting->second.passed()) return std::unique_ptr<net::Stream>();
  waiting_.erase(waiting);
  return Status(StatusCode::kTimedOut, concat(peer_text(peer), " did not open a stream to rank ",
                                              group_.rank(), " in time"));
}

}  // namespace

Result<std::unique_ptr<net::Mesh>> make_mpi_mesh(Group& group, MpiMeshOptions options) {
  if (options.hosts.size() != static_cast<size_t>(group.size())) {
    return invalid_argument(
        concat("a mesh of ", group.size(), " ranks with the hosts of ", options.hosts.size()));
  }
  HVD_TRY_ASSIGN(net::Timer timer, net::Timer::create());
  return std::unique_ptr<net::Mesh>(std::make_unique<MpiMesh>(
      group, std::move(options), std::make_shared<Pacer>(std::move(timer))));
}

}  // namespace hvd::mpi
