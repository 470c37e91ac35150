// The ops that talk to other ranks.
#include "bindings/tensorflow/call.h"
#include "bindings/tensorflow/kernel.h"
#include "bindings/tensorflow/op_definition.h"
#include "bindings/tensorflow/registration.h"

namespace hvd::tensorflow {
namespace {

constexpr const char* kReducible =
    "T: {uint8, int8, uint16, int16, int32, int64, half, bfloat16, float, double}";
constexpr const char* kMovable =
    "T: {uint8, int8, uint16, int16, int32, int64, half, bfloat16, float, double, bool}";

// Of every op with tensors. tensor_name: what ranks match by, instead of the node's name.
constexpr const char* kTensorName = "tensor_name: string = ''";
constexpr const char* kIgnoreScope = "ignore_name_scope: bool = false";
constexpr const char* kProcessSet = "process_set_id: int = 0";
constexpr const char* kCount = "num_tensors: int >= 1";
// Of every op that reduces.
constexpr const char* kReduceOp = "reduce_op: int";
constexpr const char* kPrescale = "prescale_factor: float = 1.0";
constexpr const char* kPostscale = "postscale_factor: float = 1.0";
constexpr const char* kWire = "wire_dtype: int = -1";

//                                op                          word                     kind
//                                group  reduces keeps  tensors
constexpr OpTraits kAllreduce = {
    "HorovodAllreduce", "allreduce", HVD_ALLREDUCE, false, true, true, true};
constexpr OpTraits kGroupedAllreduce = {
    "HorovodGroupedAllreduce", "grouped_allreduce", HVD_ALLREDUCE, true, true, true, true};
constexpr OpTraits kAllgather = {
    "HorovodAllgather", "allgather", HVD_ALLGATHER, false, false, false, true};
constexpr OpTraits kGroupedAllgather = {
    "HorovodGroupedAllgather", "grouped_allgather", HVD_ALLGATHER, true, false, false, true};
constexpr OpTraits kBroadcast = {
    "HorovodBroadcast", "broadcast", HVD_BROADCAST, false, false, true, true};
constexpr OpTraits kAlltoall = {
    "HorovodAlltoall", "alltoall", HVD_ALLTOALL, false, false, false, true};
constexpr OpTraits kReducescatter = {
    "HorovodReducescatter", "reducescatter", HVD_REDUCESCATTER, false, true, false, true};
constexpr OpTraits kGroupedReducescatter = {"HorovodGroupedReducescatter",
                                            "grouped_reducescatter",
                                            HVD_REDUCESCATTER,
                                            true,
                                            true,
                                            false,
                                            true};
constexpr OpTraits kJoin = {"HorovodJoin", "join", HVD_JOIN, false, false, false, false};
constexpr OpTraits kBarrier = {
    "HorovodBarrier", "barrier", HVD_BARRIER, false, false, false, false};

template <const OpTraits& traits, Place place>
void* create(TF_OpKernelConstruction* construction) {
  return make_kernel(traits, place, construction);
}

void compute(void* kernel, TF_OpKernelContext* context, TF_AsyncOpKernelDoneCallback* done) {
  Call::start(*static_cast<const Kernel*>(kernel), context, done);
}

void destroy(void* kernel) { delete static_cast<Kernel*>(kernel); }

template <const OpTraits& traits>
void add_kernel(std::string& problems) {
  register_kernel(traits.op_name, &create<traits, Place::kHost>, &compute, &destroy, problems);
}

template <const OpTraits& traits>
void add_gpu_kernel(std::initializer_list<const char*> on_host, std::string& problems) {
  register_gpu_kernel(traits.op_name, &create<traits, Place::kGpu>, &compute, &destroy, on_host,
                      problems);
}

void define_reductions(std::string& problems) {
  register_op({kAllreduce.op_name,
               {kReducible, kReduceOp, kPrescale, kPostscale, kIgnoreScope, kProcessSet,
                kTensorName, kWire},
               {"tensor: T"},
               {"sum: T"},
               &outputs_like_inputs},
              problems);
  register_op({kGroupedAllreduce.op_name,
               {kReducible, kReduceOp, kPrescale, kPostscale, kIgnoreScope, kProcessSet, kCount,
                kTensorName, kWire},
               {"tensors: num_tensors * T"},
               {"sum: num_tensors * T"},
               &outputs_like_inputs},
              problems);
  register_op({kReducescatter.op_name,
               {kReducible, kReduceOp, kPrescale, kPostscale, kIgnoreScope, kProcessSet,
                kTensorName, kWire},
               {"tensor: T"},
               {"output: T"},
               &outputs_with_other_rows},
              problems);
  register_op({kGroupedReducescatter.op_name,
               {kReducible, kReduceOp, kPrescale, kPostscale, kIgnoreScope, kProcessSet, kCount,
                kTensorName, kWire},
               {"tensors: num_tensors * T"},
               {"outputs: num_tensors * T"},
               &outputs_with_other_rows},
              problems);
}

void define_movements(std::string& problems) {
  register_op({kAllgather.op_name,
               {kMovable, kIgnoreScope, kProcessSet, kTensorName},
               {"tensor: T"},
               {"output: T"},
               &outputs_with_other_rows},
              problems);
  register_op({kGroupedAllgather.op_name,
               {kMovable, kIgnoreScope, kProcessSet, kCount, kTensorName},
               {"tensors: num_tensors * T"},
               {"outputs: num_tensors * T"},
               &outputs_with_other_rows},
              problems);
  register_op({kBroadcast.op_name,
               {kMovable, "root_rank: int", kIgnoreScope, kProcessSet, kTensorName},
               {"tensor: T"},
               {"output: T"},
               &outputs_like_inputs},
              problems);
  register_op({kAlltoall.op_name,
               {kMovable, kIgnoreScope, kProcessSet, kTensorName},
               {"tensor: T", "splits: int32"},
               {"output: T", "received_splits: int32"},
               &outputs_of_alltoall},
              problems);
}

void define_meetings(std::string& problems) {
  register_op(
      {kJoin.op_name, {kProcessSet}, {}, {"output: int32"}, &output_is_scalar, Effects::kStateful},
      problems);
  register_op({kBarrier.op_name, {kProcessSet}, {}, {}, &no_outputs, Effects::kStateful}, problems);
}

}  // namespace

void register_collectives(std::string& problems) {
  define_reductions(problems);
  define_movements(problems);
  define_meetings(problems);
  add_kernel<kAllreduce>(problems);
  add_kernel<kGroupedAllreduce>(problems);
  add_kernel<kAllgather>(problems);
  add_kernel<kGroupedAllgather>(problems);
  add_kernel<kBroadcast>(problems);
  add_kernel<kAlltoall>(problems);
  add_kernel<kReducescatter>(problems);
  add_kernel<kGroupedReducescatter>(problems);
  add_kernel<kJoin>(problems);
  add_kernel<kBarrier>(problems);
}

void register_gpu_collectives(std::string& problems) {
  if (!api().missing_for_gpus.empty()) {
    problems = "this TensorFlow does not offer " + api().missing_for_gpus;
    return;
  }
  add_gpu_kernel<kAllreduce>({}, problems);
  add_gpu_kernel<kGroupedAllreduce>({}, problems);
  add_gpu_kernel<kAllgather>({}, problems);
  add_gpu_kernel<kGroupedAllgather>({}, problems);
  add_gpu_kernel<kBroadcast>({}, problems);
  add_gpu_kernel<kAlltoall>({"splits", "received_splits"}, problems);
  add_gpu_kernel<kReducescatter>({}, problems);
  add_gpu_kernel<kGroupedReducescatter>({}, problems);
}

}  // namespace hvd::tensorflow
