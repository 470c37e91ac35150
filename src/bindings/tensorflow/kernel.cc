#include "bindings/tensorflow/kernel.h"

#include <memory>

#include "bindings/tensorflow/status.h"

namespace hvd::tensorflow {
namespace {

// Reads attributes one after the other; the first failure ends the reading and is reported.
class AttributeReader {
 public:
  explicit AttributeReader(TF_OpKernelConstruction* construction) : construction_(construction) {}

  void read(const char* name, int32_t& value) {
    if (status_.is_ok())
      api().OpKernelConstruction_GetAttrInt32(construction_, name, &value, status_.get());
  }
  void read(const char* name, double& value) {
    float narrow = 1.0F;
    if (status_.is_ok())
      api().OpKernelConstruction_GetAttrFloat(construction_, name, &narrow, status_.get());
    value = narrow;
  }
  void read(const char* name, bool& value) {
    unsigned char byte = 0;
    if (status_.is_ok())
      api().OpKernelConstruction_GetAttrBool(construction_, name, &byte, status_.get());
    value = byte != 0;
  }
  void read(const char* name, std::string& value) {
    int32_t list_size = 0, bytes = 0;
    if (status_.is_ok())
      api().OpKernelConstruction_GetAttrSize(construction_, name, &list_size, &bytes,
                                             status_.get());
    if (!status_.is_ok() || bytes <= 0) return;
    value.resize(static_cast<size_t>(bytes));
    api().OpKernelConstruction_GetAttrString(construction_, name, value.data(), value.size(),
                                             status_.get());
  }

  // Tells TensorFlow about a failure.
  bool succeeded() {
    if (status_.is_ok()) return true;
    api().OpKernelConstruction_Failure(construction_, status_.get());
    return false;
  }

 private:
  TF_OpKernelConstruction* const construction_;
  Status status_;
};

}  // namespace

std::string operation_name(const OpTraits& traits, const std::string& tensor_name,
                           const std::string& node_name, bool ignore_name_scope) {
  std::string name = tensor_name;
  if (name.empty() && node_name != traits.op_name) {
    name = ignore_name_scope ? node_name.substr(node_name.rfind('/') + 1) : node_name;
  }
  return name.empty() ? name : std::string(traits.operation) + "." + name;
}

Kernel* make_kernel(const OpTraits& traits, Place place, TF_OpKernelConstruction* construction) {
  AttributeReader reader(construction);
  auto kernel = std::make_unique<Kernel>();
  kernel->traits = &traits;
  kernel->place = place;
  kernel->tensor_count = traits.takes_tensors ? 1 : 0;
  reader.read("process_set_id", kernel->process_set);
  if (traits.takes_tensors) {
    std::string tensor_name;
    bool ignore_name_scope = false;
    reader.read("tensor_name", tensor_name);
    reader.read("ignore_name_scope", ignore_name_scope);
    const StringView node = api().OpKernelConstruction_GetName(construction);
    kernel->name =
        operation_name(traits, tensor_name, std::string(node.data, node.size), ignore_name_scope);
  }
  if (traits.reduces) {
    reader.read("reduce_op", kernel->reduce_op);
    reader.read("prescale_factor", kernel->prescale);
    reader.read("postscale_factor", kernel->postscale);
    reader.read("wire_dtype", kernel->wire_dtype);
  }
  if (traits.is_group) reader.read("num_tensors", kernel->tensor_count);
  if (traits.kind == HVD_BROADCAST) reader.read("root_rank", kernel->root_rank);
  if (!reader.succeeded()) return nullptr;
  // The core takes a name once at a time; unnamed operations may be as many as they like.
  const std::string busy = traits.takes_tensors ? kernel->name : traits.operation;
  if (!busy.empty()) kernel->queue = std::to_string(kernel->process_set) + ":" + busy;
  return kernel.release();
}

}  // namespace hvd::tensorflow
