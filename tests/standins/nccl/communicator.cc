#include "tests/standins/nccl/communicator.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace standin::nccl {

int64_t number_from_environment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::atoll(text);
}

namespace {

constexpr int kFirstFactor = 5;  // smaller numbers are the built-in operations

bool is_dead(pid_t pid) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  std::FILE* file = std::fopen(path, "r");
  if (file == nullptr) return true;
  char state = 'X';
  const int found = std::fscanf(file, "%*d (%*[^)]) %c", &state);
  std::fclose(file);
  return found != 1 || state == 'Z' || state == 'X';
}

// Between processes, and no turn of a busy machine is lost to spinning. Wakes up now and then.
void sleep_while(std::atomic<uint32_t>& word, uint32_t value) {
  const timespec limit{0, 2'000'000};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}
void wake_all(std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

std::atomic<int64_t> mismatch_count{0};

void nap() { std::this_thread::sleep_for(std::chrono::microseconds(20)); }

}  // namespace

Communicator::~Communicator() {
  if (attaching_.joinable()) attaching_.join();
  if (launching_.joinable()) launching_.join();
  if (shared_ != nullptr) ::munmap(shared_, sizeof(Shared));
}

void Communicator::attach(const std::string& name) {
  const std::string path = "/dev/shm/" + name;
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ::ftruncate(file, sizeof(Shared)) != 0) {
    error_ = kSystem;
    return;
  }
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  shared_ = static_cast<Shared*>(memory);
  shared_->pids[rank_] = ::getpid();
  ++shared_->attached;
  while (shared_->attached < static_cast<uint32_t>(size_) && may_go_on()) nap();
  if (rank_ == 0) ::unlink(path.c_str());
  int expected = kInProgress;
  error_.compare_exchange_strong(expected, kSuccess);
}

void Communicator::attach_later(const std::string& name) {
  attaching_ = std::thread([this, name] { attach(name); });
}

bool Communicator::a_peer_is_dead() const {
  for (int r = 0; shared_ != nullptr && r < size_; ++r) {
    const int32_t pid = shared_->pids[r];
    if (r != rank_ && pid != 0 && is_dead(pid)) return true;
  }
  return false;
}

// A test asks for an error by a file: the first communicator that sees it has it, and takes it
// away.
bool Communicator::an_error_is_asked_for() {
  static const char* const path = std::getenv("STANDIN_NCCL_ERROR_FILE");
  return path != nullptr && ::unlink(path) == 0;
}

int Communicator::async_error() {
  if (error_ == kSuccess && an_error_is_asked_for()) error_ = kSystem;
  if (error_ == kSuccess && number_from_environment("STANDIN_NCCL_SILENT_DEATH") == 0 &&
      a_peer_is_dead())
    error_ = kRemote;
  return error_;
}

void Communicator::abort() {
  aborted_ = true;
  if (attaching_.joinable()) attaching_.join();
  if (launching_.joinable()) launching_.join();
}

void Communicator::launch_later(int64_t after_us, std::function<void()> launch) {
  if (launching_.joinable()) launching_.join();  // over: nobody may launch while it runs
  error_ = kInProgress;
  launching_ = std::thread([this, after_us, launch = std::move(launch)] {
    const auto due = std::chrono::steady_clock::now() + std::chrono::microseconds(after_us);
    while (may_go_on() && std::chrono::steady_clock::now() < due) nap();
    launch();
    int expected = kInProgress;
    error_.compare_exchange_strong(expected, kSuccess);
  });
}

int Communicator::add_factor(double factor) {
  const std::lock_guard lock(mutex_);
  factors_.push_back(factor);
  return kFirstFactor + static_cast<int>(factors_.size()) - 1;
}

double Communicator::factor_of(int op) {
  if (op < kFirstFactor) return 1.0;
  const std::lock_guard lock(mutex_);
  return factors_[static_cast<size_t>(op - kFirstFactor)];
}

bool Communicator::wait_for_all() {
  const uint32_t round = shared_->round;
  if (shared_->arrived.fetch_add(1) + 1 == static_cast<uint32_t>(size_)) {
    shared_->arrived = 0;
    ++shared_->round;
    wake_all(shared_->round);
    return true;
  }
  while (shared_->round == round) {
    if (!may_go_on()) return false;
    sleep_while(shared_->round, round);
  }
  return true;
}

int64_t mismatches() { return mismatch_count; }

void Communicator::sign(const Operation& o) {
  Signature& mine = shared_->signatures[rank_];
  const bool has_root = o.kind == Kind::kReduce || o.kind == Kind::kBroadcast;
  mine.kind = static_cast<int32_t>(o.kind);
  mine.dtype = o.dtype;
  mine.op = std::min(o.op, kFirstFactor);  // each rank may have a factor of its own
  mine.root = has_root ? o.peer : 0;
  mine.count = o.count;
}

bool Communicator::all_call_the_same() {
  const Signature& mine = shared_->signatures[rank_];
  for (int r = 0; r < size_; ++r) {
    const Signature& other = shared_->signatures[r];
    if (other.kind != mine.kind || other.dtype != mine.dtype || other.op != mine.op ||
        other.root != mine.root || other.count != mine.count)
      return false;
  }
  return true;
}

