#include "launch/job/audit.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/text.h"

namespace hvd::launch {
namespace {

constexpr size_t kMostPlaces = 64;
constexpr size_t kMostRefusers = 8;

// 0, 1, 2, 5 -> "0-2,5"
std::string ranges_text(const std::vector<int32_t>& ranks) {
  std::string out;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i;
    while (end + 1 < ranks.size() && ranks[end + 1] == ranks[end] + 1) ++end;
    if (!out.empty()) out += ',';
    out += end == i ? concat(ranks[i]) : concat(ranks[i], "-", ranks[end]);
    i = end + 1;
  }
  return out;
}

std::string joined_text(const net::Visitors& visitors) {
  std::map<std::string, std::vector<int32_t>> by_place;  // ranks ascend, as the source does
  for (const auto& [rank, places] : visitors.admitted()) {
    by_place[join_text(places, " and ")].push_back(rank);
  }
  std::vector<std::string> items;
  for (const auto& [place, ranks] : by_place) {
    items.push_back(
        concat(ranks.size() == 1 ? "rank " : "ranks ", ranges_text(ranks), " from ", place));
  }
  return items.empty() ? "nobody joined" : join_text(items, "; ", kMostPlaces);
}

std::string refused_text(const net::Visitors& visitors) {
  if (visitors.refused() == 0) return "nobody was refused";
  std::vector<net::Visitors::Source> sources = visitors.sources();
  std::stable_sort(sources.begin(), sources.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  std::vector<std::string> items;
  for (const auto& [from, count] : sources) {
    items.push_back(concat(count, " from ", net::host_text(from)));
  }
  return concat("refused ", visitors.refused(),
                visitors.refused() == 1 ? " connection (" : " connections (",
                join_text(items, ", ", kMostRefusers), ")");
}

}  // namespace

std::string audit_line(const AuditFacts& facts) {
  if (facts.visitors == nullptr && facts.joining == nullptr) {
    return "horovodrun: audit: one host, no port was open; key random for this job\n";
  }
  static const net::Visitors kNobody;
  const net::Visitors& ranks = facts.visitors != nullptr ? *facts.visitors : kNobody;
  const bool joins = facts.joining != nullptr;
  std::string refused;
  if (facts.visitors != nullptr) refused = concat(refused_text(ranks), " at the job's store");
  if (joins) {
    refused +=
        concat(refused.empty() ? "" : ", ", refused_text(*facts.joining), " at the port of --join");
  }
  return concat("horovodrun: audit: ", joined_text(ranks), "; key random for this job, through ",
                joins ? "connections that the key of --key-file opened" : "ssh", "; HOROVOD_TLS ",
                facts.tls.empty() ? "is not set" : concat("is ", facts.tls), "; ", refused,
                "; the ranks' own ports are not counted: see their logs\n");
}

}  // namespace hvd::launch
