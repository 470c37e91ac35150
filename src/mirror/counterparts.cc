#include "mirror/counterparts.h"

#include <algorithm>

namespace hvd::mirror {

bool Members::spans_hosts() const {
  return std::adjacent_find(host_of.begin(), host_of.end(), std::not_equal_to<>()) != host_of.end();
}

std::vector<int> Members::on_host(int32_t host) const {
  std::vector<int> found;
  for (size_t member = 0; member < host_of.size(); ++member) {
    if (host_of[member] == host) found.push_back(static_cast<int>(member));
  }
  return found;
}

std::vector<int32_t> Members::hosts() const {
  std::vector<int32_t> found = host_of;
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

int receiver_of(const Members& members, int member, int32_t host) {
  const std::vector<int> there = members.on_host(host);
  if (there.empty()) return -1;
  const std::vector<int> here = members.on_host(members.host_of[static_cast<size_t>(member)]);
  const auto place =
      static_cast<size_t>(std::find(here.begin(), here.end(), member) - here.begin());
  return there[place % there.size()];
}

std::vector<int> senders_to(const Members& members, int receiver) {
  const int32_t host = members.host_of[static_cast<size_t>(receiver)];
  std::vector<int> found;
  for (int member = 0; member < static_cast<int>(members.ranks.size()); ++member) {
    if (members.host_of[static_cast<size_t>(member)] != host &&
        receiver_of(members, member, host) == receiver)
      found.push_back(member);
  }
  return found;
}

}  // namespace hvd::mirror
