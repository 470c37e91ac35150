// Loading: tf.load_op_library opens this file, and what its constructor registers becomes ops.
#include <string>

#include "bindings/tensorflow/api.h"
#include "bindings/tensorflow/registration.h"

namespace {

// Never destroyed, and made when first asked for: the constructor below runs before those of
// objects.
std::string& report() {
  static std::string* const text = new std::string("the plug-in has not been loaded");
  return *text;
}

__attribute__((constructor)) void load() {
  report() = hvd::tensorflow::load_api();
  if (!report().empty()) return;
  hvd::tensorflow::register_collectives(report());
  hvd::tensorflow::register_queries(report());
}

}  // namespace

// What went wrong while loading; empty: nothing.
extern "C" __attribute__((visibility("default"))) const char* hvd_tensorflow_report() {
  return report().c_str();
}

// Adds kernels for tensors on GPUs. What went wrong; empty: nothing.
extern "C" __attribute__((visibility("default"))) const char* hvd_tensorflow_register_gpu() {
  static const std::string* const problems = [] {
    auto* const text = new std::string();
    hvd::tensorflow::register_gpu_collectives(*text);
    return text;
  }();
  return problems->c_str();
}
