#include "mpi/mpi_mesh.h"

#include <poll.h>

#include <deque>
#include <map>
#include <utility>

#include "base/text.h"
#include "base/thread_annotations.h"
#include "mpi/life_line.h"
#include "mpi/paced_stream.h"
#include "mpi/pacer.h"

namespace hvd::mpi {
namespace {

// Control messages are small and many streams have nothing else; data fills what it gets.
constexpr size_t kControlSlotBytes = 16 << 10;
constexpr size_t kDataSlotBytes = 128 << 10;
// How long a control stream waits for its life line. One round trip is enough; where a firewall
// swallows what it does not let through, the line is looked for in the background.
constexpr auto kSettlingTime = std::chrono::milliseconds(500);
// When a mesh goes, peers end their streams about now or are gone.
constexpr auto kDrainTime = std::chrono::milliseconds(500);

class MpiStream final : public net::Stream {
 public:
  // `life_line` may be null.
  MpiStream(Group& group, std::shared_ptr<Pacer> pacer, std::unique_ptr<Pipe> pipe,
            std::unique_ptr<LifeLine> life_line, std::string peer)
      : group_(group),
        pacer_(std::move(pacer)),
        pipe_(std::move(pipe)),
        life_line_(std::move(life_line)),
        peer_(std::move(peer)) {}
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
    if (received->bytes > 0) {
      pacer_->progress();
    } else if (life_line_ != nullptr) {
      if (const Status alive = life_line_->check(); !alive) return receive_failure_ = alive;
    }
    return received->bytes;
  }
  int descriptor() const override { return pacer_->descriptor(); }
  short wake_events(short) const override { return POLLIN; }
  bool has_buffered() const override { return pipe_->has_buffered(); }
  const std::string& peer() const override { return peer_; }

  // Before the first receive: whether the life line is there, or will not come.
  Result<bool> is_settled() {
    if (life_line_ == nullptr) return true;
    HVD_TRY(life_line_->look());
    return life_line_->is_settled();
  }

 private:
  Status lost(const Status& why) const {
    return Status(StatusCode::kPeerLost, concat(peer_, ": ", why.message()));
  }

  Group& group_;
  const std::shared_ptr<Pacer> pacer_;  // shared with the mesh and the other streams
  std::unique_ptr<Pipe> pipe_;
  const std::unique_ptr<LifeLine> life_line_;  // the receiver's
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
  void poll() override {
    group_.poll();
    if (options_.life_lines != nullptr) options_.life_lines->poll();
    if (options_.beside != nullptr) options_.beside->poll();
  }
  // The mesh beside is looked at as often as MPI is.
  int descriptor() const override { return pacer_->descriptor(); }
  bool has_guarded_lane() const override {
    return options_.beside != nullptr && options_.beside->has_guarded_lane();
  }
  bool wakes_sleepers() const override { return true; }  // pacer.h
  // Where hosts have one rank each, the lane is the whole group.
  net::LaneReduce* lane_reduce() override { return &lane_reduce_; }

 private:
  // A control stream whose pipe is there.
  struct Settling {
    std::unique_ptr<MpiStream> stream;
    Deadline deadline;
  };
  using Settlings = std::map<int32_t, Settling>;  // by peer

  Result<std::unique_ptr<net::Stream>> connect_beside(int32_t peer, uint64_t purpose);
  Result<std::unique_ptr<Pipe>> open_pipe(int32_t peer, uint64_t purpose) HVD_REQUIRES(mutex_);
  Result<std::unique_ptr<net::Stream>> settle(Settlings::iterator at) HVD_REQUIRES(mutex_);
  std::string peer_text(int32_t peer) const {
    return concat("rank ", peer, " (host ", options_.hosts[static_cast<size_t>(peer)], ", MPI)");
  }

  Group& group_;
  const MpiMeshOptions options_;
  const std::shared_ptr<Pacer> pacer_;  // shared with the streams
  MpiLaneReduce lane_reduce_;
  Mutex mutex_;
  Settlings settling_ HVD_GUARDED_BY(mutex_);
  // When this rank first asked for a stream that has not come yet.
  std::map<std::pair<int32_t, uint64_t>, Deadline> waiting_ HVD_GUARDED_BY(mutex_);
};

Result<std::unique_ptr<net::Stream>> MpiMesh::connect(int32_t peer, uint64_t purpose) {
  if (peer < 0 || peer >= group_.size() || peer == group_.rank()) {
    return invalid_argument(
        concat("rank ", group_.rank(), ": no stream to rank ", peer, " of ", group_.size()));
  }
  if (options_.beside != nullptr && !net::is_plain_lane(purpose))
    return connect_beside(peer, purpose);
  const MutexLock lock(mutex_);
  const bool is_control = purpose == net::kControlPurpose;
  if (const auto at = settling_.find(peer); is_control && at != settling_.end()) return settle(at);
  HVD_TRY_ASSIGN(auto pipe, open_pipe(peer, purpose));
  if (pipe == nullptr) return std::unique_ptr<net::Stream>();
  std::unique_ptr<LifeLine> life_line;
  if (is_control && options_.life_lines != nullptr)
    life_line = std::make_unique<LifeLine>(options_.life_lines, peer);
  auto stream = std::make_unique<MpiStream>(group_, pacer_, std::move(pipe), std::move(life_line),
                                            peer_text(peer));
  if (!is_control) return std::unique_ptr<net::Stream>(std::move(stream));
  const auto at =
      settling_.emplace(peer, Settling{std::move(stream), Deadline::after(kSettlingTime)}).first;
  return settle(at);
}

Result<std::unique_ptr<net::Stream>> MpiMesh::connect_beside(int32_t peer, uint64_t purpose) {
  HVD_TRY_ASSIGN(auto stream, options_.beside->connect(peer, purpose));
  if (stream == nullptr || purpose != net::kControlPurpose) return stream;
  return make_paced_stream(std::move(stream), pacer_, group_);
}

// Null: the peer has not dialled yet.
Result<std::unique_ptr<Pipe>> MpiMesh::open_pipe(int32_t peer, uint64_t purpose) {
  const StreamName name{peer, options_.epoch, purpose};
  const size_t slot_bytes = purpose == net::kControlPurpose ? kControlSlotBytes : kDataSlotBytes;
  if (group_.rank() < peer) return group_.dial(name, slot_bytes);
  HVD_TRY(group_.status());
  const auto waiting =
      waiting_.try_emplace({peer, purpose}, Deadline::after(options_.wait_time)).first;
  auto pipe = group_.accept(name, slot_bytes);
  const bool is_over = pipe != nullptr || waiting->second.passed();
  if (is_over) waiting_.erase(waiting);
  if (pipe != nullptr || !is_over) return pipe;
  return Status(StatusCode::kTimedOut, concat(peer_text(peer), " did not open a stream to rank ",
                                              group_.rank(), " in time"));
}

Result<std::unique_ptr<net::Stream>> MpiMesh::settle(Settlings::iterator at) {
  auto is_settled = at->second.stream->is_settled();
  if (is_settled && !*is_settled && !at->second.deadline.passed())
    return std::unique_ptr<net::Stream>();
  std::unique_ptr<net::Stream> stream = std::move(at->second.stream);
  settling_.erase(at);
  if (!is_settled) return is_settled.status();
  return stream;
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
