#include "launch/job/decide_lines.h"

#include <algorithm>

#include "base/json_text.h"
#include "base/parse.h"
#include "base/text.h"
#include "launch/options/options.h"

namespace hvd::launch {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

std::string to_hex(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) {
    const auto value = static_cast<uint8_t>(byte);
    out += kDigits[value >> 4];
    out += kDigits[value & 15];
  }
  return out;
}

Result<std::string> from_hex(std::string_view text) {
  const auto digit = [](char c) -> size_t { return std::string_view(kDigits).find(c); };
  std::string out;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    const size_t high = digit(text[i]), low = digit(text[i + 1]);
    if (high > 15 || low > 15) break;
    out += static_cast<char>(high << 4 | low);
  }
  if (out.size() * 2 == text.size()) return out;
  return invalid_argument(concat("expected pairs of hexadecimal digits, got '", text, "'"));
}

// The next word; empty at the end.
std::string_view take_word(std::string_view& rest) {
  const size_t end = std::min(rest.find(' '), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

Result<int32_t> take_number(std::string_view& rest, Range<int64_t> range) {
  const auto number = parse_integer(take_word(rest), range);
  if (!number) return number.status();
  return static_cast<int32_t>(*number);
}

Result<DecideEvent> parse_hosts_event(std::string_view rest) {
  std::vector<HostSlots> hosts;
  while (!rest.empty()) {
    const std::string_view word = take_word(rest);
    const size_t colon = word.rfind(':');
    if (colon == std::string_view::npos || colon == 0) {
      return invalid_argument(concat("expected host:slots, got '", word, "'"));
    }
    const auto slots = parse_integer(word.substr(colon + 1), {.least = 0, .most = kMaxWorkers});
    if (!slots) return slots.status();
    hosts.push_back({std::string(word.substr(0, colon)), static_cast<int32_t>(*slots)});
  }
  return DecideEvent(std::move(hosts));
}

Result<DecideEvent> parse_message_event(std::string_view rest) {
  HVD_TRY_ASSIGN(const int32_t worker, take_number(rest, {.least = 0, .most = INT32_MAX}));
  HVD_TRY_ASSIGN(const std::string bytes, from_hex(take_word(rest)));
  HVD_TRY_ASSIGN(const elastic::ToLauncher message, elastic::decode_to_launcher(bytes));
  return DecideEvent(WorkerMessage{.worker = worker, .message = message});
}

Result<DecideEvent> parse_end_event(std::string_view rest) {
  WorkerEnd end;
  HVD_TRY_ASSIGN(end.worker, take_number(rest, {.least = 0, .most = INT32_MAX}));
  const std::string_view how = take_word(rest);
  if (how != "success" && how != "failure") {
    return invalid_argument(concat("expected success or failure, got '", how, "'"));
  }
  end.is_success = how == "success";
  HVD_TRY_ASSIGN(end.exit_code, take_number(rest, {.least = 0, .most = 255}));
  end.how = rest;
  return DecideEvent(std::move(end));
}

std::string line_of(const JsonObject& object) { return object.text() + "\n"; }

JsonObject begin(std::string_view what, int32_t worker) {
  JsonObject object;
  object.add("do", json_string(what));
  if (worker >= 0) object.add("worker", concat(worker));
  return object;
}

std::string tell_line(const Action& action, const elastic::ToWorker& message) {
  JsonObject object = begin("tell", action.worker);
  object.add("message", json_string(to_hex(elastic::encode(message))));
  if (const auto* place = std::get_if<elastic::Assign>(&message)) {
    object.add("epoch", concat(place->epoch))
        .add("rank", concat(place->rank))
        .add("size", concat(place->size));
  }
  return line_of(object);
}

std::string say_line(const Action& action, uint64_t epoch) {
  JsonObject object = begin("say", action.worker);
  object.add("event", json_string(action.event))
      .add("epoch", concat(epoch))
      .add("reason", json_string(action.reason));
  return line_of(object);
}

std::string carry_line(const Action& action, int64_t time_ns) {
  switch (action.kind) {
    case ActionKind::kStart:
      return line_of(begin("start", action.worker)
                         .add("host", json_string(action.host))
                         .add("slot", concat(action.slot)));
    case ActionKind::kAssign:
      return tell_line(action, action.place);
    case ActionKind::kRemove:
      return tell_line(action, elastic::Removed{action.reason});
    case ActionKind::kBreak:
      return tell_line(action, elastic::Broken{action.epoch, action.reason});
    case ActionKind::kNews:
      return tell_line(action, elastic::News{action.changes == 0 ? 0 : time_ns, action.changes});
    case ActionKind::kKill:
      return line_of(begin("kill", action.worker).add("reason", json_string(action.reason)));
    case ActionKind::kEnd:
      return line_of(begin("end", -1)
                         .add("exit_code", concat(action.exit_code))
                         .add("reason", json_string(action.reason)));
    case ActionKind::kSay:
      break;
  }
  return {};
}

}  // namespace

Result<DecideEvent> parse_event(std::string_view line) {
  std::string_view rest = line;
  const std::string_view word = take_word(rest);
  if (word == "hosts") return parse_hosts_event(rest);
  if (word == "message") return parse_message_event(rest);
  if (word == "end") return parse_end_event(rest);
  return invalid_argument(concat("expected hosts, message or end, got '", word, "'"));
}

std::string action_lines(const Action& action, uint64_t epoch, int64_t time_ns) {
  const std::string said = action.event.empty() ? std::string() : say_line(action, epoch);
  return said + carry_line(action, time_ns);
}

std::string store_line(const std::string& addresses) {
  return line_of(begin("store", -1).add("addresses", json_string(addresses)));
}

}  // namespace hvd::launch
