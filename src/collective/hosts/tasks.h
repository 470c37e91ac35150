// tasks.h - works of a channel whose members live on several hosts, as tasks: shared memory inside
// the host (`local`, over the members of this host, in the order of HostLayout), streams between
// hosts. A blocked task waits for members of this host, for the network (HostLink::wants()), or for
// either: whoever sleeps for it must take any news of this host (shm::WantKind::kAny) and those
// descriptors. When HostLink::status() is a failure the task stays blocked for ever.
#pragma once

#include <memory>

#include "collective/hosts/host_link.h"
#include "collective/shared_memory/link.h"
#include "collective/task.h"

namespace hvd::collective::hosts {

// Buffers of kReduceShared are treated like private ones.
std::unique_ptr<Task> make_task(shared_memory::Link& local, HostLink& hosts, Work& work);

std::unique_ptr<Task> make_reduce(shared_memory::Link& local, HostLink& hosts, Work& work);
std::unique_ptr<Task> make_exchange(shared_memory::Link& local, HostLink& hosts, Work& work);
std::unique_ptr<Task> make_adasum(shared_memory::Link& local, HostLink& hosts, Work& work);
std::unique_ptr<Task> make_fence(shared_memory::Link& local, HostLink& hosts, Work& work);

}  // namespace hvd::collective::hosts
