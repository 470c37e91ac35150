// stream.h - streams and events of the stand-in: a stream is a queue and a thread that runs its
// items one after the other; an event is a place in a stream. Any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace standin {

// A place in a stream. Whoever waits for it waits for this one, also when the event is recorded
// again, on another stream, before it is passed.
class Recording {
 public:
  void complete();
  void wait();
  bool is_complete();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_complete_ = false;
};
using RecordingPtr = std::shared_ptr<Recording>;

class EventState {
 public:
  RecordingPtr begin_recording();
  RecordingPtr last_recording();  // null: it was never recorded, and nobody waits for it
  bool is_complete();

 private:
  std::mutex mutex_;
  RecordingPtr last_;
};
using EventPtr = std::shared_ptr<EventState>;

class Stream {
 public:
  explicit Stream(int device);
  ~Stream();  // runs what is queued first

  int device() const { return device_; }
  void enqueue(std::function<void()> item);
  void record(const EventPtr& event);
  void wait_for(const EventPtr& event);
  bool is_idle();
  void synchronize();

 private:
  void run();

  const int device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> items_;
  bool is_running_ = false, is_ending_ = false;
  std::thread thread_;  // last
};

// The stream of a handle; null is that of the current context.
Stream& stream_of(void* handle);
// The null stream of a device.
Stream& default_stream(int device);
void synchronize_device(int device);

}  // namespace standin
