// dlpack.h - the part of the public DLPack ABI (version 0.x capsules, "dltensor") that outputs use.
#pragma once

#include <cstdint>

namespace hvd::python {

inline constexpr int32_t kDlCpu = 1, kDlCuda = 2;

enum DlCode : uint8_t { kDlInt = 0, kDlUint = 1, kDlFloat = 2, kDlBfloat = 4, kDlBool = 6 };

struct DlDevice {
  int32_t type;
  int32_t id;
};

struct DlDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DlTensor {
  void* data;
  DlDevice device;
  int32_t ndim;
  DlDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

struct DlManagedTensor {
  DlTensor tensor;
  void* manager_context;
  void (*deleter)(DlManagedTensor*);
};

}  // namespace hvd::python
