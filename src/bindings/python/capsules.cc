#include "bindings/python/capsules.h"

#include <memory>
#include <vector>

#include "horovod/hvd.h"

namespace hvd::python {
namespace {

constexpr const char* kCapsuleName = "dltensor";  // a consumer renames it

// Everything behind one capsule.
struct OwnedTensor {
  DlManagedTensor managed{};
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  Memory memory;

  ~OwnedTensor() {
    if (memory.data != nullptr) memory.free(memory.data, memory.life);
  }
};

void delete_tensor(DlManagedTensor* managed) {
  delete static_cast<OwnedTensor*>(managed->manager_context);  // NOLINT: made in make_capsule
}

void destroy_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kCapsuleName) == 0) return;  // consumed: the consumer deletes
  auto* const managed = static_cast<DlManagedTensor*>(PyCapsule_GetPointer(capsule, kCapsuleName));
  managed->deleter(managed);
}

std::vector<int64_t> row_major(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

}  // namespace

const DlDataType* dl_type(int32_t dtype) {
  static constexpr DlDataType kTypes[] = {
      {kDlUint, 8, 1},                                                           // HVD_UINT8
      {kDlInt, 8, 1},                                                            // HVD_INT8
      {kDlUint, 16, 1},                                                          // HVD_UINT16
      {kDlInt, 16, 1},                                                           // HVD_INT16
      {kDlInt, 32, 1},                                                           // HVD_INT32
      {kDlInt, 64, 1},                                                           // HVD_INT64
      {kDlFloat, 16, 1}, {kDlFloat, 32, 1}, {kDlFloat, 64, 1}, {kDlBool, 8, 1},  // HVD_BOOL
      {kDlBfloat, 16, 1}                                                         // HVD_BFLOAT16
  };
  static_assert(std::size(kTypes) == HVD_BFLOAT16 + 1);
  if (dtype < 0 || dtype > HVD_BFLOAT16) return nullptr;
  return &kTypes[dtype];
}

PyObject* make_capsule(Memory memory, int32_t dtype, std::span<const int64_t> shape,
                       int32_t device) {
  auto owned = std::make_unique<OwnedTensor>();
  owned->memory = memory;
  owned->shape.assign(shape.begin(), shape.end());
  owned->strides = row_major(owned->shape);
  DlTensor& tensor = owned->managed.tensor;
  tensor.data = memory.data;
  tensor.device = device < 0 ? DlDevice{kDlCpu, 0} : DlDevice{kDlCuda, device};
  tensor.ndim = static_cast<int32_t>(owned->shape.size());
  tensor.dtype = *dl_type(dtype);
  tensor.shape = owned->shape.data();
  tensor.strides = owned->strides.data();
  owned->managed.manager_context = owned.get();
  owned->managed.deleter = delete_tensor;
  PyObject* const capsule = PyCapsule_New(&owned->managed, kCapsuleName, destroy_capsule);
  if (capsule != nullptr) (void)owned.release();  // the capsule owns it now
  return capsule;
}

}  // namespace hvd::python
