#include "bindings/mxnet/api.h"

#include <dlfcn.h>

namespace hvd::mxnet {
namespace {

Api& table() {
  static Api functions;
  return functions;
}

}  // namespace

const Api& api() { return table(); }

std::string load_api(void* library) {
  Api found;
#define HVD_FIND(result, name, parameters)                                    \
  found.name = reinterpret_cast<result(*) parameters>(dlsym(library, #name)); \
  if (found.name == nullptr) return "MXNet's library has no function " #name;
  HVD_MXNET_FUNCTIONS(HVD_FIND)
#undef HVD_FIND
  table() = found;
  return {};
}

}  // namespace hvd::mxnet
