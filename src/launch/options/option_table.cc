#include "launch/options/option_table.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/near_word.h"
#include "base/settings.h"
#include "base/text.h"

namespace hvd::launch {
namespace {

using Id = OptionId;

constexpr auto kShown = FlagVisibility::kShown;
constexpr auto kHidden = FlagVisibility::kHidden;

constexpr std::string_view kGeneral = "General";
constexpr std::string_view kHosts = "Hosts";
constexpr std::string_view kOutput = "Output";
constexpr std::string_view kSsh = "ssh";
constexpr std::string_view kController = "Who starts the workers";
constexpr std::string_view kElastic = "Elastic training";

// What the core accepts and ignores, by its own table (base/settings.cc): shown last, and as what
// it is.
constexpr std::string_view kWithoutEffect = "Accepted, without effect";
constexpr std::array<std::string_view, 12> kGroups = {
    kGeneral,   kHosts,        kOutput,     kSsh,      kController, "Tuning",
    "Timeline", "Stall check", "Libraries", "Logging", kElastic,    kWithoutEffect};

std::vector<OptionInfo> general_rows() {
  return {
      {Id::kNumProc,
       kGeneral,
       {"-np", "--num-proc"},
       "N",
       "how many workers to start; needed unless the batch system says it"},
      {Id::kConfigFile,
       kGeneral,
       {"--config-file"},
       "FILE",
       "read options from a YAML file; the command line wins"},
      {Id::kStartTimeout,
       kGeneral,
       {"--start-timeout"},
       "SECONDS",
       "how long hosts and workers may take to come up (30, or HOROVOD_START_TIMEOUT)"},
      {Id::kCheckBuild,
       kGeneral,
       {"-cb", "--check-build"},
       "",
       "print which frameworks and libraries can be used, and exit"},
      {Id::kGpu,
       kGeneral,
       {"--gpu"},
       "",
       "doctor: also sum in the memory of the GPUs, and say what they lack"},
      {Id::kPlanJson,
       kGeneral,
       {"--plan-json"},
       "",
       "print as JSON what would be started, and exit"},
      {Id::kParseJson,
       kGeneral,
       {"--parse-json"},
       "",
       "print as JSON how these options are understood, and exit"},
      {Id::kVerbose, kGeneral, {"--verbose"}, "", "say what is started, and how each rank ended"},
      {Id::kDisableCache, kGeneral, {"--disable-cache"}, "", "accepted; no check is ever cached"},
      {Id::kVersion, kGeneral, {"-v", "--version"}, "", "print the version and exit"},
      {Id::kHelp, kGeneral, {"-h", "--help"}, "", "print this text and exit"},
      {Id::kAgent, kGeneral, {"--agent"}, "", "serve a launcher on another host", kHidden},
      {Id::kDecide, kGeneral, {"--decide"}, "", "decide for workers of a cluster engine", kHidden},
      {Id::kHosts,
       kHosts,
       {"-H", "--hosts"},
       "H1:N1,H2:N2",
       "hosts and how many workers each takes; default: this machine"},
      {Id::kHostfile,
       kHosts,
       {"-hostfile", "--hostfile"},
       "FILE",
       "the same from a file, one 'host slots=N' or 'host:N' per line"},
      {Id::kNetworkInterfaces,
       kHosts,
       {"--network-interfaces"},
       "A,B",
       "use only these network interfaces"},
      {Id::kNetworkInterface,
       kHosts,
       {"--network-interface"},
       "A",
       "use only this one; may be repeated"},
      {Id::kOutputFilename,
       kOutput,
       {"--output-filename"},
       "DIR",
       "also write output to DIR/rank.<rank>/stdout|stderr, without prefix"},
      {Id::kPrefixTimestamp,
       kOutput,
       {"-prefix-timestamp", "--prefix-output-with-timestamp"},
       "",
       "put the time before the prefix of each line"},
      {Id::kSshPort, kSsh, {"-p", "--ssh-port"}, "PORT", "port of the ssh server on all hosts"},
      {Id::kSshIdentityFile, kSsh, {"-i", "--ssh-identity-file"}, "FILE", "private key to use"},
      {Id::kSshNoHostKeyCheck,
       kSsh,
       {"--ssh-no-host-key-check"},
       "",
       "do not check host keys; by default new ones are accepted and changed ones refused"},
  };
}

std::vector<OptionInfo> launcher_rows() {
  return {
      {Id::kGloo,
       kController,
       {"--gloo"},
       "",
       "horovodrun itself, without MPI; the library Gloo carries data where it is installed"},
      {Id::kMpi, kController, {"--mpi"}, "", "mpirun, with a command line made from these options"},
      {Id::kJsrun, kController, {"--jsrun"}, "", "jsrun, in an LSF job"},
      {Id::kMpiArgs,
       kController,
       {"--mpi-args"},
       "ARGS",
       "more arguments for mpirun or jsrun: --mpi-args=\"...\""},
      {Id::kBindingArgs,
       kController,
       {"--binding-args"},
       "ARGS",
       "process binding for mpirun or jsrun, instead of the default"},
      {Id::kTcp, kController, {"--tcp"}, "", "use TCP even where there is something faster"},
      {Id::kMinNumProc,
       kElastic,
       {"--min-np", "--min-num-proc"},
       "N",
       "go on while there are this many workers"},
      {Id::kMaxNumProc, kElastic, {"--max-np", "--max-num-proc"}, "N", "never start more"},
      {Id::kSlotsPerHost,
       kElastic,
       {"--slots-per-host"},
       "N",
       "for hosts that are discovered without a number of slots; with --join, of this host"},
      {Id::kHostDiscoveryScript,
       kElastic,
       {"--host-discovery-script"},
       "FILE",
       "prints the hosts there are, as 'host' or 'host:slots' lines"},
      {Id::kJoin,
       kElastic,
       {"--join"},
       "HOST:PORT",
       "without ssh: the same command on every host; that host launches, others join it"},
      {Id::kKeyFile,
       kElastic,
       {"--key-file"},
       "FILE",
       "with --join: 32 random bytes that the hosts of the job share"},
      {Id::kElasticTimeout,
       kElastic,
       {"--elastic-timeout"},
       "SECONDS",
       "how long to wait for enough slots (600, or HOROVOD_ELASTIC_TIMEOUT)"},
      {Id::kResetLimit, kElastic, {"--reset-limit"}, "N", "end the job after this many resets"},
      {Id::kBlacklistCooldownRange,
       kElastic,
       {"--blacklist-cooldown-range"},
       "MIN MAX",
       "seconds until a failed host is tried again; 1 to 3600",
       kShown,
       2},
      {Id::kWholeHosts,
       kElastic,
       {"--whole-hosts"},
       "",
       "as the original: a failed worker takes its host with it, and hosts that come are waited "
       "for"},
      {Id::kElasticLog,
       kElastic,
       {"--elastic-log"},
       "FILE",
       "every decision as a line of JSON: when, what, why"},
      {Id::kChaos,
       kElastic,
       {"--chaos"},
       "kill=SECONDS[,seed=N]",
       "kill a random worker about that often, to try a program"},
  };
}

// "Mark cycles in the timeline." -> "mark cycles in the timeline"; names keep their capitals.
std::string phrase_of(std::string sentence) {
  if (sentence.ends_with('.')) sentence.pop_back();
  std::erase(sentence, '`');
  if (sentence.size() > 1 && std::isupper(static_cast<unsigned char>(sentence[1])) == 0)
    sentence[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(sentence[0])));
  return sentence;
}

std::string_view value_name_of(TunableKind kind) {
  switch (kind) {
    case TunableKind::kSwitch:
      return "";
    case TunableKind::kDecimal:
      return "X";
    case TunableKind::kText:
      return "FILE";
    case TunableKind::kLogLevel:
      return "trace|debug|info|warning|error|fatal";
    case TunableKind::kInteger:
    case TunableKind::kMebibytes:
      break;
  }
  return "N";
}

// What the core says about the variable that an option sets. Options read as phrases.
const SettingInfo& setting_of(std::string_view variable) {
  static const std::vector<SettingInfo> settings = [] {
    std::vector<SettingInfo> all = describe_settings();
    for (SettingInfo& info : all) info.meaning = phrase_of(info.meaning);
    return all;
  }();
  return *std::find_if(settings.begin(), settings.end(),
                       [&](const SettingInfo& info) { return info.name == variable; });
}

std::vector<OptionInfo> tunable_rows() {
  std::vector<OptionInfo> rows;
  for (const TunableInfo& tunable : tunable_table()) {
    const SettingInfo& setting = setting_of(tunable.variable);
    const auto group = setting.group == kWithoutEffect ? kWithoutEffect : tunable.group;
    for (const TunableFlag& flag : tunable.flags) {
      const bool first = &flag == &tunable.flags.front();
      const std::string_view help = first ? std::string_view(setting.meaning) : "turn it off";
      rows.push_back({.id = Id::kTunable,
                      .group = group,
                      .names = {flag.name},
                      .value_name = value_name_of(tunable.kind),
                      .help = flag.help.empty() ? help : flag.help,
                      .visibility = flag.visibility,
                      .tunable = tunable.id,
                      .turns_on = flag.turns_on});
    }
  }
  return rows;
}

std::string guess(std::string_view name) {
  std::vector<std::string_view> known;
  for (const OptionInfo& option : option_table()) {
    if (option.visibility != kShown) continue;
    // "-x" is two edits from every short option: only long names are worth a guess.
    std::copy_if(option.names.begin(), option.names.end(), std::back_inserter(known),
                 [](std::string_view spelling) { return spelling.starts_with("--"); });
  }
  return near_word_text(name, known);
}

}  // namespace

