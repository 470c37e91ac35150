// The functions of libnccl that src/collective/gpu calls, by their names in the library.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>

#include "tests/standins/cuda/control.h"
#include "tests/standins/nccl/communicator.h"

extern "C" int cuCtxGetDevice(int* device);

namespace {

using namespace standin::nccl;  // NOLINT
using CommPtr = std::shared_ptr<Communicator>;

struct UniqueId {
  char text[128];
};
struct Config {  // the prefix that every version has
  size_t size;
  unsigned magic, version;
  int blocking;
};

struct Queued {
  CommPtr comm;
  void* stream;
  Operation operation;
};
thread_local int depth = 0;
thread_local std::vector<Queued> queued;
thread_local const char* last_error = "";
std::atomic<int64_t> comms_alive{0}, launches{0};

struct Batch {
  CommPtr comm;
  std::vector<Operation> operations;
};

void run_batch(void* argument) {
  const std::unique_ptr<Batch> batch(static_cast<Batch*>(argument));
  batch->comm->run(batch->operations);
}

// The call's result: launches of communicators that do not block may take their time, and are in
// progress until then.
int start_queued() {
  std::map<std::pair<Communicator*, void*>, Batch*> batches;
  std::vector<std::pair<void*, Batch*>> order;
  for (Queued& q : queued) {
    Batch*& batch = batches[{q.comm.get(), q.stream}];
    if (batch == nullptr) {
      batch = new Batch{q.comm, {}};
      order.emplace_back(q.stream, batch);
    }
    batch->operations.push_back(q.operation);
  }
  queued.clear();
  launches += static_cast<int64_t>(order.size());
  static const int64_t launch_us = number_from_environment("STANDIN_NCCL_LAUNCH_US");
  if (launch_us == 0) {
    for (const auto& [stream, batch] : order) standin_enqueue(stream, run_batch, batch);
    return kSuccess;
  }
  std::map<Communicator*, std::vector<std::pair<void*, Batch*>>> by_communicator;
  for (const auto& item : order) by_communicator[item.second->comm.get()].push_back(item);
  for (const auto& [comm, items] : by_communicator) {
    comm->launch_later(launch_us, [items] {
      for (const auto& [stream, batch] : items) standin_enqueue(stream, run_batch, batch);
    });
  }
  return by_communicator.empty() ? kSuccess : kInProgress;
}

// What was asked of a communicator before is still under way: nothing else may be.
bool is_busy(void* comm) { return (*static_cast<CommPtr*>(comm))->async_error() == kInProgress; }

int forget(void* comm) {
  delete static_cast<CommPtr*>(comm);
  --comms_alive;
  return kSuccess;
}

// Device memory, or a failure: the real one would fault.
void* seen_by_stream(const void* pointer, size_t count) {
  if (count == 0) return nullptr;
  void* view = standin_view(pointer);
  if (view == nullptr) {
    std::fprintf(stderr, "stand-in NCCL: %p is not device memory\n", pointer);
    std::abort();
  }
  return view;
}

int add(void* comm, void* stream, Operation operation, size_t in_blocks = 1,
        size_t out_blocks = 1) {
  if (comm == nullptr) return kInvalidArgument;
  const CommPtr& c = *static_cast<CommPtr*>(comm);
  if (is_busy(comm)) return kInvalidUsage;
  if (operation.in != nullptr)
    operation.in = seen_by_stream(operation.in, operation.count * in_blocks);
  if (operation.out != nullptr)
    operation.out = seen_by_stream(operation.out, operation.count * out_blocks);
  queued.push_back({c, stream, operation});
  return depth == 0 ? start_queued() : kSuccess;
}

int init(void** comm, int size, const UniqueId& id, int rank, bool blocking) {
  int device = -1;
  if (cuCtxGetDevice(&device) != 0) {
    last_error = "no context is current";
    return kUnhandledCuda;
  }
  if (rank < 0 || rank >= size || size > kMaxRanks) return kInvalidArgument;
  auto c = std::make_shared<Communicator>(rank, size, device);
  *comm = new CommPtr(c);
  ++comms_alive;
  if (!blocking) {
    c->attach_later(id.text);
    return kInProgress;
  }
  c->attach(id.text);
  return c->async_error();
}

}  // namespace

