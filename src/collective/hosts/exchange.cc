#include "collective/hosts/exchange.h"

#include "collective/shared_memory/tasks.h"

namespace hvd::collective::hosts {
namespace {

class ExchangeTask final : public Task {
 public:
  ExchangeTask(shared_memory::Link& local, HostLink& hosts, Work& work)
      : local_(local), hosts_(hosts), work_(work) {}

  Progress advance() HVD_REQUIRES(engine_role) override {
    if (now_ == nullptr) {
      if (index_ == work_.exchanges.size()) return Progress::kDone;
      now_ = begin(work_.exchanges[index_++]);
    }
    const Progress progress = now_->advance();
    if (progress != Progress::kDone) return progress;
    now_.reset();
    return index_ == work_.exchanges.size() ? Progress::kDone : Progress::kAdvanced;
  }

 private:
  std::unique_ptr<Task> begin(const Exchange& exchange) {
    if (exchange.reduces) return make_scatter(local_, hosts_, exchange);
    return exchange.same_block_for_all ? make_gather(local_, hosts_, exchange)
                                       : make_pairwise(local_, hosts_, exchange);
  }

  shared_memory::Link& local_;
  HostLink& hosts_;
  Work& work_;
  size_t index_ = 0;
  std::unique_ptr<Task> now_;
};

class Pairwise final : public Task {
 public:
  Pairwise(shared_memory::Link& local, HostLink& hosts, const Exchange& exchange) : hosts_(hosts) {
    hosts.begin_work(static_cast<uint32_t>(WorkKind::kExchange), exchange.largest_block_bytes,
                     guard_of(exchange));
    inside_work_.reset(WorkKind::kExchange);
    inside_work_.exchanges.push_back(part_inside(exchange));
    inside_ = shared_memory::make_exchange(local, inside_work_);
    const HostLayout& layout = hosts.layout();
    marks_.assign(static_cast<size_t>(layout.size()), 0);
    for (int step = 1; step < layout.size(); ++step) {
      const int member = (hosts.me() + step) % layout.size();
      if (layout.host(member) != hosts.my_host()) queue(exchange, member);
    }
  }

  Progress advance() HVD_REQUIRES(engine_role) override {
    bool moved = hosts_.pump();
    if (inside_ != nullptr) {
      const Progress progress = inside_->advance();
      moved = moved || progress != Progress::kBlocked;
      if (progress == Progress::kDone) inside_.reset();
    }
    if (inside_ == nullptr && hosts_.has_sent_all() && has_come()) return Progress::kDone;
    return moved ? Progress::kAdvanced : Progress::kBlocked;
  }

 private:
  // What stays inside the host, as the exchange of its members alone.
  Exchange part_inside(const Exchange& all) const {
    Exchange part;
    part.in = all.in;
    part.out = all.out;
    part.largest_block_bytes = all.largest_block_bytes;  // rounds: the same for all members
    for (const int member : hosts_.layout().on_host(hosts_.my_host())) {
      const auto m = static_cast<size_t>(member);
      part.send_offset.push_back(all.send_offset[m]);
      part.send_bytes.push_back(all.send_bytes[m]);
      part.receive_offset.push_back(all.receive_offset[m]);
      part.receive_bytes.push_back(all.receive_bytes[m]);
    }
    return part;
  }

  void queue(const Exchange& x, int member) {
    const auto m = static_cast<size_t>(member);
    if (x.send_bytes[m] > 0) hosts_.queue_send(member, x.in + x.send_offset[m], x.send_bytes[m]);
    if (x.receive_bytes[m] > 0) {
      std::byte* to = x.out == nullptr ? nullptr : x.out + x.receive_offset[m];
      marks_[m] = hosts_.queue_receive(member, to, x.receive_bytes[m]);
    }
  }

  bool has_come() const {
    for (size_t m = 0; m < marks_.size(); ++m) {
      if (!hosts_.has_received(static_cast<int>(m), marks_[m])) return false;
    }
    return true;
  }

  HostLink& hosts_;
  Work inside_work_;
  std::unique_ptr<Task> inside_;
  std::vector<uint64_t> marks_;  // per member
};

}  // namespace

std::unique_ptr<Task> make_pairwise(shared_memory::Link& local, HostLink& hosts,
                                    const Exchange& exchange) {
  return std::make_unique<Pairwise>(local, hosts, exchange);
}

std::unique_ptr<Task> make_exchange(shared_memory::Link& local, HostLink& hosts, Work& work) {
  return std::make_unique<ExchangeTask>(local, hosts, work);
}

}  // namespace hvd::collective::hosts
