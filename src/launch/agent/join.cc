#include "launch/agent/join.h"

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

Status explain(const std::string& place, const JoinRequest& request, const Status& failure) {
  if (failure.code() != StatusCode::kTimedOut) return failure;
  return Status(failure.code(),
                concat("nobody launches a job at ", place, " within ", request.timeout.count(),
                       " s (--start-timeout): ", failure.message()));
}

}  // namespace

Result<int> run_join(const JoinRequest& request, const EnvironmentList& environment,
                     const Say& say) {
  const std::string place = concat(request.place.host, ":", request.place.port);
  HVD_TRY_ASSIGN(const net::Key user_key, net::Key::from_file(request.key_file));
  const net::Key key = user_key.derive(kJoinKeyLabel, {});
  HVD_TRY_ASSIGN(std::string hostname, own_hostname());
  const Deadline deadline = Deadline::after(request.timeout);
  HVD_TRY_ASSIGN(std::vector<net::Address> addresses, resolve(request.place, deadline));
  const std::string who = concat("the launcher at ", place);
  auto connected = net::dial(who, addresses, key, {.purpose = kJoinPurpose}, deadline);
  if (!connected) return explain(place, request, connected.status());
  HVD_TRY(net::prepare_tcp_socket((*connected)->socket.get(), {}));
  FrameStream link(net::make_sealed_stream(std::move((*connected)->socket), who,
                                           (*connected)->session_key, net::SealRole::kDialler));
  link.send(
      FrameKind::kJoin,
      encode(JoinMessage{.version = version_text(), .hostname = hostname, .slots = request.slots}));
  HVD_TRY_ASSIGN(const Signals signals, Signals::take_over());
  HVD_TRY_ASSIGN(const DescriptorLimit limit, DescriptorLimit::make_room(request.slots));
  HVD_TRY_ASSIGN(std::string executable, own_executable());
  // The address that answered; the name may have others.
  JoinSession session({.place = place,
                       .hostname = std::move(hostname),
                       .slots = request.slots,
                       .addresses = {(*connected)->address},
                       .key = key,
                       .executable = std::move(executable)},
                      std::move(link), environment, signals, limit, say);
  return session.run();
}

}  // namespace hvd::launch
