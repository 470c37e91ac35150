// mirror.h - all control streams of this rank: sends its own state to one rank of each other host
// and writes what comes into this host's segment. Life signs, failures and wake-ups of the whole
// job travel here, too.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/status.h"
#include "base/thread_annotations.h"
#include "mirror/mirrored_channel.h"
#include "mirror/peer_link.h"
#include "mirror/ring_pace.h"
#include "net/mesh.h"
#include "shm/job.h"
#include "topology/hosts.h"

namespace hvd::mirror {

// Called by whoever pumps; must not pump.
class MirrorHost {
 public:
  virtual ~MirrorHost() = default;
  // The stream to `rank` broke, and it had not said that it leaves.
  virtual void peer_gone(int32_t rank, const Status& why) = 0;
  // Another host says that the job has failed.
  virtual void job_failed(int32_t rank, const Status& why) = 0;
  // A stall report of another host names `rank`, which is on this host.
  virtual void stall_reported(int32_t rank) = 0;
};

class Mirror {
 public:
  Mirror(shm::Job& job, const topology::HostMap& hosts, net::Mesh& mesh, MirrorHost& host);

  // A process set that spans hosts, this rank being a member. The first one is the global set. The
  // mirror keeps it until it goes itself.
  MirroredChannel& open(ChannelView view) HVD_EXCLUDES(receive_mutex_);
  // What still comes for it is dropped. Nothing is sent any more.
  void close(MirroredChannel& channel) HVD_EXCLUDES(receive_mutex_);
  // Waits until every rank of other hosts has introduced itself on this host. After the global set
  // was opened. `interrupt` may end that, and hears who did not.
  Status meet(Deadline deadline, const Interrupt& interrupt = {});

  // Sends what is new in the channel. After publishing; any lock may be held but those of the
  // mirror.
  void flush(const MirroredChannel& channel);
  void flush_all();
  // Receives and applies what has come, sends what waits. True: something was applied. Only tries:
  // if another thread pumps, there is nothing to do.
  bool pump() HVD_EXCLUDES(receive_mutex_);
  // How often somebody has pumped: tells hvd-net that a driver is at it.
  uint64_t pump_count() const { return pump_count_.load(std::memory_order_relaxed); }

  // ---- to one rank of every other host ----
  void say_alive();
  void say_leaving();
  void say_left();
  void say_failed(int32_t rank, const Status& why);
  // ---- to the host of `rank` ----
  void wake(int32_t rank);
  void report_stall(int32_t rank);

  // What to poll for: descriptor and events of every stream.
  struct Descriptor {
    int fd;
    bool wants_to_send;
  };
  void descriptors(std::vector<Descriptor>& out) HVD_EXCLUDES(receive_mutex_);
  bool has_unsent();
  int mesh_descriptor() const { return mesh_.descriptor(); }
  // Lets in who dials and puts out who only seems to: strangers come while the job opens nothing.
  void tend_mesh() { mesh_.poll(); }

 private:
  Status meet_all(Deadline deadline, const Interrupt& interrupt);
  std::vector<int32_t> not_heard_of() const;

  struct Peer {
    explicit Peer(int32_t rank) : link(rank) {}
    PeerLink link;
    bool is_gone = false;  // its stream has ended
    bool has_left = false;
    bool gets_life_signs = false;  // this rank's receiver on its host in the global set
    bool sends_life_signs = false;
  };
  struct Held {
    int32_t from;
    Header header;
    std::vector<std::byte> body;
  };
  Peer& peer_of(int32_t rank) HVD_REQUIRES(receive_mutex_);
  bool connect_peers() HVD_REQUIRES(receive_mutex_);
  bool pump_locked() HVD_REQUIRES(receive_mutex_);
  bool receive_from(Peer& peer) HVD_REQUIRES(receive_mutex_);
  void end_of(Peer& peer, const Status& why) HVD_REQUIRES(receive_mutex_);
  Status apply(Peer& peer, const Header& header, std::span<const std::byte> body)
      HVD_REQUIRES(receive_mutex_);
  Status apply_to_channel(int32_t from, const Header& header, std::span<const std::byte> body)
      HVD_REQUIRES(receive_mutex_);
  Status apply_hello(Peer& peer, std::span<const std::byte> body);
  Status apply_alive(const Peer& peer, std::span<const std::byte> body) const;
  void apply_leaving(Peer& peer, MessageKind kind);
  Status apply_failure(const Peer& peer, std::span<const std::byte> body);
  Status check_rank_here(const Peer& peer, uint32_t rank) const;
  void tell(int32_t rank, MessageKind kind, uint32_t index, std::span<const std::byte> body);
  bool may_ring(int32_t rank, int32_t receiver);
  void tell_hosts(MessageKind kind, std::span<const std::byte> body);
  void introduce(PeerLink& link);

  shm::Job& job_;
  const topology::HostMap hosts_;
  net::Mesh& mesh_;
  MirrorHost& host_;
  std::atomic<uint64_t> pump_count_{0};
  std::atomic<uint32_t> unattached_{0};
  std::vector<int32_t>
      receiver_on_;  // per host: the rank that gets this rank's life signs; -1: own

  Mutex receive_mutex_;
  // Peers are only added: a reference stays good.
  std::deque<Peer> peers_ HVD_GUARDED_BY(receive_mutex_);
  std::vector<std::unique_ptr<MirroredChannel>> channels_ HVD_GUARDED_BY(receive_mutex_);
  std::map<uint32_t, MirroredChannel*> open_ HVD_GUARDED_BY(receive_mutex_);
  std::set<uint32_t> closed_ HVD_GUARDED_BY(receive_mutex_);
  std::map<uint32_t, std::deque<Held>> held_ HVD_GUARDED_BY(receive_mutex_);
  size_t held_bytes_ HVD_GUARDED_BY(receive_mutex_) = 0;
  std::set<MirroredChannel*> touched_ HVD_GUARDED_BY(receive_mutex_);
  // The same links by rank, for senders. Taken inside receive_mutex_, never the other way round.
  Mutex links_mutex_;
  std::map<int32_t, PeerLink*> links_ HVD_GUARDED_BY(links_mutex_);
  std::map<int32_t, RingPace> ring_paces_ HVD_GUARDED_BY(links_mutex_);  // by who is woken
};

}  // namespace hvd::mirror
