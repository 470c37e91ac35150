#include "mpi/group.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/text.h"

namespace hvd::mpi {
namespace {

// What a rank that dials sends.
struct DialMessage {
  uint64_t epoch, purpose;
  uint32_t tag, reserved;
};
constexpr size_t kMostValueBytes = 256u << 20;  // larger than any roster

// How long a loop that waits for MPI rests between looks.
class Rest {
 public:
  void take() {
    std::this_thread::sleep_for(span_);
    span_ = std::min(span_ * 2, Nanoseconds(std::chrono::milliseconds(1)));
  }

 private:
  Nanoseconds span_ = std::chrono::microseconds(10);
};

template <typename T>
std::vector<std::byte> bytes_of(const T& value) {
  const auto* first = reinterpret_cast<const std::byte*>(&value);
  return {first, first + sizeof value};
}

}  // namespace

// The copy is written by the library when the others have come, which may be after our deadline: it
// has a place of its own that is not given back then.
Result<std::unique_ptr<Group>> Group::open(Api& api, Comm base, Deadline deadline) {
  auto copy = std::make_unique<Comm>();
  Request request{};
  HVD_TRY(api.duplicate(base, copy.get(), request));
  for (Rest rest;; rest.take()) {
    HVD_TRY_ASSIGN(const bool is_done, api.test(request, nullptr));
    if (is_done) break;
    if (!deadline.passed()) continue;
    [[maybe_unused]] Comm* const left_behind = copy.release();
    return Status(
        StatusCode::kTimedOut,
        concat("init: not all ranks of the MPI communicator came in time (", api.name(), ")"));
  }
  HVD_TRY(api.return_errors(*copy));
  auto group = std::unique_ptr<Group>(new Group(api, *copy));
  HVD_TRY(group->look_at_self());
  return group;
}

Status Group::look_at_self() {
  HVD_TRY_ASSIGN(rank_, api_.rank(comm_));
  HVD_TRY_ASSIGN(size_, api_.size(comm_));
  HVD_TRY_ASSIGN(largest_tag_, api_.largest_tag(comm_));
  return Status::ok();
}

// ---- messages

void Group::poll() {
  if (!mutex_.try_lock()) return;
  if (status_.is_ok()) status_ = poll_locked();
  mutex_.unlock();
}

Status Group::status() {
  const MutexLock lock(mutex_);
  return status_;
}

Status Group::poll_locked() {
  HVD_TRY(receive_messages(kDialTag));
  HVD_TRY(receive_messages(kValueTag));
  HVD_TRY(finish_receives());
  HVD_TRY(finish_sends());
  return finish_pipes();
}

Status Group::receive_messages(int tag) {
  for (;;) {
    HVD_TRY_ASSIGN(const auto arrival, api_.probe(comm_, tag));
    if (!arrival) return Status::ok();
    if (arrival->bytes > kMostValueBytes) {
      return corrupted(concat("rank ", arrival->source, " sent a message of ", arrival->bytes,
                              " bytes, expected at most ", kMostValueBytes));
    }
    Message& message = receives_.emplace_back(tag, Message{}).second;
    message.data.resize(arrival->bytes);
    HVD_TRY(api_.receive(comm_, message.data, arrival->source, tag, message.request));
  }
}

Status Group::finish_receives() {
  for (auto at = receives_.begin(); at != receives_.end();) {
    auto& [tag, message] = *at;
    Arrival arrival;
    HVD_TRY_ASSIGN(const bool has_come, api_.test(message.request, &arrival));
    if (!has_come) {
      ++at;
      continue;
    }
    HVD_TRY(take(tag, arrival.source, message.data));
    at = receives_.erase(at);
  }
  return Status::ok();
}

Status Group::finish_sends() {
  for (auto at = sends_.begin(); at != sends_.end();) {
    HVD_TRY_ASSIGN(const bool is_through, api_.test(at->request, nullptr));
    at = is_through ? sends_.erase(at) : std::next(at);
  }
  return Status::ok();
}

Status Group::finish_pipes() {
  for (auto at = ending_.begin(); at != ending_.end();) {
    HVD_TRY_ASSIGN(const bool is_through, (*at)->finish());
    at = is_through ? ending_.erase(at) : std::next(at);
  }
  return Status::ok();
}

Status Group::take(int tag, int source, std::span<const std::byte> data) {
  if (tag == kDialTag) {
    DialMessage message;
    if (data.size() != sizeof message)
      return corrupted(concat("rank ", source, " dialled with ", data.size(), " bytes"));
    std::memcpy(&message, data.data(), sizeof message);
    dialled_[{source, message.epoch, message.purpose}].push_back(static_cast<int>(message.tag));
    return Status::ok();
  }
  uint32_t key_bytes = 0;
  if (data.size() < sizeof key_bytes)
    return corrupted(concat("rank ", source, " sent a value of ", data.size(), " bytes"));
  std::memcpy(&key_bytes, data.data(), sizeof key_bytes);
  data = data.subspan(sizeof key_bytes);
  if (key_bytes > data.size()) {
    return corrupted(
        concat("rank ", source, " sent a key of ", key_bytes, " bytes in ", data.size(), " bytes"));
  }
  const auto* text = reinterpret_cast<const char*>(data.data());
  values_.insert_or_assign(std::string(text, key_bytes),
                           std::string(text + key_bytes, data.size() - key_bytes));
  return Status::ok();
}

Status Group::send(int32_t to, int tag, std::vector<std::byte> data) {
  Message& message = sends_.emplace_back();
  message.data = std::move(data);
  return api_.send(comm_, message.data, to, tag, message.request);
}

Status Group::tell(int32_t rank, const std::string& key, const std::string& value) {
  const auto key_bytes = static_cast<uint32_t>(key.size());
  std::vector<std::byte> data = bytes_of(key_bytes);
  for (const std::string* text : {&key, &value}) {
    const auto* first = reinterpret_cast<const std::byte*>(text->data());
    data.insert(data.end(), first, first + text->size());
  }
  const MutexLock lock(mutex_);
  return send(rank, kValueTag, std::move(data));
}

std::optional<std::string> Group::told(const std::string& key) {
  const MutexLock lock(mutex_);
  const auto found = values_.find(key);
  return found == values_.end() ? std::nullopt : std::optional(found->second);
}

// ---- pipes

Result<std::unique_ptr<Pipe>> Group::dial(const StreamName& name, size_t slot_bytes) {
  const MutexLock lock(mutex_);
  int& next = next_tag_.try_emplace(name.peer, kFirstPipeTag).first->second;
  if (next > largest_tag_) {
    return precondition_error(concat(api_.name(), " has ", largest_tag_,
                                     " tags, and all were used for streams to rank ", name.peer));
  }
  const int tag = next++;
  HVD_TRY(send(name.peer, kDialTag,
               bytes_of(DialMessage{name.epoch, name.purpose, static_cast<uint32_t>(tag), 0})));
  return std::make_unique<Pipe>(api_, PipeEnd{comm_, name.peer, tag, slot_bytes});
}

std::unique_ptr<Pipe> Group::accept(const StreamName& name, size_t slot_bytes) {
  const MutexLock lock(mutex_);
  const auto found = dialled_.find(name);
  if (found == dialled_.end()) return nullptr;
  const int tag = found->second.front();
  found->second.pop_front();
  if (found->second.empty()) dialled_.erase(found);
  return std::make_unique<Pipe>(api_, PipeEnd{comm_, name.peer, tag, slot_bytes});
}

void Group::give_back(std::unique_ptr<Pipe> pipe) {
  const MutexLock lock(mutex_);
  ending_.push_back(std::move(pipe));
}

bool Group::drain_until(Deadline deadline) {
  for (Rest rest;; rest.take()) {
    const MutexLock lock(mutex_);
    if (status_.is_ok()) status_ = poll_locked();
    if (!status_.is_ok()) return false;
    if (sends_.empty() && receives_.empty() && ending_.empty()) return true;
    if (deadline.passed()) return false;
  }
}

Status Group::begin_meeting() {
  return api_.allreduce(comm_, &met_, &met_, 1, DType::kInt32, ReduceOp::kSum, meeting_);
}

Status Group::finish_meeting() {
  for (Rest rest;; rest.take()) {
    HVD_TRY_ASSIGN(const bool have_come, api_.test(meeting_, nullptr));
    if (have_come) return Status::ok();
  }
}

}  // namespace hvd::mpi
