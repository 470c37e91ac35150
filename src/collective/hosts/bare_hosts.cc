#include "collective/hosts/bare_hosts.h"

#include <poll.h>
#include <sched.h>

#include <cerrno>
#include <numeric>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/text.h"
#include "collective/hosts/tasks.h"

namespace hvd::collective::hosts {
namespace {

constexpr int kYields = 200;
// Members of this host ring nobody here: look after them now and then.
constexpr int kLocalPollMs = 1;
constexpr int kNetworkPollMs = 100;

std::vector<int> identity(int size) {
  std::vector<int> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

BareHosts::BareHosts(shm::Job& job, net::Mesh& mesh, HostLinkOptions options)
    : local_ranks_(identity(job.size())),
      local_(job, job.base() + job.channel_pool_offset(), job.size(), job.rank(),
             local_ranks_.data()),
      hosts_(mesh, std::move(options)),
      spins_(job.size() > job.core_count() ? 0 : 1000) {}

Status BareHosts::allreduce(void* data, size_t count, DType dtype, ReduceOp op) {
  work_.reset(WorkKind::kReduce);
  Run& run = work_.next_run();
  run.numeric.dtype = run.numeric.slot_dtype = dtype;
  run.numeric.op = op == ReduceOp::kAverage ? ReduceOp::kSum : op;
  run.numeric.pre = Scale{};
  run.numeric.post = Scale{1.0, op == ReduceOp::kAverage ? hosts_.layout().size() : 1};
  run.add(data, data, count);
  return this->run(work_);
}

Status BareHosts::barrier() {
  work_.reset(WorkKind::kFence);
  return run(work_);
}

Status BareHosts::run(Work& work) {
  alone_with_the_engine();
  const auto task = make_task(local_, hosts_, work);
  Deadline deadline = Deadline::never();
  for (int idle = 0;;) {
    const Progress progress = task->advance();
    if (progress == Progress::kDone) return work.status;
    if (hosts_.has_failed()) return hosts_.status();
    if (progress == Progress::kAdvanced) {
      idle = 0;
      continue;
    }
    if (++idle == 1) deadline = Deadline::never();
    if (idle < spins_) {
      cpu_pause();
    } else if (idle < spins_ + kYields) {
      sched_yield();
    } else {
      if (deadline.is_never()) deadline = Deadline::after(std::chrono::seconds(60));
      HVD_TRY(wait_for_news());
      if (deadline.passed()) {
        return Status(StatusCode::kTimedOut,
                      concat("member ", hosts_.me(), " waited 60 s for the others"));
      }
    }
  }
}

Status BareHosts::wait_for_news() {
  std::vector<pollfd> descriptors;
  for (const HostLink::Want& want : hosts_.wants())
    descriptors.push_back({want.descriptor, want.events, 0});
  if (descriptors.empty()) {
    sched_yield();
    return Status::ok();
  }
  const int timeout = local_.size() > 1 ? kLocalPollMs : kNetworkPollMs;
  if (poll(descriptors.data(), descriptors.size(), timeout) < 0 && errno != EINTR)
    return errno_status("poll on data streams", errno);
  return Status::ok();
}

}  // namespace hvd::collective::hosts
