#include "launch/job/job_store.h"

#include "base/parse.h"
#include "net/interfaces.h"

namespace hvd::launch {

Result<JobStore> JobStore::start(const net::Key& key, const std::vector<std::string>& interfaces) {
  HVD_TRY_ASSIGN(const std::vector<net::Interface> all, net::all_interfaces());
  const auto addresses = net::usable_addresses(all, interfaces);
  // A name that is not there is a mistake on the command line, not of ours.
  if (!addresses && !interfaces.empty()) {
    return invalid_argument(blame("--network-interfaces", addresses.status()).message());
  }
  if (!addresses) return addresses.status();
  HVD_TRY_ASSIGN(std::unique_ptr<store::Server> server, store::Server::listen(*addresses, key));
  return JobStore(std::move(server));
}

std::string JobStore::addresses() const { return net::to_text(server_->addresses()); }

void JobStore::watch(PollSet& polls) {
  polls.watch(server_->descriptor(), POLLIN, [this] { server_->poll(); });
}

}  // namespace hvd::launch
