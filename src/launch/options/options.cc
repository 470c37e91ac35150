#include "launch/options/options.h"

#include <algorithm>
#include <string_view>

#include "base/parse.h"
#include "base/text.h"
#include "launch/options/option_values.h"

namespace hvd::launch {
namespace {

// A name, and what stood behind it in the same argument: --name=value, -Hvalue.
struct Spelled {
  const OptionInfo* info;
  std::string_view spelling;
  std::optional<std::string_view> attached;
};

Result<Spelled> identify(std::string_view argument) {
  // argparse, which the users of the original know, takes -Hvalue for options of one letter.
  const bool is_short = argument.size() > 2 && argument[0] == '-' && argument[2] != '=';
  if (is_short && !is_option_name(argument)) {
    for (std::string_view name : {"-H", "-p", "-i"}) {
      if (!argument.starts_with(name)) continue;
      HVD_TRY_ASSIGN(const OptionInfo* info, find_option(name));
      return Spelled{.info = info, .spelling = name, .attached = argument.substr(2)};
    }
  }
  Spelled given{.info = nullptr, .spelling = argument, .attached = {}};
  if (const size_t equals = argument.find('='); equals != std::string_view::npos) {
    given.spelling = argument.substr(0, equals);
    given.attached = argument.substr(equals + 1);
  }
  HVD_TRY_ASSIGN(given.info, find_option(given.spelling));
  return given;
}

// The values of an option, which may take several arguments; moves `next` behind them.
Result<std::vector<std::string_view>> take_values(const Spelled& given,
                                                  std::span<const std::string> arguments,
                                                  size_t& next) {
  std::vector<std::string_view> values;
  if (!given.info->takes_value()) {
    if (!given.attached) return values;
    return invalid_argument(concat(given.spelling, " takes no value, got '", *given.attached, "'"));
  }
  if (given.attached) values.push_back(*given.attached);
  while (values.size() < given.info->value_count) {
    if (next == arguments.size()) {
      return invalid_argument(
          concat(given.spelling, " needs ",
                 given.info->value_count == 1 ? "a value: " : "values: ", given.info->value_name));
    }
    values.emplace_back(arguments[next++]);
  }
  return values;
}

bool answers_at_once(const Options& options) {
  return options.request == Request::kHelp || options.request == Request::kVersion;
}

Status check_join(const Options& options) {
  const ElasticOptions& elastic = options.elastic;
  if (elastic.join.empty() && elastic.key_file.empty()) return Status::ok();
  if (elastic.join.empty()) {
    return invalid_argument("--key-file belongs to --join HOST:PORT, which is missing");
  }
  if (elastic.key_file.empty()) {
    return invalid_argument(
        "--join needs --key-file FILE, by which the hosts of the job know each other: (umask 077 "
        "&& head -c 32 /dev/urandom > FILE)");
  }
  const char* other = nullptr;
  if (!options.hosts.empty()) other = "-H";
  if (!options.hostfile.empty()) other = "--hostfile";
  if (!elastic.host_discovery_script.empty()) other = "--host-discovery-script";
  if (options.controller == Controller::kMpi) other = "--mpi";
  if (options.controller == Controller::kJsrun) other = "--jsrun";
  if (other == nullptr) return Status::ok();
  return invalid_argument(concat("--join and ", other,
                                 " contradict each other: with --join the hosts come by "
                                 "themselves"));
}

Status check_together(const Options& options) {
  if (!options.hosts.empty() && !options.hostfile.empty()) {
    return invalid_argument("-H and --hostfile contradict each other: give one of them");
  }
  if (!options.elastic.host_discovery_script.empty() &&
      (!options.hosts.empty() || !options.hostfile.empty())) {
    return invalid_argument(concat("--host-discovery-script and ",
                                   options.hosts.empty() ? "--hostfile" : "-H",
                                   " contradict each other: give one of them"));
  }
  HVD_TRY(check_join(options));
  if (options.request != Request::kRun) return Status::ok();
  if (options.tries_gpus)
    return invalid_argument("--gpu belongs to the doctor: horovodrun doctor --gpu");
  if (options.elastic.chaos_kill && !options.elastic.is_requested()) {
    return invalid_argument(
        "--chaos kills workers, which only an elastic job survives: give --min-np");
  }
  if (options.command.empty()) {
    return invalid_argument("the command is missing: horovodrun -np N command [args...]");
  }
  if (options.command.front().empty()) return invalid_argument("the command is an empty string");
  return Status::ok();
}

}  // namespace

Result<ParsedWords> parse_words(std::span<const std::string> arguments) {
  ParsedWords parsed;
  Options& options = parsed.options;
  OptionReader reader(options);
  size_t next = 0;
  if (!arguments.empty() && arguments.front() == "doctor") {
    options.request = Request::kDoctor;
    next = 1;
  }
  // --help and --version answer at once, as they do everywhere: whatever follows does not matter.
  while (next < arguments.size() && !answers_at_once(options)) {
    const std::string_view argument = arguments[next];
    if (argument == "--") {
      ++next;
      break;
    }
    if (argument.size() < 2 || argument.front() != '-') break;
    ++next;
    HVD_TRY_ASSIGN(const Spelled given, identify(argument));
    HVD_TRY_ASSIGN(const std::vector<std::string_view> values, take_values(given, arguments, next));
    HVD_TRY(reader.apply(*given.info, given.spelling, values));
  }
  if (answers_at_once(options)) return parsed;
  options.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(next), arguments.end());
  HVD_TRY(check_together(options));
  parsed.values = reader.values();
  return parsed;
}

Result<Options> parse_options(std::span<const std::string> arguments) {
  HVD_TRY_ASSIGN(ParsedWords parsed, parse_words(arguments));
  HVD_TRY(parsed.values);
  return std::move(parsed.options);
}

}  // namespace hvd::launch
