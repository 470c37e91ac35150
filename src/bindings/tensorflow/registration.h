// registration.h - definitions of ops and their kernels, as TensorFlow registers them.
#pragma once

#include <string>

namespace hvd::tensorflow {

// Each defines its ops and kernels; failures go to `problems`. Called while the plug-in is loaded.
void register_collectives(std::string& problems);
void register_queries(std::string& problems);

}  // namespace hvd::tensorflow
