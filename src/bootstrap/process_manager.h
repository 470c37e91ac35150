// process_manager.h - what started the ranks and can carry a few values between them: behind PMI_FD
// (pmi_client.h) or PMIx (pmix_client.h). One thread; every call blocks until the answer or the
// deadline.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/settings.h"
#include "base/status.h"

namespace hvd::bootstrap {

class ProcessManager {
 public:
  virtual ~ProcessManager() = default;
  // Values have no blanks and no more characters than this.
  virtual size_t longest_value() const = 0;
  virtual Status put(std::string_view key, std::string_view value, Deadline deadline) = 0;
  // What rank 0 put before the barrier.
  virtual Result<std::string> get(std::string_view key, Deadline deadline) = 0;
  // Waits for all ranks of the job.
  virtual Status barrier(Deadline deadline) = 0;
  // Takes leave. Without it the manager takes the end of this process for a failure.
  virtual Status finalize(Deadline deadline) = 0;
};

// The environment names one, and no MPI library is in this process, which would speak with it.
bool has_process_manager(const Environment& environment);
// Greets it.
Result<std::unique_ptr<ProcessManager>> open_process_manager(const Environment& environment,
                                                             Deadline deadline);

}  // namespace hvd::bootstrap
