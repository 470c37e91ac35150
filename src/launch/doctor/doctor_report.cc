#include "launch/doctor/doctor_report.h"

#include <algorithm>

#include "base/text.h"
#include "base/version.h"

namespace hvd::launch {
namespace {

std::string padded(std::string text, size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string describe_rate(uint64_t bytes_per_second) {
  constexpr uint64_t kMega = 1000000;
  if (bytes_per_second >= 10000 * kMega) return concat(bytes_per_second / (1000 * kMega), " GB/s");
  if (bytes_per_second >= 1000 * kMega) {
    return concat(bytes_per_second / (1000 * kMega), ".", bytes_per_second / (100 * kMega) % 10,
                  " GB/s");
  }
  if (bytes_per_second >= 10 * kMega) return concat(bytes_per_second / kMega, " MB/s");
  return concat(bytes_per_second / 1000, " kB/s");
}

std::string describe_round_trip(Nanoseconds span) {
  const int64_t microseconds = std::chrono::duration_cast<std::chrono::microseconds>(span).count();
  return microseconds < 10000 ? concat(microseconds, " us") : concat(microseconds / 1000, " ms");
}

void append_host(std::string& text, const DoctorHost& host) {
  text += concat("\nhost ", host.name, host.is_local ? " (this machine)" : "", "\n");
  if (!host.facts) {
    text += concat("  no   ", padded("ssh", 14), host.failure, "\n");
    return;
  }
  if (!host.is_local)
    text += concat("  ok   ", padded("ssh", 14), "reached, horovodrun ", version_text(), "\n");
  for (const Fact& fact : host.facts->facts) {
    text += concat("  ", fact.advice.empty() ? "ok   " : "!!   ", padded(fact.name, 14), fact.value,
                   "\n");
  }
}

std::string cell(const DoctorFindings& findings, size_t from, size_t to) {
  if (from == to) return "-";
  const auto found = findings.probes.find({from, to});
  if (found == findings.probes.end()) return "not tried";
  if (!found->second.failure.empty()) return "no";
  return concat(describe_round_trip(found->second.round_trip), ", ",
                describe_rate(found->second.bytes_per_second));
}

void append_matrix(std::string& text, const DoctorFindings& findings) {
  if (findings.hosts.size() < 2) return;
  constexpr size_t kLeastWidth = 20;
  size_t width = kLeastWidth;
  for (const DoctorHost& host : findings.hosts) width = std::max(width, host.name.size() + 2);
  text += "\nreachability: round trip and bandwidth of one TCP stream, from row to column\n";
  std::string line = padded("  ", width);
  for (const DoctorHost& host : findings.hosts) line += padded(host.name, width);
  text += concat(line.substr(0, line.find_last_not_of(' ') + 1), "\n");
  for (size_t from = 0; from < findings.hosts.size(); ++from) {
    line = padded(concat("  ", findings.hosts[from].name), width);
    for (size_t to = 0; to < findings.hosts.size(); ++to) {
      line += padded(cell(findings, from, to), width);
    }
    text += concat(line.substr(0, line.find_last_not_of(' ') + 1), "\n");
  }
}

std::vector<std::string> problems(const DoctorFindings& findings) {
  std::vector<std::string> lines;
  for (const DoctorHost& host : findings.hosts) {
    if (!host.facts) {
      lines.push_back(concat("host ", host.name, " cannot be used: ", host.failure));
      continue;
    }
    for (const Fact& fact : host.facts->facts) {
      if (!fact.advice.empty()) lines.push_back(concat("host ", host.name, ": ", fact.advice));
    }
  }
  for (const auto& [pair, result] : findings.probes) {
    if (result.failure.empty()) continue;
    lines.push_back(concat("host ", findings.hosts[pair.first].name, " does not reach host ",
                           findings.hosts[pair.second].name, ": ", result.failure,
                           "; open the ports between the hosts, or name the interface that "
                           "connects them with --network-interfaces"));
  }
  return lines;
}

}  // namespace

bool is_usable(const DoctorFindings& findings) {
  return std::all_of(findings.hosts.begin(), findings.hosts.end(),
                     [](const DoctorHost& host) { return host.facts.has_value(); }) &&
         std::all_of(findings.probes.begin(), findings.probes.end(),
                     [](const auto& probe) { return probe.second.failure.empty(); });
}

std::string doctor_report(const DoctorFindings& findings) {
  std::string text = concat("horovodrun doctor ", version_text(), "\n");
  for (const DoctorHost& host : findings.hosts) append_host(text, host);
  append_matrix(text, findings);
  return text;
}

std::string doctor_advice(const DoctorFindings& findings) {
  const std::vector<std::string> lines = problems(findings);
  std::string text = lines.empty() ? "\nno problems found\n" : "\nwhat to do\n";
  for (const std::string& line : lines) text += concat("  ", line, "\n");
  return text;
}

}  // namespace hvd::launch
