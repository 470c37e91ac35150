// elastic_jobs.h - this process as a worker of an elastic job: where it stands comes from the
// launcher, once per epoch. Thread: any, as each function says.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/settings.h"
#include "base/status.h"
#include "elastic/channel.h"
#include "elastic/message.h"
#include "horovod/hvd.h"

namespace hvd::capi {

class ElasticJobs {
 public:
  ElasticJobs() = default;

  // Looks at the environment the first time. A socket that is not there shows at init.
  bool is_active();
  uint64_t epoch() const { return epoch_.load(std::memory_order_relaxed); }

  // `start` in one assigned world after the other, until it succeeds or fails for a reason that
  // another world would not change. May block.
  using Start = std::function<Status(const elastic::Assign&, const Interrupt&)>;
  Status run(const Environment& environment, const Start& start);

  hvd_elastic_news look();
  Status tell(const hvd_elastic_report& report);

 private:
  struct Found {
    Status status;  // why there is no channel although there should be
    std::unique_ptr<elastic::Channel> channel;
  };
  Found& found();

  // The epoch that was assigned last, or 0. Read by whoever asks; init alone writes it.
  std::atomic<uint64_t> epoch_{0};
};

}  // namespace hvd::capi
