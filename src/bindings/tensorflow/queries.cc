// The ops that say where this process stands, when the graph runs: in an elastic job that changes.
#include <cstring>

#include "bindings/tensorflow/op_definition.h"
#include "bindings/tensorflow/registration.h"
#include "bindings/tensorflow/status.h"

namespace hvd::tensorflow {
namespace {

using Answer = int32_t (*)(int32_t process_set);

struct Query {
  Answer answer;
  int32_t process_set = 0;
};

int32_t rank(int32_t) { return hvd_rank(); }
int32_t local_rank(int32_t) { return hvd_local_rank(); }
int32_t local_size(int32_t) { return hvd_local_size(); }
int32_t size(int32_t process_set) { return hvd_process_set_size(process_set); }
int32_t included(int32_t process_set) { return hvd_process_set_included(process_set); }

template <Answer answer>
void* create(TF_OpKernelConstruction*) {
  return new Query{answer};
}

template <Answer answer>
void* create_for_set(TF_OpKernelConstruction* construction) {
  Query* const query = new Query{answer};
  Status status;
  api().OpKernelConstruction_GetAttrInt32(construction, "process_set_id", &query->process_set,
                                          status.get());
  if (!status.is_ok()) api().OpKernelConstruction_Failure(construction, status.get());
  return query;
}

void compute_query(void* kernel, TF_OpKernelContext* context) {
  const Query& query = *static_cast<const Query*>(kernel);
  Status status;
  const Tensor output(
      api().AllocateOutput(context, 0, kInt32, nullptr, 0, sizeof(int32_t), status.get()));
  if (!status.is_ok()) return api().OpKernelContext_Failure(context, status.get());
  const int32_t value = query.answer(query.process_set);
  std::memcpy(api().TensorData(output.get()), &value, sizeof(value));
}

void destroy_query(void* kernel) { delete static_cast<Query*>(kernel); }

void define(const char* name, CreateFunction create_query,
            std::initializer_list<const char*> attributes, std::string& problems) {
  register_op({name, attributes, {}, {"output: int32"}, &output_is_scalar, Effects::kStateful},
              problems);
  register_kernel(name, create_query, &compute_query, &destroy_query, problems);
}

}  // namespace

void register_queries(std::string& problems) {
  const std::initializer_list<const char*> of_set = {"process_set_id: int = 0"};
  define("HorovodSize", &create_for_set<size>, of_set, problems);
  define("HorovodProcessSetIncluded", &create_for_set<included>, of_set, problems);
  define("HorovodRank", &create<rank>, {}, problems);
  define("HorovodLocalRank", &create<local_rank>, {}, problems);
  define("HorovodLocalSize", &create<local_size>, {}, problems);
}

}  // namespace hvd::tensorflow
