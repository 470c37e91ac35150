// A rank of a job of its own, beside the rank of the benchmark that started it: settings are those
// of a process, so engines with different ones need processes. Reads a Command from standard input,
// runs it so many times, and answers with a byte; ends with its input.
#include <horovod/hvd.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <memory>
#include <vector>

#include "engine_worker.h"
#include "ours.h"

namespace hvd::bench {
namespace {

// Memory and a submission that was looked up once.
class Work {
 public:
  explicit Work(const EngineWorker::Command& command)
      : memory_(command.bytes, std::byte{1}),
        name_(std::to_string(command.kind) + "." + std::to_string(command.bytes)),
        shape_(static_cast<int64_t>(command.bytes)) {
    const bool is_sum = command.kind == EngineWorker::kAllreduce;
    if (is_sum) shape_ /= 4;
    hvd_request_init(&request_);
    request_.kind = is_sum ? HVD_ALLREDUCE : HVD_BROADCAST;
    request_.name = name_.c_str();
    request_.dtype = is_sum ? HVD_FLOAT32 : HVD_UINT8;
    request_.shape = &shape_;
    request_.ndim = 1;
    request_.input = memory_.data();
    request_.output = memory_.data();
    prepared_ = std::make_unique<Prepared>(std::span(&request_, 1));
  }
  void run(uint32_t operations) const {
    for (uint32_t i = 0; i < operations; ++i) prepared_->run();
  }

 private:
  std::vector<std::byte> memory_;
  const std::string name_;
  int64_t shape_;
  hvd_request request_;
  std::unique_ptr<Prepared> prepared_;
};

void serve() {
  std::map<std::pair<uint32_t, uint64_t>, std::unique_ptr<Work>> works;
  EngineWorker::Command command;
  while (::read(STDIN_FILENO, &command, sizeof command) == sizeof command) {
    auto& work = works[{command.kind, command.bytes}];
    if (work == nullptr) work = std::make_unique<Work>(command);
    work->run(command.operations);
    if (::write(STDOUT_FILENO, "+", 1) != 1) return;
  }
}

}  // namespace
}  // namespace hvd::bench

int main() {
  try {
    hvd::bench::expect_ok(hvd_init(nullptr), "init");
    hvd::bench::serve();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hvd_bench_hosts_worker: %s\n", error.what());
    return 1;
  }
  return hvd_shutdown() == HVD_OK ? 0 : 1;
}
