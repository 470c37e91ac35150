// nccl_api.h - NCCL 2.16 or newer, found and loaded at run time, declared by us: nothing of it is
// needed to build. Loads when it is first asked for. Any thread.
#pragma once

#include <cstddef>
#include <string>

#include "base/settings.h"
#include "base/status.h"
#include "device/driver_api.h"

namespace hvd::device {

inline constexpr int kNcclSuccess = 0;
inline constexpr int kNcclInProgress = 7;
inline constexpr int kLeastNccl = 21600;

struct NcclId {
  char bytes[128];
};

// The fields that every version has; later ones are appended, and NCCL reads as many as `version`
// says.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;
};

using NcclComm = void*;

// X(member, symbol, type)
#define HVD_NCCL_FUNCTIONS(X)                                                                    \
  X(get_version, "ncclGetVersion", int (*)(int*))                                                \
  X(get_unique_id, "ncclGetUniqueId", int (*)(NcclId*))                                          \
  X(error_text, "ncclGetErrorString", const char* (*)(int))                                      \
  X(last_error, "ncclGetLastError", const char* (*)(NcclComm))                                   \
  X(init_rank, "ncclCommInitRankConfig", int (*)(NcclComm*, int, NcclId, int, NcclConfig*))      \
  X(async_error, "ncclCommGetAsyncError", int (*)(NcclComm, int*))                               \
  X(destroy, "ncclCommDestroy", int (*)(NcclComm))                                               \
  X(abort, "ncclCommAbort", int (*)(NcclComm))                                                   \
  X(group_start, "ncclGroupStart", int (*)())                                                    \
  X(group_end, "ncclGroupEnd", int (*)())                                                        \
  X(create_pre_mul_sum, "ncclRedOpCreatePreMulSum", int (*)(int*, void*, int, int, NcclComm))    \
  X(destroy_op, "ncclRedOpDestroy", int (*)(int, NcclComm))                                      \
  X(all_reduce, "ncclAllReduce", int (*)(const void*, void*, size_t, int, int, NcclComm, void*)) \
  X(reduce, "ncclReduce", int (*)(const void*, void*, size_t, int, int, int, NcclComm, void*))   \
  X(broadcast, "ncclBroadcast", int (*)(const void*, void*, size_t, int, int, NcclComm, void*))  \
  X(all_gather, "ncclAllGather", int (*)(const void*, void*, size_t, int, NcclComm, void*))      \
  X(reduce_scatter, "ncclReduceScatter",                                                         \
    int (*)(const void*, void*, size_t, int, int, NcclComm, void*))                              \
  X(send, "ncclSend", int (*)(const void*, size_t, int, int, NcclComm, void*))                   \
  X(receive, "ncclRecv", int (*)(void*, size_t, int, int, NcclComm, void*))

struct NcclApi {
#define HVD_MEMBER(member, symbol, ...) Typed<__VA_ARGS__>::Type member = nullptr;
  HVD_NCCL_FUNCTIONS(HVD_MEMBER)
#undef HVD_MEMBER
  int version = 0;  // 22005: 2.20.5
  std::string path;

  // The one of this process. PRECONDITION_ERROR: none, or too old; the text says what was tried.
  static Result<const NcclApi*> get();
  static Result<NcclApi> load(const Environment& environment);
  // OK, or "ncclAllReduce: unhandled cuda error; <last error>".
  Status check(int code, std::string_view what, NcclComm comm = nullptr) const;
};

// "2.20.5"
std::string nccl_version_text(int version);

}  // namespace hvd::device
