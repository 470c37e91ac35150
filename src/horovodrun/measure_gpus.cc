#include "horovodrun/measure_gpus.h"

#include <horovod/hvd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "device/stream.h"

namespace hvd::measure {
namespace {

constexpr size_t kGpuSmallBytes = 4 << 10;
constexpr size_t kGpuLargeBytes = 16 << 20;
constexpr int kGpuRounds = 20;
constexpr std::chrono::seconds kCopyTime{30};

Status last_error(const char* what) { return unknown_error(concat(what, ": ", hvd_last_error())); }

// A copy of the host's memory to the GPU or back, to its end.
Status copy_now(const device::Stream& stream, void* to, const void* from, size_t bytes) {
  HVD_TRY(stream.copy(to, from, bytes));
  const Deadline deadline = Deadline::after(kCopyTime);
  for (;;) {
    HVD_TRY_ASSIGN(const bool is_idle, stream.is_idle());
    if (is_idle) return Status::ok();
    if (deadline.passed()) return unknown_error("a copy between host and GPU does not end");
  }
}

struct Room {
  device::Stream stream;
  device::PinnedMemory host;
  void* gpu = nullptr;
  ~Room() { (void)device::free_memory(gpu); }
};

Status check_sum(const Room& room, size_t count, float expected) {
  HVD_TRY(copy_now(room.stream, room.host.data(), room.gpu, count * sizeof(float)));
  const auto* values = reinterpret_cast<const float*>(room.host.data());
  for (size_t i = 0; i < count; ++i) {
    if (values[i] != expected)
      return unknown_error(concat("rank ", hvd_rank(), ": element ", i, " of the sum is ",
                                  values[i], ", expected ", expected));
  }
  return Status::ok();
}

// Nanoseconds of the median round.
Result<int64_t> time_sum(const Room& room, int device, size_t bytes) {
  const size_t count = bytes / sizeof(float);
  const int64_t shape[] = {static_cast<int64_t>(count)};
  hvd_request request;
  hvd_request_init(&request);
  request.kind = HVD_ALLREDUCE;
  request.dtype = HVD_FLOAT32;
  request.reduce_op = HVD_OP_SUM;
  request.device = device;
  request.ndim = 1;
  request.shape = shape;
  request.input = request.output = room.gpu;
  request.stream = room.stream.handle();
  request.name = bytes == kGpuSmallBytes ? "small" : "large";
  auto* values = reinterpret_cast<float*>(room.host.data());
  std::vector<int64_t> took;
  for (int round = -1; round < kGpuRounds; ++round) {  // the first one opens connections
    std::fill(values, values + count, static_cast<float>(hvd_rank() + 1));
    HVD_TRY(copy_now(room.stream, room.gpu, values, bytes));
    const auto begin = std::chrono::steady_clock::now();
    if (hvd_run(&request, HVD_FOREVER) != HVD_OK) return last_error("allreduce");
    const auto span = std::chrono::steady_clock::now() - begin;
    if (round >= 0) took.push_back(std::chrono::nanoseconds(span).count());
    const int size = hvd_size();
    HVD_TRY(check_sum(room, count, static_cast<float>(size * (size + 1) / 2)));
  }
  std::nth_element(took.begin(), took.begin() + kGpuRounds / 2, took.end());
  return took[kGpuRounds / 2];
}

Status measure() {
  if (hvd_init(nullptr) != HVD_OK) return last_error("init");
  HVD_TRY_ASSIGN(const device::Driver* const driver, device::Driver::get());
  const int device = hvd_local_rank() % driver->device_count();
  int64_t small = 0, large = 0;
  {
    HVD_TRY_ASSIGN(const device::Current current, device::Current::enter(device));
    Room room;
    HVD_TRY_ASSIGN(room.stream, device::Stream::make(device));
    HVD_TRY_ASSIGN(room.host, device::PinnedMemory::make(kGpuLargeBytes));
    HVD_TRY_ASSIGN(room.gpu, device::alloc_memory(device, kGpuLargeBytes));
    HVD_TRY_ASSIGN(small, time_sum(room, device, kGpuSmallBytes));
    HVD_TRY_ASSIGN(large, time_sum(room, device, kGpuLargeBytes));
  }
  const bool is_first = hvd_rank() == 0;
  const int size = hvd_size();
  if (hvd_shutdown() != HVD_OK) return last_error("shutdown");
  if (is_first) std::printf("gpus %d %lld %lld\n", size, (long long)small, (long long)large);
  return Status::ok();
}

}  // namespace

int measure_gpus() {
  const Status status = measure();
  if (!status.is_ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  std::fflush(stdout);
  return status.is_ok() ? 0 : 1;
}

}  // namespace hvd::measure
