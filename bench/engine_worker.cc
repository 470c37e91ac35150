#include "engine_worker.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "error.h"

extern char** environ;

namespace hvd::bench {
namespace {

// What mpirun set for us is none of the worker's business.
std::vector<std::string> environment_of(const HostsPlace& place, int port,
                                        const std::string& setting) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with("OMPI_") && !text.starts_with("PMIX_") && !text.starts_with("HOROVOD_"))
      out.emplace_back(text);
  }
  const auto add = [&out](const char* name, const auto& value) {
    out.push_back(std::string(name) + "=" + value);
  };
  const auto host = place.rank / place.per_host;
  add("HOROVOD_RANK", std::to_string(place.rank));
  add("HOROVOD_SIZE", std::to_string(place.size));
  add("HOROVOD_LOCAL_RANK", std::to_string(place.rank % place.per_host));
  add("HOROVOD_LOCAL_SIZE", std::to_string(place.per_host));
  add("HOROVOD_CROSS_RANK", std::to_string(host));
  add("HOROVOD_CROSS_SIZE", std::to_string(place.size / place.per_host));
  add("HOROVOD_HOSTNAME", "host" + std::to_string(host));
  add("HOROVOD_JOB_ID", place.job_id + "-worker-" + std::to_string(port));
  add("HOROVOD_KEY_FILE", place.key_file);
  add("HOROVOD_RENDEZVOUS_ADDR", place.store_address);
  add("HOROVOD_RENDEZVOUS_PORT", std::to_string(port));
  add("HOROVOD_CONTROLLER", "native");
  add("HOROVOD_LOG_LEVEL", "error");  // a setting that is off on purpose needs no warning
  if (!setting.empty()) out.push_back(setting);
  return out;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

EngineWorker::EngineWorker(const std::vector<std::string>& program, const HostsPlace& place,
                           int port, const std::string& setting) {
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) throw BenchError("no pipe");
  const UniqueFd in_end(in[0]), out_end(out[1]);
  to_.reset(in[1]);
  from_.reset(out[0]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in_end.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out_end.get(), STDOUT_FILENO);
  std::vector<std::string> words = program, environment = environment_of(place, port, setting);
  const std::vector<char*> arguments = pointers_to(words), variables = pointers_to(environment);
  const int failed =
      posix_spawn(&pid_, words[0].c_str(), &actions, nullptr, arguments.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw BenchError("cannot start " + words[0] + ": " + std::strerror(failed));
}

EngineWorker::~EngineWorker() {
  to_.reset();
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

void EngineWorker::run(const Command& command) const {
  char answer = 0;
  if (write(to_.get(), &command, sizeof command) != sizeof command ||
      read(from_.get(), &answer, 1) != 1) {
    throw BenchError("a worker of the benchmark has ended");
  }
}

}  // namespace hvd::bench