std::span<const OptionInfo> option_table() {
  static const std::vector<OptionInfo> table = [] {
    std::vector<OptionInfo> rows;
    for (auto part : {general_rows, launcher_rows, tunable_rows}) {
      for (OptionInfo& row : part()) rows.push_back(std::move(row));
    }
    return rows;
  }();
  return table;
}

std::span<const std::string_view> option_groups() { return kGroups; }

bool is_option_name(std::string_view name) {
  return std::any_of(option_table().begin(), option_table().end(), [&](const OptionInfo& option) {
    return std::find(option.names.begin(), option.names.end(), name) != option.names.end();
  });
}

Result<const OptionInfo*> find_option(std::string_view name) {
  std::vector<std::string_view> beginnings;
  const OptionInfo* match = nullptr;
  for (const OptionInfo& option : option_table()) {
    for (std::string_view known : option.names) {
      if (known == name) return &option;
      if (name.starts_with("--") && known.starts_with(name)) {
        // Two names of one option are no ambiguity.
        if (match != &option) beginnings.push_back(known);
        match = &option;
      }
    }
  }
  if (beginnings.size() == 1) return match;
  if (beginnings.size() > 1) {
    return invalid_argument(
        concat("option ", name, " is ambiguous: it could be ", join_text(beginnings, " or ")));
  }
  return invalid_argument(concat("unknown option '", name, "'", guess(name)));
}

}  // namespace hvd::launch
