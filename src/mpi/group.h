// group.h - the ranks of a job over a communicator of our own: who they are, tags for pipes, small
// messages by kind, and pipes that are no longer used but not through yet. Lives until the process
// ends: freeing a communicator takes all of its ranks, and they leave at their own times.
// Any thread. Never blocks, except open() and *_until(), which end at their deadlines.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/thread_annotations.h"
#include "mpi/api.h"
#include "mpi/pipe.h"

namespace hvd::mpi {

// Which stream of which epoch: both ends name it the same.
struct StreamName {
  int32_t peer = 0;
  uint64_t epoch = 0, purpose = 0;
  auto operator<=>(const StreamName&) const = default;
};

class Group {
 public:
  // Copies `base`, which takes a call of all its ranks; TIMED_OUT if some do not come.
  static Result<std::unique_ptr<Group>> open(Api& api, Comm base, Deadline deadline);

  int32_t rank() const { return rank_; }
  int32_t size() const { return size_; }
  Api& api() { return api_; }
  Comm comm() const { return comm_; }

  // Receives what has come, and sees to pipes that were given back.
  void poll() HVD_EXCLUDES(mutex_);

  // ---- pipes: the lower rank makes it and tells the other ----
  Result<std::unique_ptr<Pipe>> dial(const StreamName& name, size_t slot_bytes)
      HVD_EXCLUDES(mutex_);
  // Null: the peer has not dialled yet.
  std::unique_ptr<Pipe> accept(const StreamName& name, size_t slot_bytes) HVD_EXCLUDES(mutex_);
  void give_back(std::unique_ptr<Pipe> pipe) HVD_EXCLUDES(mutex_);

  // ---- small values by key, from one rank to another ----
  Status tell(int32_t rank, const std::string& key, const std::string& value) HVD_EXCLUDES(mutex_);
  std::optional<std::string> told(const std::string& key) HVD_EXCLUDES(mutex_);

  // Waits until everything that was sent has been taken and every pipe that was given back has
  // ended at both ends. False: the deadline came first; poll() goes on with the rest.
  bool drain_until(Deadline deadline) HVD_EXCLUDES(mutex_);
  // Waits until all ranks of the group have begun this, once per group: its end. For any time, as
  // MPI_Finalize does.
  Status begin_meeting();
  Status finish_meeting();

  // A failure of MPI itself that no caller was told about.
  Status status() HVD_EXCLUDES(mutex_);

 private:
  // Tags of this communicator; pipes have those behind.
  static constexpr int kDialTag = 0, kValueTag = 1, kFirstPipeTag = 2;
  struct Message {
    std::vector<std::byte> data;
    Request request{};
  };

  Group(Api& api, Comm comm) : api_(api), comm_(comm) {}
  Status look_at_self();
  Status poll_locked() HVD_REQUIRES(mutex_);
  Status receive_messages(int tag) HVD_REQUIRES(mutex_);
  Status finish_receives() HVD_REQUIRES(mutex_);
  Status finish_sends() HVD_REQUIRES(mutex_);
  Status finish_pipes() HVD_REQUIRES(mutex_);
  Status take(int tag, int source, std::span<const std::byte> data) HVD_REQUIRES(mutex_);
  Status send(int32_t to, int tag, std::vector<std::byte> data) HVD_REQUIRES(mutex_);

  Api& api_;
  const Comm comm_;
  int32_t rank_ = 0, size_ = 1;
  int largest_tag_ = 0;
  Mutex mutex_;
  Status status_ HVD_GUARDED_BY(mutex_);
  std::map<int32_t, int> next_tag_ HVD_GUARDED_BY(mutex_);  // per peer that this rank dials
  std::map<StreamName, std::deque<int>> dialled_ HVD_GUARDED_BY(mutex_);  // tags
  std::map<std::string, std::string> values_ HVD_GUARDED_BY(mutex_);
  std::list<Message> sends_ HVD_GUARDED_BY(mutex_);
  std::list<std::pair<int, Message>> receives_ HVD_GUARDED_BY(mutex_);  // tag
  std::list<std::unique_ptr<Pipe>> ending_ HVD_GUARDED_BY(mutex_);
  int32_t met_ = 0;  // what the meeting adds up
  Request meeting_{};
};

}  // namespace hvd::mpi
