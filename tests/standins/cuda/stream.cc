#include "tests/standins/cuda/stream.h"

#include <chrono>
#include <set>

#include "tests/standins/cuda/state.h"

namespace standin {
namespace {

std::mutex all_mutex;
std::set<Stream*>& all_streams() {
  static auto* all = new std::set<Stream*>();
  return *all;
}

}  // namespace

void Recording::complete() {
  const std::lock_guard lock(mutex_);
  is_complete_ = true;
  changed_.notify_all();
}

void Recording::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_complete_; });
}

bool Recording::is_complete() {
  const std::lock_guard lock(mutex_);
  return is_complete_;
}

RecordingPtr EventState::begin_recording() {
  auto recording = std::make_shared<Recording>();
  const std::lock_guard lock(mutex_);
  last_ = recording;
  return recording;
}

RecordingPtr EventState::last_recording() {
  const std::lock_guard lock(mutex_);
  return last_;
}

bool EventState::is_complete() {
  const RecordingPtr last = last_recording();
  return last == nullptr || last->is_complete();
}

Stream::Stream(int device) : device_(device) {
  {
    const std::lock_guard lock(all_mutex);
    all_streams().insert(this);
  }
  thread_ = std::thread([this] { run(); });
}

Stream::~Stream() {
  {
    const std::lock_guard lock(all_mutex);
    all_streams().erase(this);
  }
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Stream::enqueue(std::function<void()> item) {
  {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
  }
  changed_.notify_all();
}

void Stream::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !items_.empty() || is_ending_; });
    if (items_.empty()) return;
    const auto item = std::move(items_.front());
    items_.pop_front();
    is_running_ = true;
    lock.unlock();
    if (const int64_t delay = knobs().item_delay_us; delay > 0)
      std::this_thread::sleep_for(std::chrono::microseconds(delay));
    item();
    ++counters().items;
    lock.lock();
    is_running_ = false;
    changed_.notify_all();
  }
}

void Stream::record(const EventPtr& event) {
  const RecordingPtr recording = event->begin_recording();
  // A stream without work is there already: no thread has to wake up for it.
  if (knobs().item_delay_us == 0 && is_idle()) return recording->complete();
  enqueue([recording] { recording->complete(); });
}

void Stream::wait_for(const EventPtr& event) {
  const RecordingPtr recording = event->last_recording();
  if (recording == nullptr || (knobs().item_delay_us == 0 && recording->is_complete())) return;
  enqueue([recording] { recording->wait(); });
}

bool Stream::is_idle() {
  const std::lock_guard lock(mutex_);
  return items_.empty() && !is_running_;
}

void Stream::synchronize() {
  std::unique_lock lock(mutex_);
  if (!items_.empty() || is_running_) ++counters().host_blocks;
  changed_.wait(lock, [&] { return items_.empty() && !is_running_; });
}

Stream& default_stream(int device) {
  static std::mutex mutex;
  static Stream* streams[kMaxDevices] = {};
  const std::lock_guard lock(mutex);
  if (streams[device] == nullptr) streams[device] = new Stream(device);
  return *streams[device];
}

void synchronize_device(int device) {
  std::set<Stream*> streams;
  {
    const std::lock_guard lock(all_mutex);
    streams = all_streams();
  }
  for (Stream* stream : streams) {
    if (stream->device() == device) stream->synchronize();
  }
}

}  // namespace standin
