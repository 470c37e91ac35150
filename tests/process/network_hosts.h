// network_hosts.h - hosts with networks of their own: namespaces that this test process holds, on a
// bridge in a namespace of its own. Each has its name, its addresses, its mounts and its /dev/shm.
// Needs root, or a kernel where everybody may be root of a user namespace; nothing has a name
// outside, so nothing is left.
#pragma once

#include <arpa/inet.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "tests/process/launched_job.h"

namespace hvd::test {

// The test process itself moves into a new network: one fixture per process.
class NetworkHosts {
 public:
  enum class Family { kIpv4, kIpv6 };

  // False: not permitted here, or a tool is missing; problem() says which step failed.
  bool create(const std::vector<std::string>& names, Family family = Family::kIpv4) {
    family_ = family;
    if (!is_real_root() && ::geteuid() != 0 && !become_root())
      return note(false, "a user namespace of its own");
    if (::unshare(CLONE_NEWNET) != 0) return note(false, "a network namespace of its own");
    if (!run("ip link set lo up && ip link add br0 type bridge && ip link set br0 up && "
             "ip addr add " +
             numbered_address(100) + " dev br0" + address_flag())) {
      return false;
    }
    int number = 0;
    for (const std::string& name : names) {
      if (!add_host(name, ++number)) return false;
    }
    if (!wait_until_up()) return false;
    write_stub();
    return true;
  }
  const std::string& problem() const { return problem_; }
  // Servers that change their user work only then. First asked before this process becomes anybody
  // else.
  static bool is_real_root() {
    static const bool started_as_root = ::geteuid() == 0;
    return started_as_root;
  }

