// What other threads and other ranks tell the engine: hvd-watch, hvd-net, and whoever receives the
// messages of other hosts.
#include "base/text.h"
#include "engine/drive/driver.inc.h"
#include "engine/engine.h"
#include "engine/health/rank_text.h"

namespace hvd::engine {

// From hvd-net: small operations and decisions need no waiter.
void Engine::news_came() {
  if (lookout_.is_shut_down() || !role_.try_take()) return;
  driver_.step_all(Channel::Effort::kAllSmall);
  lookout_.handle_failures();
  driver_.leave();
}

void Engine::peer_lost(int rank, const std::string& how) {
  const shm::RankBlock& peer = job().block(rank);
  failure_.fail(
      Status(StatusCode::kPeerLost, concat("rank ", peer.global_rank, " (pid ", peer.pid.load(),
                                           ", host ", host_of(peer), ") ", how)),
      rank);
  tick();
}

void Engine::peer_frozen(int rank, Nanoseconds silence) {
  peer_lost(rank,
            concat("gives no sign of life for ", std::chrono::duration<double>(silence).count(),
                   " s (stopped or starved) while operations wait for it"));
}

// From whoever pumps: must not step, only say so.
void Engine::peer_gone(int32_t rank, const Status& why) {
  if (lookout_.is_shut_down()) return;
  // It may not have introduced itself yet: its host is known all the same.
  const topology::HostMap& hosts = surroundings_.hosts;
  const auto host = static_cast<size_t>(hosts.host_of[static_cast<size_t>(rank)]);
  failure_.fail(Status(StatusCode::kPeerLost, concat("rank ", rank, " (host ", hosts.names[host],
                                                     ") is lost: ", why.message())),
                rank);
}

// Its own host has told everybody.
void Engine::job_failed(int32_t rank, const Status& why) {
  job().report_failure(why, rank);
  failure_.fail(why, rank);
}

// Once a second, from the watch thread: what nobody who waits would notice.
void Engine::tick() {
  if (lookout_.is_shut_down()) return;
  tuning_.flush();
  lookout_.check_role_word();
  if (!role_.try_take()) return;  // whoever drives looks after itself
  if (!failure_.is_broken(std::memory_order_seq_cst)) lookout_.look();
  lookout_.handle_failures();
  driver_.leave();
}

}  // namespace hvd::engine
