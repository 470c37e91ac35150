// What a channel is made of: its part of the segment, its members here and on other hosts.
#include "engine/channel/channel.h"

#include <algorithm>
#include <numeric>

namespace hvd::engine {

namespace {

std::vector<int> ranks_of(const std::vector<int>& members, const std::vector<int32_t>& ranks) {
  std::vector<int> found;
  for (const int member : members) found.push_back(ranks[static_cast<size_t>(member)]);
  return found;
}

int place_in(const std::vector<int>& members, int member) {
  return static_cast<int>(std::find(members.begin(), members.end(), member) - members.begin());
}

// Up to here every rank combines everybody's payload itself. Between hosts each rank's payload goes
// to every host, so many ranks pay for it sooner.
uint32_t small_limit_of(const ChannelOptions& options) {
  if (options.ranks.size() == 2) return 8 << 10;
  if (!options.spans_hosts()) return 32 << 10;
  const bool one_per_host =
      mirror::Members{options.ranks, options.host_of}.hosts().size() == options.ranks.size();
  return one_per_host && options.ranks.size() <= 8 ? 4 << 10
                                                   : control::kEagerBytes / control::kRecords - 128;
}

}  // namespace

std::vector<int> ChannelOptions::members_here() const {
  std::vector<int> all(ranks.size());
  std::iota(all.begin(), all.end(), 0);
  if (host_of.empty()) return all;
  const int32_t here = host_of[static_cast<size_t>(me)];
  return mirror::Members{ranks, host_of}.on_host(here);
}

uint64_t Channel::region_bytes(int size) {
  return align_up(control::Board::region_bytes(size), 4096) +
         align_up(collective::shared_memory::Link::region_bytes(size), 4096);
}

Channel::Channel(ChannelHost& host, ChannelOptions options, std::byte* region)
    : host_(host),
      statistics_(host.statistics()),
      flight_(host.flight()),
      job_(host.job()),
      timeline_(host.timeline()),
      options_(std::move(options)),
      members_here_(options_.members_here()),
      ranks_here_(ranks_of(members_here_, options_.ranks)),
      board_(region, size()),
      link_(host.job(), region + align_up(control::Board::region_bytes(size()), 4096),
            static_cast<int>(members_here_.size()), place_in(members_here_, me()),
            ranks_here_.data()),
      host_link_(make_host_link()),
      plane_(collective::make_backends({link_, host_link_.get(), host.gloo(), gpu_options()})),
      slots_(options_.cache_capacity, size()),
      order_(board_, host.job(), *this, size(), me(),
             host_link_ == nullptr ? control::Deciders::kAll : control::Deciders::kFirst),
      default_small_limit_(small_limit_of(options_)),
      small_limit_(default_small_limit_),
      kernels_(kernels()) {
  if (host_link_ == nullptr) return;
  const collective::hosts::HostLayout& layout = host_link_->layout();
  if (layout.host_count() < layout.size()) crowded_hosts_ = &layout;
  mirrored_ = &host_.mirror()->open(
      {options_.id, options_.wire_id, board_, me(), {options_.ranks, options_.host_of}});
}

collective::gpu::Options Channel::gpu_options() const {
  collective::gpu::Options options = options_.gpu;
  options.size = size();
  options.me = me();
  options.process_set = static_cast<int32_t>(options_.id);
  return options;
}

std::unique_ptr<collective::hosts::HostLink> Channel::make_host_link() const {
  if (!options_.spans_hosts()) return nullptr;
  return std::make_unique<collective::hosts::HostLink>(
      *host_.mesh(),
      collective::hosts::HostLinkOptions{
          collective::hosts::HostLayout::of({options_.host_of.begin(), options_.host_of.end()}),
          me(), options_.wire_id, options_.ranks});
}

Channel::~Channel() {
  for (const auto& [index, message] : messages_) job_.arena().forget(message);
}

}  // namespace hvd::engine