extern "C" {

int64_t standin_nccl_comms_alive() { return comms_alive; }
int64_t standin_nccl_launches() { return launches; }
int64_t standin_nccl_mismatches() { return mismatches(); }

int ncclGetVersion(int* version) {
  const char* text = std::getenv("STANDIN_NCCL_VERSION");
  *version = text == nullptr ? 22005 : std::atoi(text);
  return kSuccess;
}
int ncclGetUniqueId(UniqueId* id) {
  std::random_device random;
  std::memset(id, 0, sizeof *id);
  std::snprintf(id->text, sizeof id->text, "standin-nccl-%d-%08x%08x", ::getpid(), random(),
                random());
  return kSuccess;
}
const char* ncclGetErrorString(int result) {
  switch (result) {
    case kSuccess:
      return "no error";
    case kUnhandledCuda:
      return "unhandled cuda error";
    case kSystem:
      return "unhandled system error";
    case kRemote:
      return "remote process exited or there was a network error";
    case kInProgress:
      return "NCCL operation in progress";
    default:
      return "internal error";
  }
}
const char* ncclGetLastError(void*) { return last_error; }
int ncclCommInitRank(void** comm, int size, UniqueId id, int rank) {
  return init(comm, size, id, rank, true);
}
int ncclCommInitRankConfig(void** comm, int size, UniqueId id, int rank, Config* config) {
  return init(comm, size, id, rank, config->blocking != 0);
}
int ncclCommGetAsyncError(void* comm, int* error) {
  *error = (*static_cast<CommPtr*>(comm))->async_error();
  return kSuccess;
}
int ncclCommFinalize(void*) { return kSuccess; }
int ncclCommDestroy(void* comm) {
  if (is_busy(comm)) return kInvalidUsage;
  return forget(comm);
}
int ncclCommAbort(void* comm) {
  (*static_cast<CommPtr*>(comm))->abort();
  return forget(comm);
}
int ncclCommCount(void* comm, int* count) {
  *count = (*static_cast<CommPtr*>(comm))->size();
  return kSuccess;
}
int ncclGroupStart() {
  ++depth;
  return kSuccess;
}
int ncclGroupEnd() { return --depth == 0 ? start_queued() : kSuccess; }
int ncclRedOpCreatePreMulSum(int* op, void* scalar, int dtype, int, void* comm) {
  if (is_busy(comm)) return kInvalidUsage;
  double factor = 1;
  if (dtype == 7) factor = *static_cast<float*>(scalar);
  if (dtype == 8) factor = *static_cast<double*>(scalar);
  if (dtype == 6) factor = static_cast<double>(*static_cast<_Float16*>(scalar));
  if (dtype == 9) {
    const uint32_t wide = static_cast<uint32_t>(*static_cast<uint16_t*>(scalar)) << 16;
    float f;
    std::memcpy(&f, &wide, sizeof f);
    factor = f;
  }
  *op = (*static_cast<CommPtr*>(comm))->add_factor(factor);
  return kSuccess;
}
int ncclRedOpDestroy(int, void* comm) { return is_busy(comm) ? kInvalidUsage : kSuccess; }
int ncclAllReduce(const void* in, void* out, size_t count, int dtype, int op, void* comm,
                  void* stream) {
  return add(comm, stream, {Kind::kAllReduce, in, out, count, dtype, op, 0});
}
int ncclReduce(const void* in, void* out, size_t count, int dtype, int op, int root, void* comm,
               void* stream) {
  return add(comm, stream, {Kind::kReduce, in, out, count, dtype, op, root});
}
int ncclBroadcast(const void* in, void* out, size_t count, int dtype, int root, void* comm,
                  void* stream) {
  return add(comm, stream, {Kind::kBroadcast, in, out, count, dtype, 0, root});
}
int ncclAllGather(const void* in, void* out, size_t count, int dtype, void* comm, void* stream) {
  return add(comm, stream, {Kind::kAllGather, in, out, count, dtype, 0, 0});
}
int ncclReduceScatter(const void* in, void* out, size_t count, int dtype, int op, void* comm,
                      void* stream) {
  return add(comm, stream, {Kind::kReduceScatter, in, out, count, dtype, op, 0});
}
int ncclSend(const void* in, size_t count, int dtype, int peer, void* comm, void* stream) {
  return add(comm, stream, {Kind::kSend, in, nullptr, count, dtype, 0, peer});
}
int ncclRecv(void* out, size_t count, int dtype, int peer, void* comm, void* stream) {
  return add(comm, stream, {Kind::kRecv, nullptr, out, count, dtype, 0, peer});
}
}
