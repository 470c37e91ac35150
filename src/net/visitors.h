// visitors.h - who came to a listener: whom it let in, whom it refused and how often, and when that
// is worth a line in the log. Bounded, whatever strangers do. One thread; never blocks.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "net/address.h"

namespace hvd::net {

// "10.0.0.1", "fd00::2": an address without its port.
std::string host_text(const Address& address);
// The same address, or for IPv6, where a host may take as many as it likes, the same network.
bool is_same_host(const Address& a, const Address& b);

class Visitors {
 public:
  struct Source {
    Address from;  // without its port
    uint64_t count = 0;
  };

  void note_admitted(int32_t rank, const Address& from);
  void note_refused(const Address& from);

  // The addresses that ranks (-1: somebody without a rank) came from, in the order of ranks.
  const std::map<int32_t, std::set<std::string>>& admitted() const { return admitted_; }
  uint64_t refused() const { return refused_; }
  // The first kMostSources of them; what came from others is in refused() alone.
  const std::vector<Source>& sources() const { return sources_; }

  // Whether a single refusal gets a line of its own: the first few do.
  bool is_worth_a_line() const { return refused_ <= kMostLines; }
  // Then a line per minute says how many there were; empty: nothing to say now.
  std::string summary(TimePoint now);
  // When summary() may have something to say; TimePoint::max(): nothing is due.
  TimePoint summary_due() const;

  static constexpr uint64_t kMostLines = 8;
  static constexpr size_t kMostSources = 64;
  static constexpr auto kSummaryPeriod = std::chrono::minutes(1);

 private:
  std::map<int32_t, std::set<std::string>> admitted_;
  std::vector<Source> sources_;
  uint64_t refused_ = 0;
  uint64_t told_ = 0;
  TimePoint next_summary_ = TimePoint::min();
};

// The random numbers of recent diallers: one that comes twice is a recording. Only numbers with a
// proof are remembered, so that a stranger cannot push others out.
class RecentNonces {
 public:
  using Nonce = std::array<uint8_t, 32>;
  // False: it was here before.
  bool add(const Nonce& nonce);

  static constexpr size_t kMost = 1024;

 private:
  std::set<Nonce> known_;
  std::deque<Nonce> order_;
};

}  // namespace hvd::net
