#include "launch/plan/ssh_command.h"

#include <algorithm>

#include "base/parse.h"
#include "base/text.h"
#include "launch/os/shell_words.h"

namespace hvd::launch {
namespace {

constexpr char kReplacement[] = "HOROVOD_SSH_COMMAND";
constexpr char kKubeExec[] = "/etc/mpi/kubexec.sh";

std::vector<std::string> ssh_words(const Options& options, std::chrono::seconds connect_timeout) {
  // BatchMode: never ask for a password or a passphrase, nobody could answer.
  std::vector<std::string> words = {"ssh",
                                    "-T",
                                    "-x",
                                    "-o",
                                    "BatchMode=yes",
                                    "-o",
                                    concat("ConnectTimeout=", connect_timeout.count())};
  // "Permanently added ..." is no error; errors and refusals still come.
  words.insert(words.end(), {"-o", "LogLevel=ERROR"});
  if (options.ssh.port) words.insert(words.end(), {"-p", concat(*options.ssh.port)});
  if (!options.ssh.identity_file.empty()) {
    words.insert(words.end(), {"-i", options.ssh.identity_file});
  }
  return words;
}

}  // namespace

bool is_mpijob_pod(const EnvironmentList& environment) {
  return get_variable(environment, "K_MPI_JOB_ROLE") == "launcher";
}

Result<RemoteShell> RemoteShell::choose(const Options& options, const EnvironmentList& environment,
                                        std::chrono::seconds connect_timeout) {
  RemoteShell shell;
  if (const auto replacement = get_variable(environment, kReplacement)) {
    Result<std::vector<std::string>> words = shell_split(*replacement);
    if (!words) return blame(kReplacement, words.status());
    if (words->empty()) return invalid_argument(concat(kReplacement, " is empty"));
    shell.words = *std::move(words);
  } else if (get_variable(environment, "OMPI_MCA_plm_rsh_agent") == kKubeExec) {
    shell.words = {kKubeExec};
  } else {
    shell.words = ssh_words(options, connect_timeout);
    shell.is_ssh = true;
    shell.host_keys = options.ssh.host_keys == HostKeyCheck::kNone ? HostKeys::kUnchecked
                      : is_mpijob_pod(environment)                 ? HostKeys::kUncheckedInPods
                                                                   : HostKeys::kLearned;
  }
  return shell;
}

std::vector<std::string> RemoteShell::command_for(const std::string& host,
                                                  const std::string& remote_command,
                                                  OwnPolicy policy) const {
  std::vector<std::string> command = words;
  const bool is_strict = policy == OwnPolicy::kStrict && host_keys != HostKeys::kUnchecked;
  if (is_ssh && !is_strict) {
    if (host_keys == HostKeys::kLearned) {
      command.insert(command.end(), {"-o", "StrictHostKeyChecking=accept-new"});
    } else {
      command.insert(command.end(),
                     {"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"});
    }
  }
  if (is_ssh) command.emplace_back("--");  // a host is never an option
  command.push_back(host);
  command.push_back(remote_command);
  return command;
}

std::string agent_command(const std::string& executable) {
  // One word, as ssh wants it: the login shell of the other side reads it.
  return concat("exec ", shell_quote(executable), " --agent");
}

std::vector<std::string> RemoteShell::question_for(const std::string& host) const {
  std::vector<std::string> command = words;
  command.insert(command.begin() + 1, "-G");
  command.insert(command.end(), {"--", host});
  return command;
}

OwnPolicy read_policy(std::string_view configuration) {
  constexpr std::string_view kName = "stricthostkeychecking ";
  while (!configuration.empty()) {
    const size_t end = std::min(configuration.find('\n'), configuration.size());
    const std::string_view line = configuration.substr(0, end);
    configuration.remove_prefix(std::min(end + 1, configuration.size()));
    if (!line.starts_with(kName)) continue;
    const std::string_view value = trim(line.substr(kName.size()));
    return value == "true" || value == "yes" ? OwnPolicy::kStrict : OwnPolicy::kLenient;
  }
  return OwnPolicy::kStrict;  // nothing is known, so nothing is overridden
}

}  // namespace hvd::launch
