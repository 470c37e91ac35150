// The handlers that Python registers with XLA, one per platform.
#include "bindings/jax/call.h"
#include "bindings/jax/ffi.h"

namespace {

using hvd::jax::CallFrame;
using hvd::jax::Error;

// XLA asks which version a handler speaks. 0.1 is accepted by every release; a newer one than XLA
// knows would make the whole platform unusable.
bool answer_metadata(const CallFrame& frame) {
  if (frame.extensions == nullptr || frame.extensions->type != hvd::jax::kMetadataExtension)
    return false;
  auto* const query = reinterpret_cast<hvd::jax::MetadataExtension*>(frame.extensions);
  query->metadata->api_version.major = 0;
  query->metadata->api_version.minor = 1;
  query->metadata->traits = 0;
  return true;
}

}  // namespace

// Memory of a GPU.
extern "C" __attribute__((visibility("default"))) Error* hvd_jax_cuda(CallFrame* frame) {
  if (answer_metadata(*frame) || frame->stage != hvd::jax::kExecute) return nullptr;
  return hvd::jax::Call::run_on_gpu(*frame);
}

// Host memory.
extern "C" __attribute__((visibility("default"))) Error* hvd_jax_cpu(CallFrame* frame) {
  if (answer_metadata(*frame) || frame->stage != hvd::jax::kExecute) return nullptr;
  return hvd::jax::Call::run(*frame);
}

// By Python, when it ends.
extern "C" __attribute__((visibility("default"))) void hvd_jax_abandon() {
  hvd::jax::Call::abandon_all();
}
