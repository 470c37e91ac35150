// What a channel is made of: its part of the segment, its members here and on other hosts.
// Publishing.
#include "engine/channel/channel.h"

#include <algorithm>

#include "base/text.h"
#include "collective/backends/registry.h"

namespace hvd::engine {

uint64_t Channel::region_bytes(int size) {
  return align_up(control::Board::region_bytes(size), 4096) +
         align_up(collective::shared_memory::Link::region_bytes(size), 4096);
}

Channel::Channel(ChannelHost& host, ChannelOptions options, std::byte* region)
    : host_(host),
      statistics_(host.statistics()),
      flight_(host.flight()),
      job_(host.job()),
      members_(std::move(options)),
      board_(region, size()),
      link_(host.job(), region + align_up(control::Board::region_bytes(size()), 4096),
            static_cast<int>(members_.members_here().size()), members_.my_place_here(),
            members_.ranks_here().data()),
      host_link_(make_host_link()),
      set_(make_set_view()),
      tuning_(members_.small_limit()),
      slots_(members_.options().cache_capacity, size()),
      rows_(members_, flight_, host.timeline()),
      admission_(members_, tuning_, statistics_),
      outbox_({members_, set_, job_, board_, slots_, tuning_, mirror_}),
      works_(collective::make_backends({link_, host_link_.get(), host.gloo(), gpu_options()})),
      order_(board_, host.job(), *this, size(), me(),
             host_link_ == nullptr ? control::Deciders::kAll : control::Deciders::kFirst) {
  if (host_link_ == nullptr) return;
  mirror_ = {host_.mirror(),
             &host_.mirror()->open({id(),
                                    members_.options().wire_id,
                                    board_,
                                    me(),
                                    {members_.ranks(), members_.options().host_of}})};
}

SetView Channel::make_set_view() const {
  SetView view{size(), me(), &members_.ranks(), nullptr};
  if (host_link_ == nullptr) return view;
  const collective::hosts::HostLayout& layout = host_link_->layout();
  if (layout.host_count() < layout.size()) view.hosts = &layout;
  return view;
}

collective::gpu::Options Channel::gpu_options() const {
  collective::gpu::Options options = members_.options().gpu;
  options.size = size();
  options.me = me();
  const auto& hosts = members_.options().host_of;
  if (!hosts.empty()) options.host = hosts[static_cast<size_t>(me())];
  options.process_set = static_cast<int32_t>(id());
  return options;
}

std::unique_ptr<collective::hosts::HostLink> Channel::make_host_link() const {
  const ChannelOptions& options = members_.options();
  if (!options.spans_hosts()) return nullptr;
  return std::make_unique<collective::hosts::HostLink>(
      *host_.mesh(),
      collective::hosts::HostLinkOptions{
          collective::hosts::HostLayout::of({options.host_of.begin(), options.host_of.end()}), me(),
          options.wire_id, options.ranks});
}

void Channel::publish(Operation& op) {
  note_submission(op);
  outbox_.append_or_queue(op);
}

void Channel::publish_now(Operation& op) {
  outbox_.append_or_queue(op);
  note_submission(op);
}

void Channel::ring_sleepers() {
  link_.bell().wake_for_records(id(),
                                [&](uint32_t index) { return board_.present_everywhere(index); });
}

}  // namespace hvd::engine
