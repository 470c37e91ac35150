// api.h - TensorFlow's C interface, as declarations of our own, looked up at run time.
//
// Nothing here comes from TensorFlow's headers and nothing links against it: one binary serves
// every release from 2.13 on. The table is filled once, while the plug-in is loaded, and never
// changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

// Opaque types keep TensorFlow's names, so that its documentation can be read beside this.
struct TF_Status;
struct TF_Tensor;
struct TF_KernelBuilder;
struct TF_OpKernelConstruction;
struct TF_OpKernelContext;
struct TF_AsyncOpKernelDoneCallback;
struct TF_OpDefinitionBuilder;
struct TF_ShapeInferenceContext;
struct TF_ShapeHandle;
struct SP_Stream_st;  // defined by the plug-in that brings a device

namespace hvd::tensorflow {

// TF_StringView
struct StringView {
  const char* data;
  size_t size;
};

// TF_Code: the ones we report.
enum Code : int {
  kOk = 0,
  kUnknown = 2,
  kInvalidArgument = 3,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
};

// TF_DataType: the ones the core knows.
enum DataType : int {
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kInt64 = 9,
  kBool = 10,
  kBfloat16 = 14,
  kUint16 = 17,
  kHalf = 19,
};

using CreateFunction = void* (*)(TF_OpKernelConstruction*);
using ComputeFunction = void (*)(void*, TF_OpKernelContext*);
using ComputeAsyncFunction = void (*)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback*);
using DeleteFunction = void (*)(void*);
using ShapeFunction = void (*)(TF_ShapeInferenceContext*, TF_Status*);

