#include "bindings/tensorflow/api.h"

#include <dlfcn.h>

namespace hvd::tensorflow {
namespace {

// The library that exports the interface in every release; `import tensorflow` has loaded it.
constexpr const char* kLibrary = "libtensorflow_framework.so.2";

// Never destroyed: kernels may run while the process ends.
Api& table() {
  static Api* const the_table = new Api;
  return *the_table;
}

template <typename Function>
void look_up(void* library, const char* name, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) missing += missing.empty() ? name : std::string(", ") + name;
}

}  // namespace

const Api& api() { return table(); }

std::string load_api() {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr)
    return std::string(kLibrary) + " is not loaded in this process: import tensorflow first";
  std::string missing;
#define HVD_LOOK_UP(result, name, parameters) look_up(library, "TF_" #name, table().name, missing);
  HVD_TENSORFLOW_FUNCTIONS(HVD_LOOK_UP)
#undef HVD_LOOK_UP
#define HVD_LOOK_UP(result, name, parameters) \
  look_up(library, "TF_" #name, table().name, table().missing_for_gpus);
  HVD_TENSORFLOW_GPU_FUNCTIONS(HVD_LOOK_UP)
#undef HVD_LOOK_UP
  if (missing.empty()) return "";
  return "this TensorFlow does not offer " + missing + "; expected TensorFlow 2.13 or newer";
}

}  // namespace hvd::tensorflow
