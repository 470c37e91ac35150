// joined_hosts.h - the launcher's end of hosts that join a running job by themselves (--join): it
// listens, lets in who knows the key, says which hosts there are, and carries the bytes between
// their agents and RemoteHost. One thread; never blocks, but for farewell().
//
// A host has one connection that lasts as long as it takes part, and one more for each agent that
// was asked of it. When the first one ends, the host has left, and its agents end with it.
#pragma once

#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "launch/link/frame_stream.h"
#include "launch/link/join_message.h"
#include "launch/link/meeting_place.h"
#include "launch/link/stream_pump.h"
#include "launch/os/poll_set.h"
#include "launch/plan/hosts.h"
#include "net/acceptor.h"
#include "net/keys/key.h"

namespace hvd::launch {

class JoinedHosts {
 public:
  // `own_name` is the host of the launcher, which takes part already. `key` is the user's.
  static Result<std::unique_ptr<JoinedHosts>> listen(const MeetingPlace& place,
                                                     const std::vector<std::string>& interfaces,
                                                     const net::Key& key, std::string own_name);
  JoinedHosts(const JoinedHosts&) = delete;
  JoinedHosts& operator=(const JoinedHosts&) = delete;

  void watch(PollSet& polls);
  // After every turn of the loop.
  void on_time(TimePoint now);

  // The hosts that have joined, each time that they are others. One that came back in the meantime
  // was gone in between.
  std::optional<std::vector<HostSlots>> take_news();

  const std::string& own_name() const { return own_name_; }
  const net::Visitors& visitors() const { return acceptor_->visitors(); }
  // Asks that host for one more agent: its standard input and output, as soon as it is there.
  Result<UniqueFd> open_agent(const std::string& host);

  // Tells all of them that the job is over, and waits for a moment until that has left.
  void farewell(int exit_code, std::string_view text, Deadline deadline);

 private:
  struct Guest {
    Guest(uint64_t number, std::unique_ptr<net::Stream> stream, net::Address address)
        : id(number), link(std::move(stream)), from(address) {}
    uint64_t id;
    FrameStream link;
    net::Address from;
    std::string name = {};  // empty: it has not joined yet
    int32_t slots = 0;
    std::optional<JoinMessage> claim = {};  // waits for its name to be free
    TimePoint claimed_at = {};
    bool is_leaving = false;
  };
  struct Agent {
    uint64_t guest = 0;
    std::string host;
    uint64_t number = 0;
    TimePoint opened_at = {};
    UniqueFd waiting = {};  // our end, until the host has dialled
    std::optional<StreamPump> pump = {};
    std::optional<TimePoint> ended_at = {};
  };

  explicit JoinedHosts(std::string own_name) : own_name_(std::move(own_name)) {}
  net::Verdict judge(const net::Hello& hello) const;
  void admit(net::Accepted accepted);
  void take(Guest& guest, const Frame& frame);
  void take_join(Guest& guest, std::string_view payload);
  Status check(const JoinMessage& message) const;
  void settle_claims(TimePoint now);
  void refuse(Guest& guest, const Status& why);
  void dismiss_leavers();
  void drop_closed();
  void end_agents(TimePoint now);
  bool is_there(uint64_t guest) const;
  bool has_outlived(const Agent& agent) const;
  bool counts(const Guest& guest) const;
  void note_hosts();

  std::string own_name_;
  std::unique_ptr<net::Acceptor> acceptor_;
  std::list<Guest> guests_;  // changes in on_time() and admit() alone: handlers point to them
  std::list<Agent> agents_;
  uint64_t next_guest_ = 1;
  uint64_t next_agent_ = 1;
  std::vector<HostSlots> told_;
  std::deque<std::vector<HostSlots>> news_;
};

}  // namespace hvd::launch
