// What Python calls, by ctypes.
#include <string>
#include <utility>

#include "bindings/mxnet/call.h"
#include "bindings/mxnet/sharing.h"

namespace {

hvd::mxnet::EngineKind engine_kind = hvd::mxnet::EngineKind::kThreaded;  // set once, by load

// The text of the last failure in this thread; valid until its next call.
thread_local std::string problem;

const char* report(std::string text) {
  problem = std::move(text);
  return problem.empty() ? nullptr : problem.c_str();
}

}  // namespace

#define HVD_MXNET_API extern "C" __attribute__((visibility("default")))

// Each returns NULL, or what is wrong.

// First of all: the open library, whether its engine is the naive one, and for learn_sharing an
// array, a view of it, and another array.
HVD_MXNET_API const char* hvd_mxnet_load(void* library, int naive, void* array, void* view,
                                         void* other) {
  std::string missing = hvd::mxnet::load_api(library);
  if (!missing.empty()) return report(std::move(missing));
  engine_kind = naive != 0 ? hvd::mxnet::EngineKind::kNaive : hvd::mxnet::EngineKind::kThreaded;
  if (!hvd::mxnet::learn_sharing(array, view, other))
    return report("views of an array cannot be recognized in this build of MXNet");
  return report({});
}

// Before MXNet ends with the process.
HVD_MXNET_API void hvd_mxnet_abandon() { hvd::mxnet::Call::abandon_all(); }

HVD_MXNET_API const char* hvd_mxnet_push(const hvd::mxnet::Operation* operation,
                                         void* const* inputs, void* const* outputs,
                                         const char* const* names) {
  return report(hvd::mxnet::Call::push(*operation, {inputs, outputs, names}, engine_kind));
}
