#include "gloo_peer.h"

namespace hvd::bench {

std::unique_ptr<GlooPeer> GlooPeer::connect(const Place&) { return nullptr; }

}  // namespace hvd::bench
