// tasks.h - the works of members that share memory, as tasks.
#pragma once

#include <memory>

#include "collective/shared_memory/link.h"
#include "collective/shares.h"
#include "collective/task.h"

namespace hvd::collective::shared_memory {

std::unique_ptr<Task> make_staged_reduce(Link& link, Work& work);  // any number of ranks
std::unique_ptr<Task> make_shared_reduce(Link& link,
                                         Work& work);  // buffers of all ranks lie in shared memory
std::unique_ptr<Task> make_exchange(Link& link, Work& work);
std::unique_ptr<Task> make_adasum(Link& link, Work& work);
std::unique_ptr<Task> make_fence(Link& link, Work& work);

}  // namespace hvd::collective::shared_memory
