// registration.h - definitions of ops and their kernels, as TensorFlow registers them.
#pragma once

#include <string>

namespace hvd::tensorflow {

// Each defines its ops and kernels; failures go to `problems`. Called while the plug-in is loaded.
void register_collectives(std::string& problems);
void register_queries(std::string& problems);

// Kernels for device type "GPU"; see the README about which devices these are. Once, when asked
// for.
void register_gpu_collectives(std::string& problems);

}  // namespace hvd::tensorflow
