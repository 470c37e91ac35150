#include "bootstrap/pmi_client.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "base/parse.h"
#include "base/text.h"
#include "topology/variables.h"

namespace hvd::bootstrap {
namespace {

constexpr size_t kLongestLine = 16 << 10;

Result<int> descriptor_of(const Environment& environment) {
  HVD_TRY_ASSIGN(const auto fd, topology::integer_variable(environment, "PMI_FD", 0));
  return fd.value_or(-1);
}

Status wait_for(int fd, short events, Deadline deadline) {
  do {
    pollfd item{fd, events, 0};
    const auto left = deadline.remaining(std::chrono::hours(1));
    const timespec span{static_cast<time_t>(left.count() / 1'000'000'000),
                        static_cast<long>(left.count() % 1'000'000'000)};
    if (ppoll(&item, 1, &span, nullptr) > 0) return Status::ok();
  } while (!deadline.passed());
  return Status(StatusCode::kTimedOut, "PMI: no answer from the process manager in time");
}

}  // namespace

bool has_pmi(const Environment& environment) {
  const auto fd = descriptor_of(environment);
  return fd && *fd >= 0 && fcntl(*fd, F_GETFD) >= 0;
}

std::string pmi_field(std::string_view line, std::string_view name) {
  while (!line.empty()) {
    const size_t blank = std::min(line.find(' '), line.size());
    const std::string_view word = line.substr(0, blank);
    line.remove_prefix(std::min(blank + 1, line.size()));
    const size_t equals = word.find('=');
    if (word.substr(0, equals) == name && equals != word.npos) {
      return std::string(word.substr(equals + 1));
    }
  }
  return {};
}

std::string without_value(std::string_view line) {
  const size_t at = line.find("value=");
  if (at == line.npos) return std::string(line);
  const size_t end = std::min(line.find(' ', at), line.size());
  return concat(line.substr(0, at), "value=(left out)", without_value(line.substr(end)));
}

Result<PmiClient> PmiClient::open(const Environment& environment, Deadline deadline) {
  HVD_TRY_ASSIGN(const int fd, descriptor_of(environment));
  PmiClient client(fd);
  HVD_TRY(client.greet(deadline));
  return client;
}

Status PmiClient::greet(Deadline deadline) {
  HVD_TRY_ASSIGN(const std::string version,
                 ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init", deadline));
  if (const std::string rc = pmi_field(version, "rc"); rc != "0") {
    return precondition_error(concat("PMI: the process manager refuses version 1: ", version));
  }
  HVD_TRY_ASSIGN(const std::string maxes, ask("cmd=get_maxes", "maxes", deadline));
  const auto longest = parse_integer(pmi_field(maxes, "vallen_max"), {.least = 1, .most = 1 << 20});
  if (!longest) return blame("PMI: vallen_max", longest.status());
  longest_value_ = static_cast<size_t>(*longest) - 1;
  HVD_TRY_ASSIGN(const std::string space, ask("cmd=get_my_kvsname", "my_kvsname", deadline));
  space_ = pmi_field(space, "kvsname");
  if (space_.empty()) return corrupted(concat("PMI: expected a kvsname, got '", space, "'"));
  return Status::ok();
}

Status PmiClient::put(std::string_view key, std::string_view value, Deadline deadline) {
  HVD_TRY_ASSIGN(const std::string answer,
                 ask(concat("cmd=put kvsname=", space_, " key=", key, " value=", value),
                     "put_result", deadline));
  if (pmi_field(answer, "rc") == "0") return Status::ok();
  return unknown_error(concat("PMI: putting '", key, "' failed: ", without_value(answer)));
}

Result<std::string> PmiClient::get(std::string_view key, Deadline deadline) {
  HVD_TRY_ASSIGN(const std::string answer,
                 ask(concat("cmd=get kvsname=", space_, " key=", key), "get_result", deadline));
  std::string value = pmi_field(answer, "value");
  if (pmi_field(answer, "rc") == "0" && !value.empty()) return value;
  return unknown_error(concat("PMI: there is no '", key, "': ", without_value(answer)));
}

Status PmiClient::barrier(Deadline deadline) {
  const auto answer = ask("cmd=barrier_in", "barrier_out", deadline);
  if (answer) return Status::ok();
  if (answer.status().code() != StatusCode::kTimedOut) return answer.status();
  return Status(StatusCode::kTimedOut, "PMI: not all ranks of the job called init in time");
}

Status PmiClient::finalize(Deadline deadline) {
  const auto answer = ask("cmd=finalize", "finalize_ack", deadline);
  return answer ? Status::ok() : answer.status();
}

Result<std::string> PmiClient::ask(std::string_view request, std::string_view expected,
                                   Deadline deadline) {
  HVD_TRY(send_line(concat(request, "\n"), deadline));
  HVD_TRY_ASSIGN(std::string line, receive_line(deadline));
  if (pmi_field(line, "cmd") == expected) return line;
  return corrupted(concat("PMI: expected '", expected, "' from the process manager, got '",
                          without_value(line).substr(0, 200), "'"));
}

Status PmiClient::send_line(std::string_view line, Deadline deadline) const {
  while (!line.empty()) {
    HVD_TRY(wait_for(fd_, POLLOUT, deadline));
    const ssize_t sent = write(fd_, line.data(), line.size());
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent < 0) return errno_status("PMI: cannot write to PMI_FD", errno);
    line.remove_prefix(static_cast<size_t>(sent));
  }
  return Status::ok();
}

Result<std::string> PmiClient::receive_line(Deadline deadline) {
  for (;;) {
    if (const size_t end = received_.find('\n'); end != received_.npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    if (received_.size() > kLongestLine)
      return corrupted("PMI: the process manager sends no lines");
    HVD_TRY(wait_for(fd_, POLLIN, deadline));
    char buffer[4096];
    const ssize_t got = read(fd_, buffer, sizeof buffer);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return errno_status("PMI: cannot read from PMI_FD", errno);
    if (got == 0) return Status(StatusCode::kPeerLost, "PMI: the process manager has gone");
    received_.append(buffer, static_cast<size_t>(got));
  }
}

}  // namespace hvd::bootstrap
