#include "collective/gloo/meeting.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "collective/hosts/exchange.h"

namespace hvd::collective::gloo {
namespace {

struct CardHead {
  uint32_t is_address;
  uint32_t bytes;
};
constexpr size_t kMostCardText = kCardBytes - sizeof(CardHead);

}  // namespace

void write_card(std::byte* card, const Result<std::string>& address) {
  const std::string& text = address ? *address : address.status().message();
  const size_t bytes = std::min(text.size(), kMostCardText);
  // An address that is cut is none.
  const CardHead head{address.is_ok() && bytes == text.size() && bytes > 0 ? 1u : 0u,
                      static_cast<uint32_t>(bytes)};
  std::memcpy(card, &head, sizeof head);
  std::memcpy(card + sizeof head, text.data(), bytes);
}

Result<std::string> read_card(const std::byte* card) {
  CardHead head{};
  std::memcpy(&head, card, sizeof head);
  if (head.bytes > kMostCardText || head.is_address > 1)
    return corrupted("what it says about its Gloo makes no sense");
  std::string text(reinterpret_cast<const char*>(card) + sizeof head, head.bytes);
  if (head.is_address == 0)
    return precondition_error(text.empty() ? "it has no address for Gloo" : text);
  return text;
}

Meeting::Meeting(shared_memory::Link& local, hosts::HostLink& hosts,
                 const Result<std::unique_ptr<Group>>& group)
    : me_(hosts.me()) {
  const auto size = static_cast<size_t>(hosts.layout().size());
  sent_.resize(size * kCardBytes);
  received_.resize(size * kCardBytes);
  for (size_t r = 0; r < size; ++r) {
    const bool is_me = static_cast<int>(r) == me_;
    exchange_.send_offset.push_back(r * kCardBytes);
    exchange_.receive_offset.push_back(r * kCardBytes);
    exchange_.send_bytes.push_back(kCardBytes);
    exchange_.receive_bytes.push_back(kCardBytes);
    if (is_me) continue;
    write_card(sent_.data() + r * kCardBytes,
               group ? Result<std::string>((*group)->address_for(static_cast<int>(r)))
                     : Result<std::string>(group.status()));
  }
  exchange_.moves_bytes = true;  // nobody between the hosts may change an address
  exchange_.largest_block_bytes = kCardBytes;
  exchange_.in = sent_.data();
  exchange_.out = received_.data();
  task_ = hosts::make_pairwise(local, hosts, exchange_);
}

Result<std::vector<std::string>> Meeting::addresses() const {
  std::vector<std::string> out;
  for (size_t r = 0; r * kCardBytes < received_.size(); ++r) {
    out.emplace_back();
    if (static_cast<int>(r) == me_) continue;
    auto address = read_card(received_.data() + r * kCardBytes);
    if (!address) {
      return Status(
          address.status().code(),
          concat("Gloo: member ", r, " of the process set: ", address.status().message()));
    }
    out.back() = std::move(*address);
  }
  return out;
}

}  // namespace hvd::collective::gloo
