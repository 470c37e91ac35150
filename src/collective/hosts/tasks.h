// tasks.h - works of a channel whose members live on several hosts, as tasks: shared memory inside
// the host (`local`, over the members of this host, in the order of HostLayout), streams between
// hosts. A blocked task waits for members of this host, for the network (HostLink::wants()), or for
// either: whoever sleeps for it must take any news of this host (shm::WantKind::kAny) and those
// descriptors. When HostLink::status() is a failure the task stays blocked for ever.
// Needs the engine role.
#pragma once

#include <memory>

#include "collective/hosts/host_link.h"
#include "collective/native/task.h"

namespace hvd::hosts {

// Buffers of kReduceShared are treated like private ones.
std::unique_ptr<native::Task> make_task(native::Link& local, HostLink& hosts, native::Work& work);

std::unique_ptr<native::Task> make_reduce(native::Link& local, HostLink& hosts, native::Work& work);
std::unique_ptr<native::Task> make_exchange(native::Link& local, HostLink& hosts,
                                            native::Work& work);
std::unique_ptr<native::Task> make_adasum(native::Link& local, HostLink& hosts, native::Work& work);
std::unique_ptr<native::Task> make_fence(native::Link& local, HostLink& hosts, native::Work& work);

}  // namespace hvd::hosts
