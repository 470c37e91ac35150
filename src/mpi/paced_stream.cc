#include "mpi/paced_stream.h"

#include <poll.h>
#include <sys/epoll.h>

#include <cerrno>
#include <span>
#include <utility>

#include "base/fd.h"

namespace hvd::mpi {
namespace {

class PacedStream final : public net::Stream {
 public:
  PacedStream(std::unique_ptr<net::Stream> below, std::shared_ptr<Pacer> pacer, Group& group,
              UniqueFd epoll)
      : below_(std::move(below)),
        pacer_(std::move(pacer)),
        group_(group),
        epoll_(std::move(epoll)) {}

  Result<size_t> send(std::span<const iovec> parts) override {
    auto taken = below_->send(parts);
    if (taken && *taken > 0) pacer_->progress();
    return taken;
  }
  Result<size_t> receive(std::span<const iovec> parts) override {
    auto came = below_->receive(parts);
    if (came && *came > 0) pacer_->progress();
    if (came && *came == 0) group_.poll();
    return came;
  }
  // What could not be sent is tried again at the next look.
  int descriptor() const override {
    (void)pacer_->descriptor();  // sets the time of the next look
    return epoll_.get();
  }
  short wake_events(short) const override { return POLLIN; }
  bool has_buffered() const override { return below_->has_buffered(); }
  const std::string& peer() const override { return below_->peer(); }

 private:
  const std::unique_ptr<net::Stream> below_;
  const std::shared_ptr<Pacer> pacer_;  // shared with the mesh and the other streams
  Group& group_;
  const UniqueFd epoll_;
};

}  // namespace

Result<std::unique_ptr<net::Stream>> make_paced_stream(std::unique_ptr<net::Stream> below,
                                                       std::shared_ptr<Pacer> pacer, Group& group) {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return errno_status("MPI: epoll", errno);
  for (const int fd : {below->descriptor(), pacer->descriptor()}) {
    epoll_event event{.events = EPOLLIN, .data = {}};
    if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event) != 0)
      return errno_status("MPI: epoll", errno);
  }
  return std::unique_ptr<net::Stream>(
      std::make_unique<PacedStream>(std::move(below), std::move(pacer), group, std::move(epoll)));
}

}  // namespace hvd::mpi
