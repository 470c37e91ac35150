#include "store/server_thread.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace hvd::store {

ServerThread::ServerThread(std::unique_ptr<Server> server, UniqueFd stop)
    : server_(std::move(server)), addresses_(server_->addresses()), stop_(std::move(stop)) {}

Result<std::unique_ptr<ServerThread>> ServerThread::start(std::unique_ptr<Server> server) {
  UniqueFd stop(eventfd(0, EFD_CLOEXEC));
  if (!stop.valid()) return errno_status("store: event", errno);
  std::unique_ptr<ServerThread> out(new ServerThread(std::move(server), std::move(stop)));
  out->thread_ = std::jthread([self = out.get()] { self->run(); });
  pthread_setname_np(out->thread_.native_handle(), "hvd-store");
  return out;
}

ServerThread::~ServerThread() {
  const uint64_t one = 1;
  (void)!write(stop_.get(), &one, sizeof one);
}

void ServerThread::run() {
  for (;;) {
    pollfd items[] = {{stop_.get(), POLLIN, 0}, {server_->descriptor(), POLLIN, 0}};
    (void)!::poll(items, 2, -1);
    if (items[0].revents != 0) return;
    server_->poll();
  }
}

}  // namespace hvd::store
