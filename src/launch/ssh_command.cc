#include "launch/ssh_command.h"

#include "base/parse.h"
#include "base/text.h"
#include "launch/shell_words.h"

namespace hvd::launch {
namespace {

constexpr char kReplacement[] = "HOROVOD_SSH_COMMAND";
constexpr char kKubeExec[] = "/etc/mpi/kubexec.sh";

std::vector<std::string> ssh_words(const Options& options, bool is_pod,
                                   std::chrono::seconds connect_timeout) {
  // BatchMode: never ask for a password or a passphrase, nobody could answer.
  std::vector<std::string> words = {"ssh",
                                    "-T",
                                    "-x",
                                    "-o",
                                    "BatchMode=yes",
                                    "-o",
                                    concat("ConnectTimeout=", connect_timeout.count())};
  if (is_pod || options.ssh.host_keys == HostKeyCheck::kNone) {
    words.insert(words.end(),
                 {"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"});
  } else {
    words.insert(words.end(), {"-o", "StrictHostKeyChecking=accept-new"});
  }
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
    shell.words = ssh_words(options, is_mpijob_pod(environment), connect_timeout);
    shell.is_ssh = true;
  }
  return shell;
}

std::vector<std::string> RemoteShell::command_for(const std::string& host,
                                                  const std::string& executable) const {
  std::vector<std::string> command = words;
  command.push_back(host);
  // One word, as ssh wants it: the login shell of the other side reads it.
  command.push_back(concat("exec ", shell_quote(executable), " --agent"));
  return command;
}

}  // namespace hvd::launch
