#include "launch/plan/mpi_command.h"

#include <algorithm>
#include <charconv>

#include "base/failure_note.h"
#include "base/text.h"
#include "launch/os/shell_words.h"

namespace hvd::launch {
namespace {

using Mpi = MpiImplementation;

bool is_open_mpi(Mpi mpi) { return mpi == Mpi::kOpenMpi || mpi == Mpi::kOpenMpi5; }
bool is_open_family(Mpi mpi) { return is_open_mpi(mpi) || mpi == Mpi::kSpectrumMpi; }

// Version 5 takes long flags with two dashes alone.
std::string mca(const MpiRequest& request) {
  return request.implementation == Mpi::kOpenMpi5 ? "--mca " : "-mca ";
}

// The first number in the text that names Open MPI, such as "mpirun (Open MPI) 4.1.4".
int major_version(std::string_view text) {
  const size_t digit = text.find_first_of("0123456789");
  int number = 0;
  if (digit != std::string_view::npos)
    std::from_chars(text.data() + digit, text.data() + text.size(), number);
  return number;
}

std::string hosts_text(std::span<const HostSlots> hosts) {
  std::vector<std::string> items;
  for (const HostSlots& host : hosts) items.push_back(concat(host.host, ":", host.slots));
  return join_text(items, ",");
}

// "-np 4 -H a:2,b:2", or for the MPICH family, which takes one number for all hosts,
// "-np 4 -ppn 2 -hosts a,b".
Result<std::string> placement(const MpiRequest& request) {
  const std::string count = concat("-np ", request.num_proc);
  if (is_open_family(request.implementation)) {
    return concat(count, " -H ", hosts_text(request.hosts));
  }
  const int32_t slots = request.hosts.front().slots;
  std::vector<std::string_view> names;
  for (const HostSlots& host : request.hosts) {
    if (host.slots != slots) {
      return invalid_argument(concat("--mpi: ", mpi_name(request.implementation),
                                     " needs the same number of slots on every host, got ",
                                     hosts_text(request.hosts)));
    }
    names.emplace_back(host.host);
  }
  return concat(count, " -ppn ", slots, " -hosts ", join_text(names, ","));
}

std::string binding(const MpiRequest& request) {
  const std::string& given = request.options.mpi.binding_arguments;
  if (!given.empty()) return given;
  switch (request.implementation) {
    case Mpi::kOpenMpi5:
      return "--bind-to none --map-by slot";
    case Mpi::kOpenMpi:
    case Mpi::kMpich:
      return "-bind-to none -map-by slot";
    case Mpi::kSpectrumMpi:
      return "-bind-to socket -map-by socket -rank-by core";
    case Mpi::kIntelMpi:
      break;
  }
  return "";
}

std::string implementation_flags(const MpiRequest& request) {
  std::vector<std::string> flags;
  if (is_open_mpi(request.implementation)) {
    flags.push_back(concat(mca(request), "pml ob1 ", mca(request), "btl ^openib"));
  }
  if (request.implementation == Mpi::kSpectrumMpi && request.options.mpi.tcp_only) {
    flags.emplace_back("-tcp");
  }
  if (is_open_family(request.implementation) && request.hosts.size() >= kLargeClusterHosts) {
    flags.push_back(concat(mca(request), "plm_rsh_no_tree_spawn true ", mca(request),
                           "plm_rsh_num_concurrent ", request.hosts.size()));
  }
  return join_text(flags, " ");
}

// One word of the shell, which mpirun splits at blanks; or empty.
std::string ssh_arguments(const MpiRequest& request) {
  const SshOptions& ssh = request.options.ssh;
  std::vector<std::string> words;
  if (ssh.port) words.push_back(concat("-p ", *ssh.port));
  if (!ssh.identity_file.empty()) words.push_back(concat("-i ", ssh.identity_file));
  if (ssh.host_keys == HostKeyCheck::kNone) words.emplace_back("-o StrictHostKeyChecking=no");
  if (words.empty()) return "";
  const std::string quoted = shell_quote(join_text(words, " "));
  // Double quotes, as the original writes it, where both mean the same.
  const bool is_plain =
      quoted.find_first_of("\\$`\"") == quoted.npos && quoted.find('\'', 1) == quoted.size() - 1;
  return is_plain ? concat("\"", quoted.substr(1, quoted.size() - 2), "\"") : quoted;
}

// mpirun splits the arguments of ssh at blanks, whatever the shell made of them.
Status check_identity_file(const MpiRequest& request) {
  const std::string& path = request.options.ssh.identity_file;
  if (path.find_first_of(" \t\n\"'\\") == path.npos) return Status::ok();
  return invalid_argument(
      concat("--ssh-identity-file '", path,
             "': mpirun cannot pass a path with blanks, quotes or backslashes"));
}

std::string ssh_flags(const MpiRequest& request) {
  const std::string arguments = ssh_arguments(request);
  if (arguments.empty()) return "";
  switch (request.implementation) {
    case Mpi::kOpenMpi5:
      return concat("--mca plm_ssh_args ", arguments);
    case Mpi::kOpenMpi:
    case Mpi::kSpectrumMpi:
      return concat("-mca plm_rsh_args ", arguments);
    case Mpi::kMpich:
      return "-bootstrap=ssh";
    case Mpi::kIntelMpi:
      break;
  }
  return concat("-bootstrap=ssh -bootstrap-exec-args ", arguments);
}

// Behind variables for the launcher alone: MPICH has no flag for the arguments of ssh, and refuses
// that of Intel MPI.
std::string program(const MpiRequest& request) {
  const std::string arguments = ssh_arguments(request);
  if (request.implementation != Mpi::kMpich || arguments.empty()) return "mpirun";
  return concat("HYDRA_LAUNCHER_EXTRA_ARGS=", arguments, " mpirun");
}

struct NetworkFlags {
  std::string mpi;
  std::string nccl;
};

Result<NetworkFlags> network_flags(const MpiRequest& request) {
  const std::vector<std::string>& names = request.options.network_interfaces;
  if (names.empty()) return NetworkFlags{};
  const std::string list = shell_quote(join_text(names, ","));
  if (is_open_family(request.implementation)) {
    return NetworkFlags{.mpi = concat(mca(request), "btl_tcp_if_include ", list),
                        .nccl = concat("-x NCCL_SOCKET_IFNAME=", list)};
  }
  if (names.size() > 1) {
    return invalid_argument(concat("--network-interfaces ", list, ": ",
                                   mpi_name(request.implementation), " takes one interface"));
  }
  return NetworkFlags{.mpi = concat("-iface ", list),
                      .nccl = concat("-genv NCCL_SOCKET_IFNAME=", list)};
}

std::string output_flags(const MpiRequest& request) {
  const Options& options = request.options;
  const bool open = is_open_family(request.implementation);
  std::vector<std::string> flags;
  if (!options.output_directory.empty()) {
    flags.push_back(concat(open ? "--output-filename " : "-outfile-pattern ",
                           shell_quote(options.output_directory)));
  }
  if (options.prefix_timestamp && open) flags.emplace_back("--timestamp-output");
  return join_text(flags, " ");
}

// Others cannot be named in a shell, and exist: "ProgramFiles(x86)".
bool is_shell_name(std::string_view name) {
  if (name.empty() || (name.front() >= '0' && name.front() <= '9')) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::string environment_flags(const MpiRequest& request) {
  if (!is_open_family(request.implementation)) return "";
  std::vector<std::string> names;
  for (const std::string& entry : request.environment) {
    const std::string_view name = std::string_view(entry).substr(0, entry.find('='));
    if (is_exportable(entry) && is_shell_name(name)) names.push_back(concat("-x ", name));
  }
  std::sort(names.begin(), names.end());
  return join_text(names, " ");
}

}  // namespace

std::optional<MpiImplementation> recognise_mpi(std::string_view version_text) {
  const auto says = [&](std::string_view word) {
    return version_text.find(word) != std::string_view::npos;
  };
  // Spectrum MPI is made from Open MPI and may name it.
  if (says("IBM Spectrum MPI")) return Mpi::kSpectrumMpi;
  if (says("Open MPI") || says("OpenRTE"))
    return major_version(version_text) >= 5 ? Mpi::kOpenMpi5 : Mpi::kOpenMpi;
  if (says("Intel(R) MPI")) return Mpi::kIntelMpi;
  if (says("MPICH") || says("HYDRA")) return Mpi::kMpich;
  return std::nullopt;
}

std::string_view mpi_name(MpiImplementation implementation) {
  switch (implementation) {
    case Mpi::kOpenMpi:
    case Mpi::kOpenMpi5:
      return "Open MPI";
    case Mpi::kSpectrumMpi:
      return "Spectrum MPI";
    case Mpi::kMpich:
      return "MPICH";
    case Mpi::kIntelMpi:
      break;
  }
  return "Intel MPI";
}

bool is_exportable(std::string_view entry) {
  const std::string_view name = entry.substr(0, entry.find('='));
  return !name.starts_with("BASH_FUNC_") && name != "OLDPWD" &&
         !name.ends_with("CUDA_VISIBLE_DEVICES") && name != "_HOROVOD_SECRET_KEY" &&
         name != "HOROVOD_KEY_FD" && name != kFailureNoteVariable;
}

Result<std::string> mpi_command_line(const MpiRequest& request) {
  HVD_TRY(check_host_names(request.hosts));
  HVD_TRY(check_identity_file(request));
  HVD_TRY_ASSIGN(const std::string hosts, placement(request));
  HVD_TRY_ASSIGN(const NetworkFlags network, network_flags(request));
  const std::vector<std::string> parts = {
      program(request),
      is_open_family(request.implementation) ? "--allow-run-as-root --tag-output" : "-l",
      hosts,
      binding(request),
      implementation_flags(request),
      ssh_flags(request),
      network.mpi,
      network.nccl,
      output_flags(request),
      environment_flags(request),
      request.options.mpi.more_arguments,
      shell_join(request.options.command)};
  return join_text(parts, " ");
}

}  // namespace hvd::launch
