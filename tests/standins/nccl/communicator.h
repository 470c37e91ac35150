// communicator.h - a communicator of the stand-in for NCCL: processes that share a file in
// /dev/shm. Collective calls run in the thread of a stream; the rest in any.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace standin::nccl {

inline constexpr int kMaxRanks = 16;
inline constexpr size_t kChunk = 256 << 10;
inline constexpr size_t kLetter = 64 << 10;

enum Result {
  kSuccess = 0,
  kUnhandledCuda = 1,
  kSystem = 2,
  kInternal = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemote = 6,
  kInProgress = 7
};
enum class Kind { kAllReduce, kReduce, kBroadcast, kAllGather, kReduceScatter, kSend, kRecv };

struct Operation {
  Kind kind;
  const void* in;  // as streams see them
  void* out;
  size_t count;
  int dtype;
  int op;
  int peer;  // root, or the other end
};

struct Mailbox {
  std::atomic<uint32_t> filled;  // bytes + 1; 0: empty
  std::byte data[kLetter];
};

// What a rank calls, as all have to call it.
struct Signature {
  std::atomic<int32_t> kind, dtype, op, root;
  std::atomic<uint64_t> count;
};

struct Shared {
  std::atomic<uint32_t> attached;
  std::atomic<int32_t> pids[kMaxRanks];
  std::atomic<uint32_t> arrived, round;
  Signature signatures[kMaxRanks];  // of the collective that is being run
  std::byte chunks[kMaxRanks][kChunk];
  Mailbox letters[kMaxRanks][kMaxRanks];  // [from][to]
};

class Communicator {
 public:
  Communicator(int rank, int size, int device) : rank_(rank), size_(size), device_(device) {}
  ~Communicator();

  // Meets the others; may block. To be called once, by any thread.
  void attach(const std::string& name);
  void attach_later(const std::string& name);

  int rank() const { return rank_; }
  int size() const { return size_; }
  int device() const { return device_; }
  // Looks after the peers, too.
  int async_error();
  void abort();
  int add_factor(double factor);
  // Puts a group into its stream by a thread, so long after now. Until then it is in progress.
  void launch_later(int64_t after_us, std::function<void()> launch);
  // Runs a group, in a stream.
  void run(std::vector<Operation>& operations);

 private:
  bool wait_for_all();
  void sign(const Operation& operation);
  bool all_call_the_same();
  void hang(const char* why);
  bool step_letters(std::vector<Operation>& letters, std::vector<size_t>& moved);
  bool may_go_on() { return !aborted_.load(); }
  void collective(const Operation& operation);
  template <typename Each>
  void in_chunks(size_t bytes, const std::byte* mine, const Operation& operation, const Each& each);
  bool a_peer_is_dead() const;
  static bool an_error_is_asked_for();
  double factor_of(int op);

  const int rank_, size_, device_;
  Shared* shared_ = nullptr;
  std::atomic<int> error_{kInProgress};
  std::atomic<bool> aborted_{false};
  std::mutex mutex_;
  std::vector<double> factors_;
  std::thread attaching_, launching_;
};

int64_t number_from_environment(const char* name);  // 0: not set

// Collectives that hang because ranks called different things.
int64_t mismatches();

// target = op over `size` vectors of `count` elements, each times `factor` first; of `mean`,
// divided.
void reduce(int dtype, int op, double factor, const std::byte* const* sources, int size,
            void* target, size_t count);
size_t dtype_bytes(int dtype);

}  // namespace standin::nccl
