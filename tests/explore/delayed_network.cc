#include "tests/explore/delayed_network.h"

#include <algorithm>
#include <string>

#include "base/hash.h"
#include "base/text.h"

namespace hvd::explore {
namespace {

class DelayedStream final : public net::Stream {
 public:
  using PipePtr = std::shared_ptr<DelayedNetwork::Pipe>;
  DelayedStream(PipePtr out, PipePtr in, int32_t peer)
      : out_(std::move(out)), in_(std::move(in)), peer_(concat("rank ", peer)) {}

  Result<size_t> send(std::span<const iovec> parts) override {
    std::vector<std::byte> bytes;
    for (const iovec& part : parts) {
      const auto* data = static_cast<const std::byte*>(part.iov_base);
      bytes.insert(bytes.end(), data, data + part.iov_len);
    }
    const size_t count = bytes.size();
    out_->sent += count;
    if (count > 0) out_->on_its_way.push_back(std::move(bytes));
    return count;
  }
  Result<size_t> receive(std::span<const iovec> parts) override {
    size_t got = 0;
    for (const iovec& part : parts) {
      const size_t count = std::min(part.iov_len, in_->here.size());
      auto* to = static_cast<std::byte*>(part.iov_base);
      const auto end = in_->here.begin() + static_cast<long>(count);
      std::copy(in_->here.begin(), end, to);
      in_->here.erase(in_->here.begin(), end);
      got += count;
      in_->taken += count;
      if (count < part.iov_len) break;
    }
    return got;
  }
  int descriptor() const override { return -1; }
  const std::string& peer() const override { return peer_; }

 private:
  PipePtr out_, in_;
  std::string peer_;
};

}  // namespace

class DelayedNetwork::DelayedMesh final : public net::Mesh {
 public:
  DelayedMesh(DelayedNetwork& network, int32_t rank) : network_(network), rank_(rank) {}
  Result<std::unique_ptr<net::Stream>> connect(int32_t peer, uint64_t purpose) override {
    return network_.connect(rank_, peer, purpose);
  }
  void poll() override {}
  int descriptor() const override { return -1; }

 private:
  DelayedNetwork& network_;
  const int32_t rank_;
};

std::unique_ptr<net::Mesh> DelayedNetwork::mesh(int32_t rank) {
  return std::make_unique<DelayedMesh>(*this, rank);
}

std::shared_ptr<DelayedNetwork::Pipe> DelayedNetwork::make_pipe(int32_t to) {
  auto pipe = std::make_shared<Pipe>();
  pipe->to = to;
  pipes_.push_back(pipe);
  scheduler_.add(concat("n", pipes_.size()), Scheduler::Role::kHelper, [this, pipe] {
    for (;;) {
      scheduler_.wait_until([pipe] { return !pipe->on_its_way.empty(); });
      deliver(*pipe);
    }
  });
  return pipe;
}

Result<std::unique_ptr<net::Stream>> DelayedNetwork::connect(int32_t rank, int32_t peer,
                                                             uint64_t purpose) {
  const auto [low, high] = std::minmax(rank, peer);
  auto& all = ends_[{low, high, purpose}];
  auto found = std::find_if(all.begin(), all.end(), [&](const Ends& ends) {
    return ends.given == 1 && ends.first_owner != rank;
  });
  if (found == all.end()) {
    all.push_back({make_pipe(high), make_pipe(low), 0, rank});
    found = std::prev(all.end());
  }
  ++found->given;
  auto out = rank == low ? found->up : found->down;
  auto in = rank == low ? found->down : found->up;
  return std::unique_ptr<net::Stream>(
      std::make_unique<DelayedStream>(std::move(out), std::move(in), peer));
}

void DelayedNetwork::deliver(Pipe& pipe) {
  const auto& bytes = pipe.on_its_way.front();
  pipe.here.insert(pipe.here.end(), bytes.begin(), bytes.end());
  pipe.on_its_way.pop_front();
}

bool DelayedNetwork::deliver_all() {
  bool any = false;
  for (const auto& pipe : pipes_) {
    for (; !pipe->on_its_way.empty(); any = true) deliver(*pipe);
  }
  return any;
}

bool DelayedNetwork::has_news(int32_t rank) const {
  return std::any_of(pipes_.begin(), pipes_.end(),
                     [&](const auto& pipe) { return pipe->to == rank && !pipe->here.empty(); });
}

uint64_t DelayedNetwork::digest() const {
  uint64_t digest = pipes_.size();
  for (const auto& [key, all] : ends_) {
    for (const Ends& ends : all) digest = mix(digest, static_cast<uint64_t>(ends.given));
  }
  for (const auto& pipe : pipes_) {
    digest = mix(mix(digest, pipe->sent), pipe->taken);
    std::string come(pipe->here.size(), '\0');
    std::transform(pipe->here.begin(), pipe->here.end(), come.begin(),
                   [](std::byte byte) { return static_cast<char>(byte); });
    digest = hash_bytes(come, mix(digest, come.size()));
    for (const auto& bytes : pipe->on_its_way) {
      digest = hash_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                          mix(digest, bytes.size()));
    }
  }
  return digest;
}

}  // namespace hvd::explore
