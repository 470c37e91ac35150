// client.h - a Store behind a server. Connects when it is first used, and again within the deadline
// of the call if the connection breaks: both requests may be repeated. What travels is encrypted
// and authenticated. One thread at a time; blocks until the deadline at most.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/address.h"
#include "net/keys/key.h"
#include "net/stream.h"
#include "store/store.h"

namespace hvd::store {

struct ClientOptions {
  uint64_t epoch = 0;
  int32_t rank = 0;  // who asks
};

class Client final : public Store {
 public:
  // `servers`: the addresses of one server, the best first.
  Client(std::vector<net::Address> servers, const net::Key& key, const ClientOptions& options);

  Status set(std::string_view key, std::string_view value, Deadline deadline) override;
  Result<std::string> get(std::string_view key, Deadline deadline) override;

 private:
  // The body of the answer to `frame`.
  Result<std::string> request(std::string_view frame, Deadline deadline);
  Status connect(Deadline deadline);
  Status send(std::string_view frame, Deadline deadline);
  Result<std::string> receive(Deadline deadline);
  Result<std::string> receive_bytes(size_t count, Deadline deadline);

  std::vector<net::Address> servers_;
  net::Key key_;
  ClientOptions options_;
  std::unique_ptr<net::Stream> stream_;  // null: not connected
  Status refusal_;  // the server does not want us, and will not change its mind
};

}  // namespace hvd::store
