#include "collective/library/backend.h"

#include "collective/hosts/algorithm.h"
#include "collective/library/library_reduce.h"
#include "net/lane_reduce.h"

namespace hvd::collective::library {
namespace {

// Shorter works are quicker by streams that are open already.
constexpr uint64_t kLeastBytes = 64 << 10;
constexpr size_t kBlockBytes = 4 << 20;

// A row for each operation: what a library can add it may not be able to multiply.
Capabilities rows_of(const net::LaneReduce& library) {
  Capabilities rows;
  for (int op_code = 0; op_code < kReduceOpCount; ++op_code) {
    const auto op = static_cast<ReduceOp>(op_code);
    DTypes dtypes;
    for (int code = 0; code < kDTypeCount; ++code) {
      const auto dtype = static_cast<DType>(code);
      if (library.can_reduce(dtype, op)) dtypes.add(dtype);
    }
    if (dtypes.is_empty()) continue;
    rows.push_back({.kind = WorkKind::kReduce,
                    .dtypes = dtypes,
                    .ops = {op},
                    .device = DeviceKind::kHost,
                    .least_bytes = kLeastBytes});
  }
  return rows;
}

}  // namespace

LibraryBackend::LibraryBackend(shared_memory::Link& local, hosts::HostLink& hosts)
    : StreamBackend(local, hosts), capabilities_(rows_of(*hosts.library())) {}

std::unique_ptr<Task> LibraryBackend::make_task(Work& work) {
  hosts().begin_work(static_cast<uint32_t>(work.kind), hosts::size_of(work).bytes);
  return hosts::make_flat_reduce(hosts(), work,
                                 {.pace = hosts::shape_of(hosts::Pace::kLockstep),
                                  .block_bytes = kBlockBytes,
                                  .make = make_library_reduce});
}

}  // namespace hvd::collective::library
