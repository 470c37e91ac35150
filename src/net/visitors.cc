#include "net/visitors.h"

#include <algorithm>

#include "base/text.h"

namespace hvd::net {
namespace {

constexpr size_t kMostAdmitted = 65536;
constexpr size_t kMostAddressesPerRank = 8;

Address without_port(Address address) {
  address.port = 0;
  return address;
}

}  // namespace

std::string host_text(const Address& address) {
  std::string text = to_text(address);
  text.resize(text.rfind(':'));
  if (text.starts_with('[')) text = text.substr(1, text.size() - 2);
  return text;
}

bool is_same_host(const Address& a, const Address& b) {
  return shares_prefix(a, b, a.family == Family::kIpv4 ? 32 : 64);
}

void Visitors::note_admitted(int32_t rank, const Address& from) {
  if (admitted_.size() >= kMostAdmitted && !admitted_.contains(rank)) return;
  auto& places = admitted_[rank];
  if (places.size() < kMostAddressesPerRank) places.insert(host_text(from));
}

void Visitors::note_refused(const Address& from) {
  ++refused_;
  const Address source = without_port(from);
  const auto known = std::find_if(sources_.begin(), sources_.end(),
                                  [&](const Source& one) { return one.from == source; });
  if (known != sources_.end()) {
    ++known->count;
  } else if (sources_.size() < kMostSources) {
    sources_.push_back({source, 1});
  }
}

TimePoint Visitors::summary_due() const {
  if (refused_ <= kMostLines || refused_ == told_) return TimePoint::max();
  return next_summary_;
}

std::string Visitors::summary(TimePoint now) {
  if (now < summary_due()) return "";
  const uint64_t more = refused_ - std::max(told_, kMostLines);
  told_ = refused_;
  // The first goes out at once, for those who look now.
  next_summary_ = now + kSummaryPeriod;
  const auto most =
      std::max_element(sources_.begin(), sources_.end(),
                       [](const Source& a, const Source& b) { return a.count < b.count; });
  return concat("refused ", more, " more connections (", refused_, " in all, ", most->count,
                " of them from ", host_text(most->from),
                "); from now on once a minute if there are more");
}

bool RecentNonces::add(const Nonce& nonce) {
  if (!known_.insert(nonce).second) return false;
  order_.push_back(nonce);
  if (order_.size() > kMost) {
    known_.erase(order_.front());
    order_.pop_front();
  }
  return true;
}

}  // namespace hvd::net
