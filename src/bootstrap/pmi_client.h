// pmi_client.h - the process manager behind PMI_FD: Hydra (mpirun of MPICH and Intel MPI), and
// Slurm under --mpi=pmi2, which speaks this version too. Lines of text, "cmd=put kvsname=k key=a
// value=b". One thread; every call blocks until the answer or the deadline.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/settings.h"
#include "base/status.h"
#include "bootstrap/process_manager.h"

namespace hvd::bootstrap {

// PMI_FD names an open descriptor.
bool has_pmi(const Environment& environment);

class PmiClient final : public ProcessManager {
 public:
  // Greets the process manager. The descriptor stays the launcher's: it is not closed here.
  static Result<PmiClient> open(const Environment& environment, Deadline deadline);

  size_t longest_value() const override { return longest_value_; }
  Status put(std::string_view key, std::string_view value, Deadline deadline) override;
  Result<std::string> get(std::string_view key, Deadline deadline) override;
  Status barrier(Deadline deadline) override;
  Status finalize(Deadline deadline) override;

 private:
  explicit PmiClient(int fd) : fd_(fd) {}
  // The answer, whose cmd must be `expected`.
  Result<std::string> ask(std::string_view request, std::string_view expected, Deadline deadline);
  Status send_line(std::string_view line, Deadline deadline) const;
  Result<std::string> receive_line(Deadline deadline);
  Status greet(Deadline deadline);

  int fd_;
  std::string received_;  // what came after the last line
  std::string space_;     // "kvsname" of the job
  size_t longest_value_ = 0;
};

// The value of `name` in "cmd=x name=value ..."; empty if it has none.
std::string pmi_field(std::string_view line, std::string_view name);
// The line for a message: a value, which may be the job's key, is left out.
std::string without_value(std::string_view line);

}  // namespace hvd::bootstrap
