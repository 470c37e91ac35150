// mpi_store.h - the rendezvous over MPI. Rank 0 is in the middle: what it sets reaches all, what
// others set reaches rank 0 (and themselves), which is what a gathering needs. One thread at a
// time.
#pragma once

#include <map>
#include <string>

#include "mpi/group.h"
#include "store/store.h"

namespace hvd::mpi {

class MpiStore final : public store::Store {
 public:
  explicit MpiStore(Group& group) : group_(group) {}

  Status set(std::string_view key, std::string_view value, Deadline deadline) override;
  Result<std::string> get(std::string_view key, Deadline deadline) override;

 private:
  Group& group_;
  std::map<std::string, std::string, std::less<>> own_;
};

}  // namespace hvd::mpi
