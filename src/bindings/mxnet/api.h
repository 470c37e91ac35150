// api.h - the part of MXNet's C interface that is used, as declarations of our own.
//
// Nothing here comes from MXNet's headers and nothing links against it: the functions are looked up
// in the library that Python has loaded, once, before any other call. The table never changes then.
#pragma once

#include <cstdint>
#include <string>

namespace hvd::mxnet {

using Handle = void*;  // NDArrayHandle

// EngineAsyncFunc: run context, on_complete (on the caller's stack), our parameter.
using AsyncFunction = void (*)(void*, void*, void*);
using Deleter = void (*)(void*);

// DLPack 0.x, what MXNet describes an array with.
struct DlTensor {
  void* data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t type_code, type_bits;
  uint16_t type_lanes;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

struct Context {
  int32_t device_type, device_id;
};
inline constexpr Context kCpu = {1, 0};

// FnProperty: a queue of its own, ordered by priority; or, what is ready is run by the thread that
// pushes it, and what is not by the thread that computes.
inline constexpr int kCpuPrioritized = 3;
inline constexpr int kAsync = 4;

// X(result, name, parameters). Each returns 0 on success; otherwise MXGetLastError has the text.
#define HVD_MXNET_FUNCTIONS(X)                                                                   \
  X(const char*, MXGetLastError, (void))                                                         \
  X(int, MXShallowCopyNDArray, (Handle, Handle*))                                                \
  X(int, MXNDArrayFree, (Handle))                                                                \
  X(int, MXNDArrayToDLPack, (Handle, DlTensor**))                                                \
  X(int, MXNDArrayCallDLPackDeleter, (DlTensor*))                                                \
  X(int, MXEnginePushAsyncND,                                                                    \
    (AsyncFunction, void*, Deleter, const Context*, Handle*, int, Handle*, int, const int*, int, \
     const char*, bool))

struct Api {
#define HVD_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
  HVD_MXNET_FUNCTIONS(HVD_MEMBER)
#undef HVD_MEMBER
};

// Valid after load_api() has succeeded.
const Api& api();

// Looks the functions up in an open library (a handle of dlopen). Empty: all are there; otherwise
// what is missing.
std::string load_api(void* library);

}  // namespace hvd::mxnet
