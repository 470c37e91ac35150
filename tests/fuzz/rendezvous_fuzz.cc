// rendezvous_fuzz.cc - what a process of this host says at the socket of a job's ranks, and what
// ranks leave in a launcher's store while they agree on a key, ends in a value or a Status.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/key_agreement.h"
#include "shm/rendezvous_message.h"

namespace {

using namespace hvd;

void read_hello(const uint8_t* data, size_t size) {
  shm::Hello hello{};
  std::memcpy(&hello, data, std::min(size, sizeof hello));
  const shm::Meeting meeting{.job_id = "fuzz", .epoch = 1, .rank = 0, .size = 4};
  const auto reason = shm::refuse_hello(hello, meeting, {true, false, false, true});
  if (!reason) HVD_ASSERT(hello.rank == 1 || hello.rank == 2, "only ranks that are missing");
}

void read_answer(const uint8_t* data, size_t size) {
  shm::Answer answer{};
  std::memcpy(&answer, data, std::min(size, sizeof answer));
  const Status status = shm::status_of(answer);
  HVD_ASSERT(status.message().size() <= sizeof answer.text, "the text has an end");
}

// A store whose values are all the same bytes, whoever asks.
class OneValue final : public store::Store {
 public:
  explicit OneValue(std::string value) : value_(std::move(value)) {}
  Status set(std::string_view, std::string_view, Deadline) override { return Status::ok(); }
  Result<std::string> get(std::string_view, Deadline) override { return value_; }

 private:
  std::string value_;
};

void agree(std::string value) {
  OneValue store(std::move(value));
  const Deadline soon = Deadline::after(Nanoseconds(0));
  for (const int32_t rank : {0, 2}) {
    const auto key =
        bootstrap::KeyAgreement(store, {.rank = rank, .size = 3, .epoch = 1, .hostname = "h"})
            .agree(std::nullopt, soon);
    HVD_ASSERT(rank == 0 || !key, "nobody else can seal a key for this process");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  switch (data[0]) {
    case 'h':
      read_hello(data + 1, size - 1);
      break;
    case 'a':
      read_answer(data + 1, size - 1);
      break;
    default:
      agree(std::string(reinterpret_cast<const char*>(data + 1), size - 1));
  }
  return 0;
}
