#include "tests/support/elastic_worker.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "elastic/message.h"
#include "horovod/hvd.h"

namespace hvd::testing {
namespace {

constexpr int64_t kLeaveFlag = 4, kStopFlag = 8;

// One number from every rank.
hvd_status reduce(const char* name, hvd_reduce_op op, int64_t in, int64_t* out) {
  const int64_t shape[] = {1};
  hvd_request request;
  hvd_request_init(&request);
  request.kind = HVD_ALLREDUCE;
  request.dtype = HVD_INT64;
  request.reduce_op = op;
  request.ndim = 1;
  request.shape = shape;
  request.input = &in;
  request.output = out;
  request.name = name;
  return hvd_run(&request, HVD_FOREVER);
}

void tell(hvd_elastic_report_kind kind) {
  hvd_elastic_report report{};
  report.struct_size = sizeof report;
  report.kind = kind;
  hvd_elastic_tell(&report);
}

// What this worker has heard; others hear of it by the sum of the step.
int64_t wishes(const char* stop_file) {
  hvd_elastic_news news{};
  news.struct_size = sizeof news;
  hvd_elastic_look(&news);
  return news.changes | (news.is_asked_to_leave != 0 ? kLeaveFlag : 0) |
         (::access(stop_file, F_OK) == 0 ? kStopFlag : 0);
}

enum class WorldEnd { kLost, kChange, kStop, kLeave, kWrong };

// Bytes that are no small operation, so that whatever carries large ones carries them.
hvd_status reduce_large(std::vector<float>& values) {
  const int64_t shape[] = {std::ssize(values)};
  std::fill(values.begin(), values.end(), 1.0f);
  hvd_request request;
  hvd_request_init(&request);
  request.kind = HVD_ALLREDUCE;
  request.dtype = HVD_FLOAT32;
  request.reduce_op = HVD_OP_SUM;
  request.ndim = 1;
  request.shape = shape;
  request.input = request.output = values.data();
  request.name = "large";
  return hvd_run(&request, HVD_FOREVER);
}

WorldEnd live_in_world(const char* stop_file, std::vector<float>& large, int64_t& step) {
  int64_t newest = 0;
  if (reduce("newest", HVD_OP_MAX, step, &newest) != HVD_OK) return WorldEnd::kLost;
  step = newest;
  while (true) {
    ::poll(nullptr, 0, 1);  // the work of a step
    int64_t count = 0, all = 0;
    if (reduce("count", HVD_OP_SUM, 1, &count) != HVD_OK) return WorldEnd::kLost;
    if (count != hvd_size()) return WorldEnd::kWrong;
    if (!large.empty()) {
      if (reduce_large(large) != HVD_OK) return WorldEnd::kLost;
      if (std::count(large.begin(), large.end(), static_cast<float>(count)) != std::ssize(large))
        return WorldEnd::kWrong;
    }
    ++step;
    const int64_t mine = wishes(stop_file);
    if (reduce("wishes", HVD_OP_MAX, mine, &all) != HVD_OK) return WorldEnd::kLost;
    if (all >= kStopFlag) return WorldEnd::kStop;
    if (all != 0) return (mine & kLeaveFlag) != 0 ? WorldEnd::kLeave : WorldEnd::kChange;
  }
}

// Asks for its place as init does, and then is not there.
[[noreturn]] void die_in_init(int rank) {
  const int socket = std::atoi(std::getenv(elastic::kChannelVariable));
  const std::string ready = elastic::encode(elastic::ToLauncher(elastic::Ready{}));
  std::array<char, elastic::kMaxMessageBytes> buffer{};
  if (::send(socket, ready.data(), ready.size(), 0) < 0) ::_exit(3);
  const ssize_t count = ::recv(socket, buffer.data(), buffer.size(), 0);
  std::printf("dies as rank %d with %zd bytes\n", rank, count);
  std::fflush(stdout);
  ::_exit(4);
}

}  // namespace

std::optional<int> run_as_elastic_worker(int argc, char** argv) {
  if (argc < 3 || std::strcmp(argv[1], kElasticFlag) != 0) return std::nullopt;
  const int rank = std::atoi(std::getenv("HOROVOD_RANK"));
  const std::string role = argc == 5 ? argv[3] : "";
  const int number = argc == 5 ? std::atoi(argv[4]) : -1;
  if (role == "dies-in-init" && rank == number) die_in_init(rank);
  if (role == "cannot-start" && rank >= number) return 6;
  std::vector<float> large(role == "large" ? static_cast<size_t>(number) : 0);
  int64_t step = 0;
  while (true) {
    const hvd_status status = hvd_init(nullptr);
    if (status == HVD_REMOVED) {
      std::printf("is not needed: %s\n", hvd_last_error());
      return 0;
    }
    if (status != HVD_OK) {
      std::printf("init failed: %s\n", hvd_last_error());
      return 7;
    }
    std::printf("epoch %d rank %d of %d is %d\n", static_cast<int>(hvd_elastic_epoch()), hvd_rank(),
                hvd_size(), static_cast<int>(::getpid()));
    std::fflush(stdout);
    const WorldEnd end = live_in_world(argv[2], large, step);
    if (end == WorldEnd::kLost && role == "dies-in-reset" && hvd_rank() == number) return 8;
    if (end == WorldEnd::kLeave) tell(HVD_ELASTIC_LEAVING);
    if (end == WorldEnd::kStop) tell(HVD_ELASTIC_DONE);
    hvd_shutdown();
    if (end == WorldEnd::kWrong) return 9;
    if (end == WorldEnd::kLeave || end == WorldEnd::kStop) {
      std::printf("finished after %d steps\n", static_cast<int>(step));
      return 0;
    }
  }
}

}  // namespace hvd::testing
