#include "launch/options.h"

#include <string_view>

#include "base/parse.h"
#include "base/text.h"
#include "launch/option_table.h"

namespace hvd::launch {
namespace {

constexpr int64_t kMaxTimeoutSeconds = int64_t{365} * 24 * 3600;

struct GivenOption {
  const OptionInfo* info;
  std::string_view spelling;
  std::optional<std::string_view> attached;  // from --name=value or -Hvalue
};

Result<GivenOption> identify(std::string_view argument) {
  // argparse, which the users of the original know, takes -Hvalue for options of one letter.
  if (argument.size() > 2 && argument.starts_with("-H") && argument[2] != '=') {
    HVD_TRY_ASSIGN(const OptionInfo* info, find_option("-H"));
    return GivenOption{.info = info, .spelling = "-H", .attached = argument.substr(2)};
  }
  GivenOption given{.info = nullptr, .spelling = argument, .attached = {}};
  if (const size_t equals = argument.find('='); equals != std::string_view::npos) {
    given.spelling = argument.substr(0, equals);
    given.attached = argument.substr(equals + 1);
  }
  HVD_TRY_ASSIGN(given.info, find_option(given.spelling));
  return given;
}

Status apply(const GivenOption& given, std::string_view value, Options& options) {
  switch (given.info->id) {
    case OptionId::kNumProc: {
      const auto count = parse_integer(value, {1, kMaxWorkers});
      if (!count) return blame(given.spelling, count.status());
      options.num_proc = static_cast<int32_t>(*count);
      break;
    }
    case OptionId::kStartTimeout: {
      const auto seconds = parse_integer(value, {1, kMaxTimeoutSeconds});
      if (!seconds) return blame(given.spelling, seconds.status());
      options.start_timeout = std::chrono::seconds(*seconds);
      break;
    }
    case OptionId::kHosts:
      options.hosts = value;
      break;
    case OptionId::kOutputFilename:
      if (value.empty())
        return invalid_argument(concat(given.spelling, ": the directory is empty"));
      options.output_directory = value;
      break;
    case OptionId::kPrefixTimestamp:
      options.prefix_timestamp = true;
      break;
    case OptionId::kVerbose:
      options.verbose = true;
      break;
    case OptionId::kVersion:
      options.request = Request::kVersion;
      break;
    case OptionId::kHelp:
      options.request = Request::kHelp;
      break;
  }
  return Status::ok();
}

Status check_complete(const Options& options) {
  if (options.request != Request::kRun) return Status::ok();
  if (options.num_proc == 0) {
    return invalid_argument("the number of workers is missing: give -np N");
  }
  if (options.command.empty()) {
    return invalid_argument("the command is missing: horovodrun -np N command [args...]");
  }
  if (options.command.front().empty()) return invalid_argument("the command is an empty string");
  return Status::ok();
}

}  // namespace

Result<Options> parse_options(std::span<const std::string> arguments) {
  Options options;
  size_t next = 0;
  // --help and --version answer at once, as they do everywhere: whatever follows does not matter.
  while (next < arguments.size() && options.request == Request::kRun) {
    const std::string_view argument = arguments[next];
    if (argument == "--") {
      ++next;
      break;
    }
    if (argument.size() < 2 || argument.front() != '-') break;
    ++next;
    HVD_TRY_ASSIGN(const GivenOption given, identify(argument));
    std::string_view value;
    if (given.info->takes_value()) {
      if (given.attached) {
        value = *given.attached;
      } else if (next < arguments.size()) {
        value = arguments[next++];
      } else {
        return invalid_argument(concat(given.spelling, " needs a value: ", given.info->value_name));
      }
    } else if (given.attached) {
      return invalid_argument(
          concat(given.spelling, " takes no value, got '", *given.attached, "'"));
    }
    HVD_TRY(apply(given, value, options));
  }
  options.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(next), arguments.end());
  HVD_TRY(check_complete(options));
  return options;
}

}  // namespace hvd::launch
