#include "topology/places.h"

#include "base/text.h"

namespace hvd::topology {

Status place_on_equal_hosts(const Environment& environment, int32_t index, int32_t host_count,
                            const char* index_name, LauncherFacts& facts) {
  HVD_TRY_ASSIGN(const auto given,
                 position_variables(environment, "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE"));
  const Position local = given.value_or(Position{});
  if (int64_t{host_count} * local.size > INT32_MAX) {
    return invalid_argument(concat("HOROVOD_LOCAL_SIZE: ", local.size, " ranks on each of ",
                                   host_count, " hosts are too many"));
  }
  facts.world = Position{index * local.size + local.rank, host_count * local.size, index_name,
                         "HOROVOD_SIZE"};
  facts.local = local;
  facts.cross = Position{index, host_count, index_name, index_name};
  return Status::ok();
}

}  // namespace hvd::topology
