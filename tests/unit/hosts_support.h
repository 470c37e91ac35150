// hosts_support.h - hosts simulated in one process: ranks are threads, each host has a shared
// segment of its own, and streams between hosts are socket pairs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/fd.h"
#include "collective/hosts/bare_hosts.h"

namespace hvd::testing {

// Joins the two ends of every (pair of ranks, purpose).
class SocketSwitch {
 public:
  struct Options {
    int buffer_bytes = 0;       // of a socket, both ways; 0: as the system has it
    int asks_before_ready = 0;  // how often connect() says "not yet"
    std::optional<collective::hosts::Pace> pace = {};
  };
  explicit SocketSwitch(const Options& options) : options_(options) {}
  ~SocketSwitch();
  SocketSwitch(const SocketSwitch&) = delete;
  SocketSwitch& operator=(const SocketSwitch&) = delete;
  std::unique_ptr<net::Mesh> mesh_of(int32_t rank);
  // The stream between two ranks breaks, as if the machine of `b` were gone.
  void cut(int32_t a, int32_t b);

 private:
  friend class SwitchMesh;
  struct Cable {
    int ends[2] = {-1, -1};  // of the lower and the higher rank; owned by whoever took it
    bool taken[2] = {false, false};
    int asks[2] = {0, 0};
  };
  Result<std::unique_ptr<net::Stream>> take(int32_t rank, int32_t peer, uint64_t purpose);

  const Options options_;
  std::mutex mutex_;
  std::map<std::tuple<int32_t, int32_t, uint64_t>, Cable> cables_;
};

struct HostRank {
  int member;
  int size;
  collective::hosts::BareHosts& group;
  SocketSwitch& sockets;
};

// labels[m] is the host of member m. Runs `function` on all members; returns when all are through.
void run_hosts(const std::vector<int>& labels, const std::function<void(HostRank&)>& function,
               const SocketSwitch::Options& options = {});

std::string layout_text(const std::vector<int>& labels);
// 1+1, 2+2, 3+1, 1+1+1, 2+1+3 (not in blocks), 10 x 1.
const std::vector<std::vector<int>>& all_layouts();

}  // namespace hvd::testing
