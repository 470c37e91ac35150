// meeting.h - the members of a channel tell each other how Gloo reaches them, over the streams of
// collective/hosts, which are authenticated. A member that cannot take part says why, so that
// nobody waits for it. A state machine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collective/gloo/group.h"
#include "collective/hosts/host_link.h"
#include "collective/shared_memory/link.h"
#include "collective/task.h"

namespace hvd::collective::gloo {

// What travels from one member to another: an address, or why there is none. Pure.
inline constexpr size_t kCardBytes = 512;
void write_card(std::byte* card, const Result<std::string>& address);
Result<std::string> read_card(const std::byte* card);

class Meeting {
 public:
  // `group`: or why this member has none.
  Meeting(shared_memory::Link& local, hosts::HostLink& hosts,
          const Result<std::unique_ptr<Group>>& group);
  Progress advance() HVD_REQUIRES(engine_role) { return task_->advance(); }
  // When it is done: everybody's address, or the first that cannot take part.
  Result<std::vector<std::string>> addresses() const;

 private:
  const int me_;
  std::vector<std::byte> sent_, received_;  // a card per member
  Exchange exchange_;
  std::unique_ptr<Task> task_;
};

}  // namespace hvd::collective::gloo
