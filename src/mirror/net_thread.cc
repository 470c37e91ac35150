#include "mirror/net_thread.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

namespace hvd::mirror {
namespace {

using std::chrono::milliseconds;

constexpr Nanoseconds kLifeSignPeriod = milliseconds(500);
// While a driver pumps, looking would only take its turn; this is how late its going is noticed.
constexpr Nanoseconds kNap = milliseconds(1);

timespec to_timespec(Nanoseconds span) {
  return {static_cast<time_t>(span.count() / 1'000'000'000),
          static_cast<long>(span.count() % 1'000'000'000)};
}

}  // namespace

NetThread::NetThread(Mirror& mirror, const shm::Job& job, NetThreadHost& host)
    : mirror_(mirror), job_(job), host_(host) {}

Result<std::unique_ptr<NetThread>> NetThread::start(Mirror& mirror, const shm::Job& job,
                                                    NetThreadHost& host) {
  auto net = std::unique_ptr<NetThread>(new NetThread(mirror, job, host));
  net->event_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!net->event_.valid()) return errno_status("init: eventfd", errno);
  net->thread_ = std::jthread([n = net.get()](const std::stop_token& stop) { n->main(stop); });
  return net;
}

NetThread::~NetThread() { stop(Deadline::after(milliseconds(0))); }

void NetThread::kick() {
  const uint64_t one = 1;
  (void)!write(event_.get(), &one, sizeof one);
}

void NetThread::arm(std::vector<pollfd> data) {
  {
    MutexLock lock(mutex_);
    data_ = std::move(data);
  }
  is_armed_.store(true, std::memory_order_seq_cst);
  kick();
}

void NetThread::disarm() { is_armed_.store(false, std::memory_order_relaxed); }

void NetThread::stop(Deadline deadline) {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  kick();
  thread_.join();
  while (mirror_.has_unsent() && !deadline.passed()) {
    mirror_.flush_all();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

void NetThread::main(const std::stop_token& stop) {
  pthread_setname_np(pthread_self(), "hvd-net");
  while (!stop.stop_requested()) {
    if (std::chrono::steady_clock::now() >= next_life_sign_) {
      mirror_.say_alive();
      pollfd mesh{mirror_.mesh_descriptor(), POLLIN, 0};
      if (poll(&mesh, 1, 0) > 0) tend_mesh();  // also while a driver lets us nap
      next_life_sign_ = std::chrono::steady_clock::now() + kLifeSignPeriod;
    }
    if (!nap()) watch(stop);
  }
}

Nanoseconds NetThread::until_life_sign() const {
  return Deadline::at(next_life_sign_).remaining(kLifeSignPeriod);
}

// True: somebody drives, and it was left alone.
bool NetThread::nap() {
  const uint64_t pumps = mirror_.pump_count();
  const bool somebody_pumps = pumps != pumps_seen_ && !is_armed_.load(std::memory_order_seq_cst);
  pumps_seen_ = pumps;
  if (!somebody_pumps) return false;
  pollfd item{event_.get(), POLLIN, 0};
  const timespec timeout = to_timespec(std::min(kNap, until_life_sign()));
  if (ppoll(&item, 1, &timeout, nullptr) > 0) {
    uint64_t count = 0;
    (void)!read(event_.get(), &count, sizeof count);
  }
  return true;
}

void NetThread::tend_mesh() {
  mirror_.tend_mesh();
  has_tended_ = true;
}

void NetThread::watch(const std::stop_token& stop) {
  // A sleeper may wait for the very stream that is open now, and nothing will tell it again.
  if (has_tended_ && is_armed_.load(std::memory_order_seq_cst)) {
    has_tended_ = false;
    job_.wake(job_.rank());
  }
  std::vector<pollfd> items{{event_.get(), POLLIN, 0}, {mirror_.mesh_descriptor(), POLLIN, 0}};
  std::vector<Mirror::Descriptor> streams;
  mirror_.descriptors(streams);
  for (const Mirror::Descriptor& stream : streams) {
    const int events = stream.wants_to_send ? POLLIN | POLLOUT : POLLIN;
    items.push_back({stream.fd, static_cast<short>(events), 0});
  }
  const size_t data_begin = items.size();
  if (is_armed_.load(std::memory_order_seq_cst)) {
    MutexLock lock(mutex_);
    items.insert(items.end(), data_.begin(), data_.end());
  }
  const timespec timeout = to_timespec(until_life_sign());
  const int ready = ppoll(items.data(), items.size(), &timeout, nullptr);
  if (ready <= 0 || stop.stop_requested()) return;
  if (items[0].revents != 0) {
    uint64_t count = 0;
    (void)!read(event_.get(), &count, sizeof count);
  }
  if (items[1].revents != 0) tend_mesh();
  bool data_is_ready = false;
  for (size_t i = data_begin; i < items.size(); ++i) data_is_ready |= items[i].revents != 0;
  if (data_is_ready) {
    // The sleeper reads them; once told, it is not told again until it sleeps again.
    disarm();
    job_.wake(job_.rank());
  }
  // Its own looks do not make a driver. Those of a driver that it has just taken the core from stay
  // to be seen: otherwise it would come back for every message, each time in the driver's way.
  const uint64_t before = mirror_.pump_count();
  if (mirror_.pump()) host_.news_came();
  pumps_seen_ += mirror_.pump_count() - before;
}

}  // namespace hvd::mirror
