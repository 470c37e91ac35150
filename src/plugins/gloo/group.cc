#include "plugins/gloo/group.h"

#include <gloo/transport/pair.h>

#include <utility>

// Wakes whoever waits in this context, with an IoException of this text. Gloo keeps the function to
// itself, and Debian's headers of the class cannot be included, so it is called by its name: a
// member function takes its object as the first argument. (Closing the connections does not wake
// anybody.) A Gloo that lacks it cannot be loaded, which is as it should be.
extern "C" void
hvd_gloo_signal_exception(gloo::transport::Context* self, const std::string& text) __asm__(
    "_ZN4gloo9transport3tcp7Context15signalExceptionERKNSt7__cxx1112basic_stringIcSt11"
    "char_traitsIcESaIcEEE");

namespace hvd_gloo {
namespace {

// Slots of our own are apart from those of Gloo's collectives, whose highest byte is small.
constexpr uint64_t kSettleSlot = uint64_t{0x48} << 56;
constexpr std::chrono::milliseconds kFarewellTime{3000};

}  // namespace

// Gloo connects contexts by a store that it polls; the core brings the addresses instead.
class Group::Context final : public gloo::Context {
 public:
  Context(int my_rank, int members, std::shared_ptr<gloo::transport::Device> device,
          std::shared_ptr<gloo::transport::Context> transport)
      : gloo::Context(my_rank, members) {
    device_ = std::move(device);
    transportContext_ = std::move(transport);
  }
};

Group::Group(std::shared_ptr<gloo::transport::Device> device, int rank, int size,
             std::chrono::milliseconds time_limit)
    : rank_(rank),
      size_(size),
      time_limit_(time_limit),
      transport_(device->createContext(rank, size)),
      told_(static_cast<size_t>(size)),
      heard_(static_cast<size_t>(size)) {
  transport_->setTimeout(time_limit);
  for (int peer = 0; peer < size; ++peer) {
    if (peer != rank) transport_->createPair(peer);
  }
  context_ = std::make_shared<Context>(rank, size, std::move(device), transport_);
  context_->setTimeout(time_limit);
}

Group::~Group() {
  if (!owes_settling_ || is_broken_.load()) return;
  try {
    settle(kFarewellTime);
  } catch (...) {  // a peer that has gone needs nothing any more
  }
}

std::vector<char> Group::address_for(int peer) const {
  return transport_->getPair(peer)->address().bytes();
}

void Group::connect(const void* const* addresses, const size_t* lengths) {
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    const auto i = static_cast<size_t>(peer);
    const auto* bytes = static_cast<const char*>(addresses[i]);
    transport_->getPair(peer)->connect({bytes, bytes + lengths[i]});
  }
  for (int peer = 0; peer < size_; ++peer) {
    const auto i = static_cast<size_t>(peer);
    telling_.push_back(transport_->createUnboundBuffer(&told_[i], 1));
    hearing_.push_back(transport_->createUnboundBuffer(&heard_[i], 1));
  }
  is_connected_ = true;
}

void Group::abort(const std::string& why) {
  is_broken_.store(true);
  hvd_gloo_signal_exception(transport_.get(), why);
}

void Group::begin() {
  if (owes_settling_) settle(time_limit_);
}

void Group::finish() {
  if (is_alone()) return;
  const uint64_t slot = kSettleSlot | tag_;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    hearing_[static_cast<size_t>(peer)]->recv(peer, slot);
    telling_[static_cast<size_t>(peer)]->send(peer, slot);
  }
  owes_settling_ = true;
}

void Group::settle(std::chrono::milliseconds time_limit) {
  owes_settling_ = false;
  const auto end = std::chrono::steady_clock::now() + time_limit;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    telling_[static_cast<size_t>(peer)]->waitSend(end);
    hearing_[static_cast<size_t>(peer)]->waitRecv(end);
  }
}

}  // namespace hvd_gloo
