// network_hosts.h - hosts with networks of their own: namespaces that this test process holds, on a
// bridge in a namespace of its own. Needs root; nothing has a name outside, so nothing is left.
#pragma once

#include <sched.h>
#include <sys/prctl.h>
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
  // False: not permitted here.
  bool create(const std::vector<std::string>& names) {
    if (::unshare(CLONE_NEWNET) != 0) return false;
    if (!run("ip link set lo up && ip link add br0 type bridge && ip link set br0 up && "
             "ip addr add 10.99.0.100/24 dev br0")) {
      return false;
    }
    int number = 0;
    for (const std::string& name : names) {
      if (!add_host(name, ++number)) return false;
    }
    write_stub();
    return true;
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
    const std::vector<std::string> words = {"/usr/bin/nsenter", "-t",
                                            std::to_string(holders_.at(name)), "-n", "-u"};
    command.insert(command.begin(), words.begin(), words.end());
    return command;
  }
  bool set_link(const std::string& name, const char* state) const {
    return run("ip link set v-" + name + " " + state);
  }

 private:
  static bool run(const std::string& command) { return std::system(command.c_str()) == 0; }

  bool add_host(const std::string& name, int number) {
    int ready[2];
    if (::pipe(ready) != 0) return false;
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const bool is_good = ::unshare(CLONE_NEWNET | CLONE_NEWUTS) == 0 &&
                           ::sethostname(name.c_str(), name.size()) == 0;
      [[maybe_unused]] const ssize_t written = ::write(ready[1], is_good ? "1" : "0", 1);
      while (true) ::pause();
    }
    holders_[name] = pid;
    char answer = '0';
    const bool is_good = ::read(ready[0], &answer, 1) == 1 && answer == '1';
    ::close(ready[0]);
    ::close(ready[1]);
    const std::string enter = "nsenter -t " + std::to_string(pid) + " -n ";
    const std::string address = "10.99.0." + std::to_string(number) + "/24";
    return is_good && run("ip link add v-" + name + " type veth peer name eth0 netns " +
                          std::to_string(pid) + " && ip link set v-" + name + " master br0 up && " +
                          enter + "ip link set lo up && " + enter + "ip addr add " + address +
                          " dev eth0 && " + enter + "ip link set eth0 up");
  }

  void write_stub() const {
    std::ofstream stub(directory_ / "ssh");
    stub << "#!/bin/sh\ncase $1 in\n";
    for (const auto& [name, pid] : holders_) {
      stub << name << ") exec nsenter -t " << pid << " -n -u sh -c \"$2\" ;;\n";
    }
    stub << "esac\nexit 255\n";
    stub.close();
    std::filesystem::permissions(directory_ / "ssh", std::filesystem::perms::owner_all);
  }

  TemporaryDirectory directory_;
  std::map<std::string, pid_t> holders_;
};

}  // namespace hvd::test
