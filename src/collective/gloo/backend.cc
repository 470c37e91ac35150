#include "collective/gloo/backend.h"

#include "base/log.h"
#include "base/text.h"
#include "collective/gloo/exchange.h"
#include "collective/gloo/reduce.h"
#include "shm/job_layout.h"

namespace hvd::collective::gloo {
namespace {

// A call that was ended comes back at once; a kernel or a copy has to finish first.
constexpr std::chrono::seconds kLetGoTime{30};

Capabilities rows_for(int members, const DomainOptions& options) {
  const Capability moves{
      .kind = WorkKind::kExchange, .dtypes = {}, .ops = {}, .takes_objects = false};
  Capability reduces{.kind = WorkKind::kReduce, .least_bytes = options.least_reduce_bytes};
  Capabilities rows = {moves, reduces};
  // What every member combines at once has a bound.
  reduces.kind = WorkKind::kExchange;
  if (members <= static_cast<int>(shm::kMaxRanks)) rows.push_back(reduces);
  return rows;
}

}  // namespace

class GlooBackend::GlooTask final : public Task {
 public:
  GlooTask(GlooBackend& backend, Work& work) : backend_(backend), work_(work) {}
  Progress advance() HVD_REQUIRES(engine_role) override {
    if (!backend_.failure_.is_ok()) return Progress::kBlocked;
    if (backend_.is_connected_) return backend_.run(work_);
    const Progress progress = backend_.connect();
    return progress == Progress::kDone ? Progress::kAdvanced : progress;
  }

 private:
  GlooBackend& backend_;
  Work& work_;
};

GlooBackend::GlooBackend(shared_memory::Link& local, hosts::HostLink& hosts, Domain& domain)
    : StreamBackend(local, hosts),
      domain_(domain),
      layout_(hosts.layout()),
      my_host_(hosts.my_host()),
      members_here_(local.size()),
      capabilities_(rows_for(hosts.layout().size(), domain.options())) {}

GlooBackend::~GlooBackend() { abandon(); }

std::unique_ptr<Task> GlooBackend::make_task(Work& work) {
  return std::make_unique<GlooTask>(*this, work);
}

Progress GlooBackend::fail(const Status& failure) {
  failure_ = failure;
  return Progress::kBlocked;
}

Progress GlooBackend::connect() {
  if (!worker_.is_idle()) {
    if (connect_deadline_.passed() && !worker_.is_done())
      group_->abort("timed out waiting for connections");
    if (!worker_.is_done()) return Progress::kBlocked;
    if (const Status status = worker_.take(); !status) return fail(status);
    is_connected_ = true;
    return Progress::kDone;
  }
  if (meeting_ == nullptr) {
    auto group = Group::open(domain_, hosts().me(), hosts().layout().size());
    meeting_ = std::make_unique<Meeting>(local(), hosts(), group);
    if (group) group_ = std::move(*group);
  }
  if (const Progress progress = meeting_->advance(); progress != Progress::kDone) return progress;
  auto addresses = meeting_->addresses();
  if (!addresses) return fail(addresses.status());
  if (group_ == nullptr) return fail(domain_.device().status());
  meeting_.reset();
  connect_deadline_ = Deadline::after(domain_.options().connect_time);
  worker_.start([this, all = std::move(*addresses)] { return group_->connect(all); });
  return Progress::kAdvanced;
}

Progress GlooBackend::run(Work& work) {
  if (worker_.is_idle()) {
    worker_.start([this, &work] {
      return work.kind == WorkKind::kReduce ? run_reduce(*group_, scratch_, work)
                                            : run_exchange(*group_, scratch_, work);
    });
  }
  if (!worker_.is_done()) return Progress::kBlocked;
  const Status status = worker_.take();
  return status ? Progress::kDone : fail(status);
}

void GlooBackend::abandon() {
  if (!worker_.is_idle()) {
    if (group_ != nullptr) group_->abort("given up: the job has failed or ended");
    if (worker_.wait(Deadline::after(kLetGoTime))) {
      (void)worker_.take();
    } else {
      HVD_LOG(kError, "Gloo does not let go of the memory of an operation that was given up");
    }
    if (failure_.is_ok()) failure_ = Status(StatusCode::kAborted, "Gloo: given up");
  }
  StreamBackend::abandon();
}

int GlooBackend::awaited_here() const {
  next_here_ = (next_here_ + 1) % members_here_;
  return meeting_ != nullptr ? StreamBackend::awaited_here() : next_here_;
}

std::vector<int> GlooBackend::awaited_elsewhere() const {
  if (meeting_ != nullptr) return StreamBackend::awaited_elsewhere();
  std::vector<int> others;
  for (int member = 0; member < layout_.size(); ++member) {
    if (layout_.host(member) != my_host_) others.push_back(member);
  }
  return others;
}

void GlooBackend::add_descriptors(std::vector<pollfd>& out) {
  if (meeting_ != nullptr) StreamBackend::add_descriptors(out);
  if (!worker_.is_idle()) out.push_back({worker_.descriptor(), POLLIN, 0});
}

const Status& GlooBackend::status() const {
  return failure_.is_ok() ? StreamBackend::status() : failure_;
}

}  // namespace hvd::collective::gloo