// X(result, name without "TF_", parameters)
#define HVD_TENSORFLOW_FUNCTIONS(X)                                                               \
  X(TF_Status*, NewStatus, (void))                                                                \
  X(void, DeleteStatus, (TF_Status*))                                                             \
  X(void, SetStatus, (TF_Status*, int, const char*))                                              \
  X(int, GetCode, (const TF_Status*))                                                             \
  X(const char*, Message, (const TF_Status*))                                                     \
  X(void*, TensorData, (const TF_Tensor*))                                                        \
  X(size_t, TensorByteSize, (const TF_Tensor*))                                                   \
  X(int, NumDims, (const TF_Tensor*))                                                             \
  X(int64_t, Dim, (const TF_Tensor*, int))                                                        \
  X(int, TensorType, (const TF_Tensor*))                                                          \
  X(void, DeleteTensor, (TF_Tensor*))                                                             \
  X(TF_KernelBuilder*, NewKernelBuilder,                                                          \
    (const char*, const char*, CreateFunction, ComputeFunction, DeleteFunction))                  \
  X(TF_KernelBuilder*, NewAsyncKernelBuilder,                                                     \
    (const char*, const char*, CreateFunction, ComputeAsyncFunction, DeleteFunction))             \
  X(void, RegisterKernelBuilder, (const char*, TF_KernelBuilder*, TF_Status*))                    \
  X(void, RunAsyncOpKernelDoneCallback, (TF_AsyncOpKernelDoneCallback*))                          \
  X(void, GetInput, (TF_OpKernelContext*, int, TF_Tensor**, TF_Status*))                          \
  X(TF_Tensor*, AllocateOutput,                                                                   \
    (TF_OpKernelContext*, int, int, const int64_t*, int, size_t, TF_Status*))                     \
  X(TF_Tensor*, ForwardInputOrAllocateOutput,                                                     \
    (TF_OpKernelContext*, const int*, int, int, const int64_t*, int, int*, TF_Status*))           \
  X(void, SetOutput, (TF_OpKernelContext*, int, const TF_Tensor*, TF_Status*))                    \
  X(void, OpKernelContext_Failure, (TF_OpKernelContext*, TF_Status*))                             \
  X(void, OpKernelConstruction_Failure, (TF_OpKernelConstruction*, TF_Status*))                   \
  X(StringView, OpKernelConstruction_GetName, (TF_OpKernelConstruction*))                         \
  X(void, OpKernelConstruction_GetAttrSize,                                                       \
    (TF_OpKernelConstruction*, const char*, int32_t*, int32_t*, TF_Status*))                      \
  X(void, OpKernelConstruction_GetAttrInt32,                                                      \
    (TF_OpKernelConstruction*, const char*, int32_t*, TF_Status*))                                \
  X(void, OpKernelConstruction_GetAttrFloat,                                                      \
    (TF_OpKernelConstruction*, const char*, float*, TF_Status*))                                  \
  X(void, OpKernelConstruction_GetAttrBool,                                                       \
    (TF_OpKernelConstruction*, const char*, unsigned char*, TF_Status*))                          \
  X(void, OpKernelConstruction_GetAttrString,                                                     \
    (TF_OpKernelConstruction*, const char*, char*, size_t, TF_Status*))                           \
  X(TF_OpDefinitionBuilder*, NewOpDefinitionBuilder, (const char*))                               \
  X(void, OpDefinitionBuilderAddAttr, (TF_OpDefinitionBuilder*, const char*))                     \
  X(void, OpDefinitionBuilderAddInput, (TF_OpDefinitionBuilder*, const char*))                    \
  X(void, OpDefinitionBuilderAddOutput, (TF_OpDefinitionBuilder*, const char*))                   \
  X(void, OpDefinitionBuilderSetIsStateful, (TF_OpDefinitionBuilder*, bool))                      \
  X(void, OpDefinitionBuilderSetShapeInferenceFunction, (TF_OpDefinitionBuilder*, ShapeFunction)) \
  X(void, RegisterOpDefinition, (TF_OpDefinitionBuilder*, TF_Status*))                            \
  X(TF_ShapeHandle*, NewShapeHandle, (void))                                                      \
  X(void, DeleteShapeHandle, (TF_ShapeHandle*))                                                   \
  X(int64_t, ShapeInferenceContextNumInputs, (TF_ShapeInferenceContext*))                         \
  X(void, ShapeInferenceContextGetInput,                                                          \
    (TF_ShapeInferenceContext*, int, TF_ShapeHandle*, TF_Status*))                                \
  X(void, ShapeInferenceContextSetOutput,                                                         \
    (TF_ShapeInferenceContext*, int, TF_ShapeHandle*, TF_Status*))                                \
  X(TF_ShapeHandle*, ShapeInferenceContextScalar, (TF_ShapeInferenceContext*))                    \
  X(TF_ShapeHandle*, ShapeInferenceContextVectorFromSize, (TF_ShapeInferenceContext*, size_t))    \
  X(int, ShapeInferenceContextRankKnown, (TF_ShapeInferenceContext*, TF_ShapeHandle*))            \
  X(void, ShapeInferenceContextWithRankAtLeast,                                                   \
    (TF_ShapeInferenceContext*, TF_ShapeHandle*, int64_t, TF_ShapeHandle*, TF_Status*))           \
  X(void, ShapeInferenceContextSubshape,                                                          \
    (TF_ShapeInferenceContext*, TF_ShapeHandle*, int64_t, int64_t, TF_ShapeHandle*, TF_Status*))  \
  X(void, ShapeInferenceContextConcatenateShapes,                                                 \
    (TF_ShapeInferenceContext*, TF_ShapeHandle*, TF_ShapeHandle*, TF_ShapeHandle*, TF_Status*))

// For kernels on GPUs; null where a release lacks one.
#define HVD_TENSORFLOW_GPU_FUNCTIONS(X)                          \
  X(SP_Stream_st*, GetStream, (TF_OpKernelContext*, TF_Status*)) \
  X(int, GetDeviceId, (TF_OpKernelContext*))                     \
  X(void, KernelBuilder_HostMemory, (TF_KernelBuilder*, const char*))

struct Api {
#define HVD_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
  HVD_TENSORFLOW_FUNCTIONS(HVD_MEMBER)
  HVD_TENSORFLOW_GPU_FUNCTIONS(HVD_MEMBER)
#undef HVD_MEMBER
  std::string missing_for_gpus;  // names; empty: nothing
};

// The functions of the TensorFlow in this process; valid after load_api() has succeeded.
const Api& api();

// Finds TensorFlow in this process. Empty: found; otherwise what is missing.
std::string load_api();

}  // namespace hvd::tensorflow
