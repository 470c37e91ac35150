// ffi.h - XLA's foreign function interface, as declarations of our own.
//
// Nothing here comes from XLA's headers. Offsets were compared with the headers of jaxlib 0.4.38 to
// 0.12; they are the same in all of them, and the assertions below keep ours as they were compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "horovod/hvd.h"

namespace hvd::jax {

struct Error;   // XLA's, opaque
struct Future;  // XLA's, opaque

struct Extension {
  size_t struct_size;
  int type;
  Extension* next;
};
constexpr int kMetadataExtension = 1;

struct ApiVersion {
  size_t struct_size;
  Extension* extensions;
  int major, minor;
};
struct Metadata {
  size_t struct_size;
  ApiVersion api_version;
  uint32_t traits;
};
struct MetadataExtension {
  Extension base;
  Metadata* metadata;
};

struct ByteSpan {
  const char* data;
  size_t size;
};
struct Scalar {
  int dtype;
  const void* value;
};
struct Array {
  int dtype;
  size_t size;
  const void* data;
};
struct Buffer {
  size_t struct_size;
  Extension* extensions;
  int dtype;
  void* data;
  int64_t rank;
  const int64_t* dims;
};

// Arguments and results alike.
struct Buffers {
  size_t struct_size;
  Extension* extensions;
  int64_t size;
  const int* types;
  Buffer* const* buffers;
};
enum AttributeType : int { kArray = 1, kScalar = 3, kString = 4 };
struct Attributes {
  size_t struct_size;
  Extension* extensions;
  int64_t size;
  const int* types;
  const ByteSpan* const* names;
  const void* const* values;
};

struct ErrorCreate {
  size_t struct_size;
  Extension* extensions;
  const char* message;
  int code;
};
struct FutureCreate {
  size_t struct_size;
  Extension* extensions;
  Future* future;
};
struct FutureSetAvailable {
  size_t struct_size;
  Extension* extensions;
  Future* future;
};
struct FutureSetError {
  size_t struct_size;
  Extension* extensions;
  Future* future;
  Error* error;  // XLA's from now on
};

struct StreamGet {
  size_t struct_size;
  Extension* extensions;
  void* context;
  void* stream;  // answer: that of the program, on CUDA a CUstream
};
struct DeviceOrdinalGet {
  size_t struct_size;
  Extension* extensions;
  void* context;
  int32_t ordinal;  // answer
};

// The functions we call, at their places in XLA's table.
struct Api {
  size_t struct_size;
  unsigned char unused_before_errors[40];
  Error* (*error_create)(ErrorCreate*);
  unsigned char unused_before_streams[24];
  Error* (*stream_get)(StreamGet*);
  unsigned char unused_before_futures[64];
  Error* (*future_create)(FutureCreate*);
  Error* (*future_set_available)(FutureSetAvailable*);
  Error* (*future_set_error)(FutureSetError*);
  unsigned char unused_before_devices[8];
  Error* (*device_ordinal_get)(DeviceOrdinalGet*);  // not in old releases: see struct_size
};

constexpr int kExecute = 3;  // the stage at which a program runs

struct CallFrame {
  size_t struct_size;
  Extension* extensions;
  const Api* api;
  void* context;
  int stage;
  Buffers args;
  Buffers results;
  Attributes attributes;
  Future* future;  // set by the handler: it returns before the operation is complete
};

static_assert(offsetof(Api, error_create) == 48 && offsetof(Api, future_create) == 152);
static_assert(offsetof(Api, stream_get) == 80 && offsetof(Api, device_ordinal_get) == 184);
static_assert(offsetof(CallFrame, stage) == 32 && offsetof(CallFrame, args) == 40);
static_assert(offsetof(CallFrame, results) == 80 && offsetof(CallFrame, attributes) == 120);
static_assert(offsetof(CallFrame, future) == 168 && sizeof(CallFrame) == 176);
static_assert(offsetof(Metadata, traits) == 32);

// XLA takes the object.
Error* make_error(const Api& api, hvd_status status, const std::string& message);

// The dtype of the core with the same bytes, or -1. Where it computes, Python has made sure that it
// computes the same: unsigned sums are those of signed numbers.
int32_t dtype_of(int xla_dtype);

}  // namespace hvd::jax
