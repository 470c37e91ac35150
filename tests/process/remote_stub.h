// remote_stub.h - "other hosts" for tests of the launcher: a program in the place of ssh that runs
// the command on this machine under another host name. What a host does depends on its name.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/process/launched_job.h"

namespace hvd::test {

//   hang*     never answers
//   nowhere*  fails as ssh does for a name that does not resolve
//   noisy*    its login shell prints a lot before anything else
//   bare*     has no horovodrun
//   others    just work
class RemoteStub {
 public:
  RemoteStub() {
    std::ofstream(path()) << R"(#!/bin/sh
host=$1
case $host in
  hang*) exec sleep 1000 ;;
  nowhere*) echo "ssh: Could not resolve hostname $host: Name or service not known" >&2; exit 255 ;;
  noisy*) i=0; while [ $i -lt 500 ]; do echo "Welcome to $host, please read this"; i=$((i+1)); done ;;
  bare*) exec sh -c 'exec /no/such/folder/horovodrun --agent' ;;
esac
# A host of its own by name, where that is permitted.
if unshare --uts true 2>/dev/null; then
  exec unshare --uts sh -c 'hostname "$0"; exec sh -c "$1"' "$host" "$2"
fi
exec sh -c "$2"
)";
    std::filesystem::permissions(path(), std::filesystem::perms::owner_all);
  }

  std::string path() const { return directory_ / "ssh"; }
  std::vector<std::string> environment(std::vector<std::string> more = {}) const {
    more.push_back("HOROVOD_SSH_COMMAND=" + path());
    return more;
  }

 private:
  TemporaryDirectory directory_;
};

// Arguments that run a shell script on every rank of some hosts.
inline std::vector<std::string> shell_on(const std::string& hosts, int ranks,
                                         const std::string& script) {
  std::vector<std::string> arguments = shell(ranks, script);
  arguments.insert(arguments.begin(), {"-H", hosts});
  return arguments;
}

}  // namespace hvd::test
