// listener.h - one listening socket per chosen address, never a wildcard. One thread at a time;
// never blocks.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "net/address.h"

namespace hvd::net {

class Listener {
 public:
  // Port 0: the kernel chooses. An address that cannot be bound is left out; if none can, the error
  // lists why for each. A wildcard address is refused.
  static Result<Listener> listen(std::span<const Address> addresses);

  // With the ports in use, in the order given.
  const std::vector<Address>& addresses() const { return addresses_; }
  std::span<const UniqueFd> sockets() const { return sockets_; }
  struct LeftOut {
    Address address;
    int error;         // errno
    std::string what;  // "bind: Address already in use"
  };
  const std::vector<LeftOut>& left_out() const { return left_out_; }

  struct Connection {
    UniqueFd socket{};  // non-blocking; invalid: nobody waits
    Address from{};
    int error = 0;  // errno, when it is not simply that nobody waits
  };
  static Connection accept(const UniqueFd& socket);

 private:
  std::vector<UniqueFd> sockets_;
  std::vector<Address> addresses_;
  std::vector<LeftOut> left_out_;
};

}  // namespace hvd::net
