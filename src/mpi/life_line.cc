#include "mpi/life_line.h"

#include <sys/uio.h>

#include <cstddef>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace hvd::mpi {
namespace {

// A look is a system call; the kernel takes seconds to give up a host.
constexpr double kSecondsBetweenLooks = 0.02;
// All that a line carries. A connection that the peer's mesh has made but that nobody there has
// asked for yet ends without a farewell, so only one that greets counts.
constexpr std::byte kGreeting{1}, kFarewell{2};

// A byte finds room on a connection that has carried next to nothing; a peer that is gone needs
// none.
void say(net::Stream& stream, std::byte word) {
  const iovec part{&word, sizeof word};
  (void)stream.send({&part, 1}).is_ok();
}

}  // namespace

LifeLine::LifeLine(std::shared_ptr<net::Mesh> mesh, int32_t peer)
    : mesh_(std::move(mesh)), peer_(peer) {}

LifeLine::~LifeLine() {
  if (stream_ != nullptr) say(*stream_, kFarewell);
}

Status LifeLine::check() {
  const uint64_t now = ticks_now();
  if (now < next_look_) return Status::ok();
  next_look_ = now + static_cast<uint64_t>(kSecondsBetweenLooks * ticks_per_second());
  return look();
}

Status LifeLine::look() {
  if (mesh_ == nullptr) return Status::ok();
  if (stream_ == nullptr) open();
  return stream_ == nullptr ? Status::ok() : listen();
}

void LifeLine::open() {
  mesh_->poll();
  auto stream = mesh_->connect(peer_, net::kControlPurpose);
  if (!stream) {
    HVD_LOG(kInfo, "no life line beside MPI, so that its host vanishes will be noticed late: ",
            stream.status().message());
    mesh_.reset();
    return;
  }
  stream_ = std::move(*stream);
  if (stream_ != nullptr) say(*stream_, kGreeting);
}

Status LifeLine::listen() {
  std::byte words[2] = {};
  const iovec part{words, sizeof words};
  const auto count = stream_->receive({&part, 1});
  if (!count && is_greeted_) return count.status();
  if (count && *count == 0) return Status::ok();
  is_greeted_ = true;
  if (count && words[*count - 1] != kFarewell) return Status::ok();
  stream_.reset();
  mesh_.reset();
  return Status::ok();
}

}  // namespace hvd::mpi