  ~NetworkHosts() {
    for (const auto& [name, pid] : holders_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }

  std::vector<std::string> environment(std::vector<std::string> more = {}) const {
    more.push_back("HOROVOD_SSH_COMMAND=" + (directory_ / "ssh"));
    return more;
  }
  // A program in a host's network and under its name.
  std::vector<std::string> enter(const std::string& name, std::vector<std::string> command) const {
    const std::vector<std::string> words = {
        "/usr/bin/nsenter", "-t", std::to_string(holders_.at(name)), "-n", "-u", "-m"};
    command.insert(command.begin(), words.begin(), words.end());
    return command;
  }
  // A shell command on a host.
  bool run_on(const std::string& name, const std::string& command) {
    return run("nsenter -t " + std::to_string(holders_.at(name)) + " -n -u -m sh -c '" + command +
               "'");
  }
  bool cut_link(const std::string& name) { return run("ip link set v-" + name + " down"); }
  // And nobody remembers that somebody could not be reached: such a neighbour is refused for
  // seconds without being asked again.
  bool restore_link(const std::string& name) {
    bool is_good = run("ip link set v-" + name + " up && ip neigh flush dev br0");
    for (const auto& [host, pid] : holders_) {
      is_good = run_on(host, "ip neigh flush dev eth0") && is_good;
    }
    return is_good;
  }
  // What the host sends and gets, for example "50mbit".
  bool limit_rate(const std::string& name, const std::string& rate) {
    const std::string shape = " root tbf rate " + rate + " burst 64kb latency 50ms";
    return run("tc qdisc add dev v-" + name + shape) &&
           run_on(name, "tc qdisc add dev eth0" + shape);
  }
  // A second network that looks good and carries nothing: everybody is said to be a neighbour, and
  // what is sent goes nowhere.
  bool add_dead_network() {
    int number = 0;
    for (const auto& [name, pid] : holders_) {
      const std::string there = std::to_string(pid);
      std::string commands =
          "ip link set eth1 up && ip addr add 10.98.0." + std::to_string(++number) + "/24 dev eth1";
      for (size_t peer = 1; peer <= holders_.size(); ++peer) {
        commands += " && ip neigh replace 10.98.0." + std::to_string(peer) +
                    " lladdr 02:00:00:00:00:01 dev eth1";
      }
      if (!run("ip link add d-" + name + " up type veth peer name eth1 netns " + there) ||
          !run_on(name, commands)) {
        return false;
      }
    }
    return true;
  }

  // A TCP socket in a host's network.
  UniqueFd socket_on(const std::string& name) const {
    const UniqueFd here(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
    const std::string path = "/proc/" + std::to_string(holders_.at(name)) + "/ns/net";
    const UniqueFd there(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (::setns(there.get(), CLONE_NEWNET) != 0) return UniqueFd();
    UniqueFd made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::setns(here.get(), CLONE_NEWNET) != 0) std::abort();
    return made;
  }

  // Numeric, as in the socket of a listener.
  std::string address(const std::string& name) const {
    const std::string text = numbered_address(numbers_.at(name));
    return text.substr(0, text.find('/'));
  }

  struct Endpoint {
    int family;
    std::string address;
    int port;
  };
  // Every TCP port on which somebody listens on a host; "" is the network of the test itself.
  std::vector<Endpoint> listening(const std::string& name) const {
    const std::string process = name.empty() ? "self" : std::to_string(holders_.at(name));
    std::vector<Endpoint> found;
    read_sockets("/proc/" + process + "/net/tcp", AF_INET, found);
    read_sockets("/proc/" + process + "/net/tcp6", AF_INET6, found);
    return found;
  }

 private:
  static bool become_root() {
    const std::string user = std::to_string(::getuid()), group = std::to_string(::getgid());
    if (::unshare(CLONE_NEWUSER) != 0) return false;
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << "0 " + user + " 1";
    std::ofstream("/proc/self/gid_map") << "0 " + group + " 1";
    return ::geteuid() == 0;
  }
  bool note(bool is_good, const std::string& what) {
    if (!is_good) problem_ = what + " is not permitted or failed";
    return is_good;
  }
  bool run(const std::string& command) {
    return note(std::system(command.c_str()) == 0, "'" + command + "'");
  }
  std::string numbered_address(int number) const {
    return family_ == Family::kIpv4 ? "10.99.0." + std::to_string(number) + "/24"
                                    : "fd00:99::" + std::to_string(number) + "/64";
  }
  // IPv6 addresses are usable at once only without the search for duplicates.
  std::string address_flag() const { return family_ == Family::kIpv4 ? "" : " nodad"; }

  [[noreturn]] static void hold(const std::string& name, int ready) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const bool is_good = ::unshare(CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWNS) == 0 &&
                         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                         ::mount("tmpfs", "/dev/shm", "tmpfs", 0, nullptr) == 0 &&
                         ::sethostname(name.c_str(), name.size()) == 0;
    [[maybe_unused]] const ssize_t written = ::write(ready, is_good ? "1" : "0", 1);
    while (true) ::pause();
  }

  bool add_host(const std::string& name, int number) {
    int ready[2];
    if (::pipe(ready) != 0) return false;
    const pid_t pid = ::fork();
    if (pid == 0) hold(name, ready[1]);
    holders_[name] = pid;
    numbers_[name] = number;
    char answer = '0';
    const bool is_good = ::read(ready[0], &answer, 1) == 1 && answer == '1';
    ::close(ready[0]);
    ::close(ready[1]);
    return note(is_good, "a host in namespaces of its own") &&
           run("ip link add v-" + name + " type veth peer name eth0 netns " + std::to_string(pid) +
               " && ip link set v-" + name + " master br0 up") &&
           run_on(name, "ip link set lo up && ip addr add " + numbered_address(number) +
                            " dev eth0" + address_flag() + " && ip link set eth0 up");
  }

  // The kernel notices carriers when it gets to it, which takes seconds on a busy machine; until
  // then a bridge forwards nothing and neighbours are not found.
  bool wait_until_up() {
    const auto until = [](const std::string& condition) {
      return "i=0; until " + condition +
             "; do i=$((i + 1)); [ $i -lt 400 ] || exit 1; sleep 0.05; done";
    };
    for (const auto& [name, pid] : holders_) {
      const std::string port = "v-" + name;
      if (!run(until("bridge link show dev " + port +
                     " | grep -q \"state forwarding\" && "
                     "ip -o link show " +
                     port + " | grep -q \"state UP\"")) ||
          !run_on(name, until("ip -o link show eth0 | grep -q \"state UP\""))) {
        return false;
      }
    }
    return run(until("ip -o link show br0 | grep -q \"state UP\""));
  }

  void write_stub() const {
    std::ofstream stub(directory_ / "ssh");
    stub << "#!/bin/sh\ncase $1 in\n";
    for (const auto& [name, pid] : holders_) {
      stub << name << ") exec nsenter -t " << pid << " -n -u -m sh -c \"$2\" ;;\n";
    }
    stub << "esac\nexit 255\n";
    stub.close();
    std::filesystem::permissions(directory_ / "ssh", std::filesystem::perms::owner_all);
  }

  // The kernel prints addresses as words of the machine's byte order.
  static void read_sockets(const std::string& path, int family, std::vector<Endpoint>& out) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      std::istringstream words(line);
      std::string slot, local, remote, state;
      words >> slot >> local >> remote >> state;
      if (state != "0A") continue;  // LISTEN
      const size_t colon = local.find(':');
      std::array<uint32_t, 4> raw{};
      for (size_t i = 0; i * 8 < colon; ++i) {
        raw[i] = static_cast<uint32_t>(std::stoul(local.substr(i * 8, 8), nullptr, 16));
      }
      char text[INET6_ADDRSTRLEN] = {};
      ::inet_ntop(family, raw.data(), text, sizeof text);
      out.push_back({family, text, std::stoi(local.substr(colon + 1), nullptr, 16)});
    }
  }

  TemporaryDirectory directory_;
  Family family_ = Family::kIpv4;
  std::string problem_;
  std::map<std::string, pid_t> holders_;
  std::map<std::string, int> numbers_;
};

}  // namespace hvd::test
