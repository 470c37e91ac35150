// ssh_server.h - a real ssh server with keys of its own in the network of a test's host.
#pragma once

#include "tests/process/network_hosts.h"

namespace hvd::test {

class SshServers {
 public:
  static constexpr char kProgram[] = "/usr/sbin/sshd";
  static bool is_installed() { return ::access(kProgram, X_OK) == 0; }

  // False: keys or configuration could not be made.
  bool prepare() const {
    std::filesystem::create_directories("/run/sshd");  // where sshd locks itself up
    const std::string make_key = "ssh-keygen -q -t ed25519 -N '' -f ";
    if (std::system((make_key + (directory_ / "host")).c_str()) != 0 ||
        std::system((make_key + (directory_ / "user")).c_str()) != 0) {
      return false;
    }
    std::ofstream(directory_ / "config")
        << "Port 2222\nHostKey " << (directory_ / "host") << "\nAuthorizedKeysFile "
        << (directory_ / "user.pub")
        << "\nPermitRootLogin prohibit-password\nPasswordAuthentication no\nStrictModes no\n"
           "UsePAM no\nPidFile none\n";
    return true;
  }

  // Returns when it listens.
  bool start(const NetworkHosts& hosts, const std::string& name) {
    int words[2];
    if (::pipe(words) != 0) return false;
    std::vector<std::string> command =
        hosts.enter(name, {kProgram, "-D", "-e", "-f", directory_ / "config"});
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(words[1], STDERR_FILENO);
      ::close(words[0]);
      ::close(words[1]);
      LaunchedJob::execute(command, {});
    }
    ::close(words[1]);
    processes_.push_back(pid);
    pipes_.emplace_back(words[0]);
    std::string said;
    std::array<char, 512> buffer;
    while (said.find("Server listening") == std::string::npos) {
      pollfd watch{words[0], POLLIN, 0};
      if (::poll(&watch, 1, 10000) != 1) return false;
      const ssize_t count = ::read(words[0], buffer.data(), buffer.size());
      if (count <= 0) return false;
      said.append(buffer.data(), static_cast<size_t>(count));
    }
    return true;
  }

  ~SshServers() {
    for (pid_t pid : processes_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }

  // Options of horovodrun that reach these servers.
  std::vector<std::string> options() const {
    return {"-p", "2222", "-i", directory_ / "user", "--ssh-no-host-key-check"};
  }

 private:
  TemporaryDirectory directory_;
  std::vector<pid_t> processes_;
  std::vector<UniqueFd> pipes_;  // open as long as the servers may write
};

}  // namespace hvd::test