// As NCCL would, without a word.
void Communicator::hang(const char* why) {
  std::fprintf(stderr, "stand-in NCCL: rank %d hangs: %s\n", rank_, why);
  ++mismatch_count;
  while (may_go_on()) nap();
}

template <typename Each>
void Communicator::in_chunks(size_t bytes, const std::byte* mine, const Operation& operation,
                             const Each& each) {
  for (size_t at = 0; at < bytes; at += kChunk) {
    const size_t length = std::min(kChunk, bytes - at);
    if (mine != nullptr) std::memcpy(shared_->chunks[rank_], mine + at, length);
    sign(operation);
    if (!wait_for_all()) return;
    if (!all_call_the_same()) return hang("the ranks call different collectives");
    each(at, length);
    if (!wait_for_all()) return;
  }
}

void Communicator::collective(const Operation& o) {
  const auto* in = static_cast<const std::byte*>(o.in);
  auto* out = static_cast<std::byte*>(o.out);
  const size_t element = dtype_bytes(o.dtype);
  const size_t bytes = o.count * element;
  const std::byte* sources[kMaxRanks];
  for (int r = 0; r < size_; ++r) sources[r] = shared_->chunks[r];
  const auto reduce_to = [&](std::byte* target, size_t length) {
    reduce(o.dtype, o.op >= kFirstFactor ? 0 : o.op, factor_of(o.op), sources, size_, target,
           length / element);
  };
  switch (o.kind) {
    case Kind::kAllReduce:
      return in_chunks(bytes, in, o, [&](size_t at, size_t n) { reduce_to(out + at, n); });
    case Kind::kReduce:
      return in_chunks(bytes, in, o, [&](size_t at, size_t n) {
        if (o.peer == rank_) reduce_to(out + at, n);
      });
    case Kind::kBroadcast:
      return in_chunks(bytes, o.peer == rank_ ? in : nullptr, o, [&](size_t at, size_t n) {
        std::memcpy(out + at, shared_->chunks[o.peer], n);
      });
    case Kind::kAllGather:
      return in_chunks(bytes, in, o, [&](size_t at, size_t n) {
        for (int r = 0; r < size_; ++r)
          std::memcpy(out + static_cast<size_t>(r) * bytes + at, shared_->chunks[r], n);
      });
    case Kind::kReduceScatter:
      for (int to = 0; to < size_; ++to) {
        in_chunks(bytes, in + static_cast<size_t>(to) * bytes, o, [&](size_t at, size_t n) {
          if (to == rank_) reduce_to(out + at, n);
        });
      }
      return;
    default:
      return;
  }
}

// True: something is left.
bool Communicator::step_letters(std::vector<Operation>& letters, std::vector<size_t>& moved) {
  bool busy_to[kMaxRanks] = {}, busy_from[kMaxRanks] = {}, is_left = false;
  for (size_t i = 0; i < letters.size(); ++i) {
    const Operation& o = letters[i];
    const size_t bytes = o.count * dtype_bytes(o.dtype);
    if (moved[i] == bytes) continue;
    is_left = true;
    bool& busy = o.kind == Kind::kSend ? busy_to[o.peer] : busy_from[o.peer];
    if (busy) continue;  // one after the other
    busy = true;
    Mailbox& box =
        o.kind == Kind::kSend ? shared_->letters[rank_][o.peer] : shared_->letters[o.peer][rank_];
    const uint32_t filled = box.filled;
    const size_t length = std::min(kLetter, bytes - moved[i]);
    if (o.kind == Kind::kSend && filled == 0) {
      std::memcpy(box.data, static_cast<const std::byte*>(o.in) + moved[i], length);
      box.filled = static_cast<uint32_t>(length) + 1;
      moved[i] += length;
    } else if (o.kind == Kind::kRecv && filled > length + 1) {
      hang("a peer sends more than is received");
    } else if (o.kind == Kind::kRecv && filled != 0) {
      std::memcpy(static_cast<std::byte*>(o.out) + moved[i], box.data, filled - 1);
      moved[i] += filled - 1;
      box.filled = 0;
    }
  }
  return is_left;
}

void Communicator::run(std::vector<Operation>& operations) {
  static const int64_t transfer_us = number_from_environment("STANDIN_NCCL_TRANSFER_US");
  static const int64_t hang = number_from_environment("STANDIN_NCCL_HANG");
  while (hang != 0 && may_go_on()) nap();
  std::vector<Operation> letters;
  for (const Operation& operation : operations) {
    if (!may_go_on()) return;
    if (operation.kind == Kind::kSend || operation.kind == Kind::kRecv) {
      letters.push_back(operation);
    } else {
      collective(operation);
    }
  }
  std::vector<size_t> moved(letters.size(), 0);
  while (!letters.empty() && may_go_on() && step_letters(letters, moved)) nap();
  if (transfer_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(transfer_us));
}

}  // namespace standin::nccl
