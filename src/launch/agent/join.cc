#include "launch/agent/join.h"

#include <utility>

#include "base/text.h"
#include "base/version.h"
#include "launch/agent/join_session.h"
#include "launch/link/join_message.h"
#include "launch/plan/prepare.h"
#include "net/dialler.h"
#include "net/sealed_stream.h"
#include "net/tcp_stream.h"

namespace hvd::launch {
namespace {

// Longer than a handshake takes; then we ask again whose name it is.
constexpr Nanoseconds kLookAgainAfter = std::chrono::seconds(5);

// Looks for the launcher; it may be this host itself.
class Search {
 public:
  Search(const JoinRequest& request, std::string hostname, const Say& say)
      : request_(request),
        hostname_(std::move(hostname)),
        say_(say),
        place_(concat(request.place.host, ":", request.place.port)),
        deadline_(Deadline::after(request.timeout)) {}

  const std::string& place() const { return place_; }
  std::string launcher() const { return concat("the launcher at ", place_); }

  // Null: it is this host.
  Result<std::unique_ptr<net::Dialler::Connected>> run(const net::Key& key) {
    for (;;) {
      auto addresses =
          resolve(request_.place, deadline_, [this] { say_once("has no address yet"); });
      if (!addresses) return blame_with_readings(addresses.status());
      if (is_this_host(*addresses)) return std::unique_ptr<net::Dialler::Connected>();
      const Deadline turn = Deadline::after(deadline_.remaining(kLookAgainAfter));
      auto connected = net::dial(launcher(), *addresses, key, {.purpose = kJoinPurpose}, turn);
      if (connected || connected.status().code() != StatusCode::kTimedOut) return connected;
      address_ = net::to_text(addresses->front());
      if (deadline_.passed()) return blame_with_readings(connected.status());
      say_once(concat("is ", address_, ", no address of this host, and nobody answers there"));
    }
  }

 private:
  void say_once(std::string_view what) {
    if (std::exchange(has_spoken_, true)) return;
    say_(concat("host ", hostname_, " waits to join the job at ", place_, ": ", request_.place.host,
                " ", what, "; it launches the job itself if that turns out to be its own name"));
  }
  // Whoever reads it knows which of the two was meant.
  Status blame_with_readings(const Status& failure) const {
    const std::string reading =
        address_.empty() ? concat("the name says nothing to it, and its own is ", hostname_)
                         : concat(request_.place.host, " is ", address_, ", no address of it");
    return Status(
        failure.code(),
        concat("nobody launches a job at ", place_, " within ", request_.timeout.count(),
               " s (--start-timeout): ", failure.message(), "; host ", hostname_,
               " wanted to join, since ", reading,
               ". If it is another host that launches, run the same command there; if it is this "
               "one, give --join its name or one of its addresses"));
  }

  const JoinRequest& request_;
  std::string hostname_;
  const Say& say_;
  std::string place_;
  Deadline deadline_;
  std::string address_ = {};  // of the place, where nobody answered
  bool has_spoken_ = false;
};

}  // namespace

Result<std::optional<int>> run_join(const JoinRequest& request, const EnvironmentList& environment,
                                    const Say& say) {
  HVD_TRY_ASSIGN(const net::Key user_key, net::Key::from_file(request.key_file));
  const net::Key key = user_key.derive(kJoinKeyLabel, {});
  HVD_TRY_ASSIGN(std::string hostname, own_hostname());
  Search search(request, hostname, say);
  HVD_TRY_ASSIGN(const auto connected, search.run(key));
  if (connected == nullptr) {
    say(concat(request.place.host, " is this host, ", hostname, ": it launches the job"));
    return std::optional<int>();
  }
  HVD_TRY(net::prepare_tcp_socket(connected->socket.get(), {}));
  FrameStream link(net::make_sealed_stream(std::move(connected->socket), search.launcher(),
                                           connected->session_key, net::SealRole::kDialler));
  link.send(
      FrameKind::kJoin,
      encode(JoinMessage{.version = version_text(), .hostname = hostname, .slots = request.slots}));
  HVD_TRY_ASSIGN(const Signals signals, Signals::take_over());
  HVD_TRY_ASSIGN(const DescriptorLimit limit, DescriptorLimit::make_room(request.slots));
  HVD_TRY_ASSIGN(std::string executable, own_executable());
  // The address that answered; the name may have others.
  JoinSession session({.place = search.place(),
                       .hostname = std::move(hostname),
                       .slots = request.slots,
                       .addresses = {connected->address},
                       .key = key,
                       .executable = std::move(executable)},
                      std::move(link), environment, signals, limit, say);
  HVD_TRY_ASSIGN(const int exit_code, session.run());
  return std::optional<int>(exit_code);
}

}  // namespace hvd::launch
