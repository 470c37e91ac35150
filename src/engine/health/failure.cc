#include "engine/health/failure.h"

#include <string_view>

#include "base/text.h"
#include "engine/health/rank_text.h"

namespace hvd::engine {
namespace {

constexpr std::string_view kShutDownText =
    "Horovod has been shut down. This was caused by a call to shutdown on one of the ranks while "
    "this operation was pending, or by "
    "submitting it after one of the ranks had shut down";

}  // namespace

Status shut_down_status(const shm::Job& job, int leaver) {
  const shm::RankBlock& block = job.block(leaver);
  return Status(StatusCode::kShutDown, concat(kShutDownText, ": rank ", block.global_rank,
                                              " (host ", host_of(block), ") left first"));
}

int first_leaver(const shm::Job& job, int otherwise) {
  const uint32_t word = job.header().first_leaver.load(std::memory_order_acquire);
  return word >= 1 && word <= static_cast<uint32_t>(job.size()) ? static_cast<int>(word) - 1
                                                                : otherwise;
}

Status Failure::health() {
  if (is_broken(std::memory_order_acquire)) {
    MutexLock lock(mutex_);
    return failure_;
  }
  if (!is_closing()) return Status::ok();
  return shut_down_status(job_, first_leaver(job_, job_.rank()));
}

void Failure::fail(const Status& status, int rank) {
  const bool is_first = job_.report_failure(status, rank);
  if (is_first && mirror_ != nullptr) mirror_->say_failed(rank, status);
  {
    MutexLock lock(mutex_);
    if (failure_.is_ok()) {
      // What the job failed with first is what everybody reports.
      const Status first = job_.failure();
      failure_ = first.is_ok() ? status : first;
    }
  }
  is_broken_.store(true, std::memory_order_seq_cst);
  job_.wake_everybody();
  waiters_.notify();
}

// The program may end because of it: whoever started the process then knows whose fault it was.
void Failure::telling(const Status& status) {
  if (is_closing()) return;
  const bool broken = is_broken(std::memory_order_acquire);
  if ((!broken && status.code() != StatusCode::kShutDown) || is_note_left_.exchange(true)) return;
  const Status why = broken ? health() : status;
  const int rank = broken ? job_.failed_rank() : leaver_.load(std::memory_order_acquire);
  note_.write({.rank = rank, .code = why.code(), .text = why.message()});
}

bool Failure::take_record() {
  MutexLock lock(mutex_);
  if (record_is_taken_) return false;
  record_is_taken_ = true;
  return true;
}

}  // namespace hvd::engine
