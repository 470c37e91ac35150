#include "shm/rendezvous_message.h"

#include <cstring>

#include "base/text.h"
#include "shm/job_layout.h"

namespace hvd::shm {

std::optional<std::string> refuse_hello(const Hello& hello, const Meeting& meeting,
                                        const std::vector<bool>& here) {
  if (hello.magic != kJobMagic) return "not a horovod process";
  if (hello.version != kLayoutVersion) {
    return concat("rank ", hello.rank, " has layout version ", hello.version, ", rank 0 has ",
                  kLayoutVersion, "; all ranks need the same horovod");
  }
  if (hello.epoch != meeting.epoch) {
    return concat("rank ", hello.rank, " is in epoch ", hello.epoch, ", rank 0 in ", meeting.epoch);
  }
  if (hello.size != meeting.size) {
    return concat("rank ", hello.rank, " says the size is ", hello.size, ", rank 0 says ",
                  meeting.size);
  }
  if (hello.rank < 1 || hello.rank >= meeting.size) {
    return concat("rank ", hello.rank, " is outside 1..", meeting.size - 1);
  }
  if (here[static_cast<size_t>(hello.rank)]) return concat("rank ", hello.rank, " came twice");
  return std::nullopt;
}

Answer answer_of(const Status& status, uint64_t bytes) {
  Answer answer{};
  answer.magic = kJobMagic;
  answer.ok = status.is_ok() ? 1 : 0;
  answer.code = static_cast<int32_t>(status.code());
  answer.bytes = bytes;
  std::strncpy(answer.text, status.message().c_str(), sizeof answer.text - 1);
  return answer;
}

Status status_of(const Answer& answer) {
  if (answer.ok != 0) return Status::ok();
  const std::string text(answer.text, strnlen(answer.text, sizeof answer.text));
  // Those that another meeting may cure; whatever else the number says, it is not believed.
  for (const StatusCode code : {StatusCode::kTimedOut, StatusCode::kPeerLost}) {
    if (answer.code == static_cast<int32_t>(code)) return Status(code, text);
  }
  return precondition_error(text);
}

}  // namespace hvd::shm
