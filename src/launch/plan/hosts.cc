#include "launch/plan/hosts.h"

#include <algorithm>

#include "base/parse.h"
#include "base/printable.h"
#include "base/text.h"
#include "launch/options/options.h"

namespace hvd::launch {
namespace {

constexpr size_t kMostNameBytes = 255;

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

bool is_address_character(char c) { return is_name_character(c) || c == ':' || c == '%'; }

// A name or an address in brackets, at the beginning of `text`; what is behind it stays in `text`.
Result<std::string> take_host(std::string_view& text) {
  const std::string_view whole = text;
  std::string_view host;
  bool good = false;
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close != std::string_view::npos) {
      host = text.substr(1, close - 1);
      text.remove_prefix(close + 1);
      good = std::all_of(host.begin(), host.end(), is_address_character);
    }
  } else {
    const size_t end = std::min(text.find_first_of(": \t"), text.size());
    host = text.substr(0, end);
    text.remove_prefix(end);
    // A name that begins with a dash would become an option of ssh.
    good = !host.starts_with('-') && std::all_of(host.begin(), host.end(), is_name_character);
  }
  if (!good || host.empty() || host.starts_with('-')) {
    return invalid_argument(concat("expected host:slots, got '", whole, "'"));
  }
  return std::string(host);
}

Result<HostSlots> parse_slots(std::string host, std::string_view digits) {
  const auto slots = parse_integer(digits, {0, kMaxWorkers});
  if (!slots) return blame(concat("slots of ", host), slots.status());
  return HostSlots{std::move(host), static_cast<int32_t>(*slots)};
}

Result<HostSlots> parse_host(std::string_view item) {
  std::string_view rest = item;
  HVD_TRY_ASSIGN(std::string host, take_host(rest));
  if (!rest.starts_with(':')) {
    return invalid_argument(concat("expected host:slots, got '", item, "'"));
  }
  return parse_slots(std::move(host), rest.substr(1));
}

Result<HostSlots> parse_line(std::string_view line, int32_t default_slots) {
  std::string_view rest = line;
  HVD_TRY_ASSIGN(std::string host, take_host(rest));
  if (rest.starts_with(':')) return parse_slots(std::move(host), rest.substr(1));
  rest = trim(rest);
  if (rest.empty()) return HostSlots{std::move(host), default_slots};
  constexpr std::string_view kSlots = "slots=";
  if (!rest.starts_with(kSlots)) {
    return invalid_argument(concat("expected 'host slots=N' or 'host:N', got '", line, "'"));
  }
  rest.remove_prefix(kSlots.size());
  const size_t end = std::min(rest.find_first_of(" \t"), rest.size());
  // Open MPI's limit for oversubscription says nothing that slots= has not said.
  const std::string_view more = trim(rest.substr(end));
  if (!more.empty() && !more.starts_with("max_slots=") && !more.starts_with("max-slots=")) {
    return invalid_argument(concat("expected 'host slots=N', got '", line, "'"));
  }
  return parse_slots(std::move(host), rest.substr(0, end));
}

}  // namespace

Status check_host_name(std::string_view name) {
  if (!name.empty() && name.size() <= kMostNameBytes && !name.starts_with('-') &&
      std::all_of(name.begin(), name.end(), is_address_character)) {
    return Status::ok();
  }
  return invalid_argument(concat("expected the name or address of a host, got '",
                                 printable(name.substr(0, kMostNameBytes)), "'"));
}

Status check_host_names(std::span<const HostSlots> hosts) {
  for (const HostSlots& host : hosts) HVD_TRY(check_host_name(host.host));
  return Status::ok();
}

void add_host(std::vector<HostSlots>& hosts, HostSlots host) {
  const auto same = std::find_if(hosts.begin(), hosts.end(),
                                 [&](const HostSlots& known) { return known.host == host.host; });
  if (same == hosts.end()) {
    hosts.push_back(std::move(host));
  } else {
    same->slots += host.slots;
  }
}

std::vector<HostSlots> merge_hosts(std::span<const HostSlots> named) {
  std::vector<HostSlots> hosts;
  for (const HostSlots& host : named) add_host(hosts, host);
  return hosts;
}

Result<std::vector<HostSlots>> parse_hosts(std::string_view text) {
  std::vector<HostSlots> hosts;
  while (true) {
    const size_t comma = text.find(',');
    HVD_TRY_ASSIGN(HostSlots host, parse_host(trim(text.substr(0, comma))));
    hosts.push_back(std::move(host));
    if (comma == std::string_view::npos) return hosts;
    text.remove_prefix(comma + 1);
  }
}

namespace {

// Takes the next line off, without its comment.
std::string_view take_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return trim(line.substr(0, line.find('#')));
}

}  // namespace

bool names_no_host(std::string_view text) {
  while (!text.empty()) {
    if (!take_line(text).empty()) return false;
  }
  return true;
}

Result<std::vector<HostSlots>> parse_hostfile(std::string_view text, int32_t default_slots) {
  std::vector<HostSlots> hosts;
  for (size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = take_line(text);
    if (line.empty()) continue;
    Result<HostSlots> host = parse_line(line, default_slots);
    if (!host) return blame(concat("line ", number), host.status());
    hosts.push_back(*std::move(host));
  }
  if (hosts.empty()) return invalid_argument("no host in it");
  return hosts;
}

int64_t total_slots(std::span<const HostSlots> hosts) {
  int64_t total = 0;
  for (const HostSlots& host : hosts) total += host.slots;
  return total;
}

bool is_loopback_name(std::string_view host) {
  return host == "localhost" || host == "127.0.0.1" || host == "::1";
}

bool is_own_name(std::string_view host, std::string_view own_hostname) {
  if (is_loopback_name(host) || host == own_hostname) return true;
  // The short form of a full name is the same machine: "node7" and "node7.cluster".
  const std::string_view own_short = own_hostname.substr(0, own_hostname.find('.'));
  return host == own_short ||
         (own_hostname == own_short && host.starts_with(concat(own_short, ".")));
}

}  // namespace hvd::launch
