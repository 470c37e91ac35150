#include "bootstrap/process_manager.h"

#include <link.h>

#include "bootstrap/pmi_client.h"
#include "bootstrap/pmix_client.h"

namespace hvd::bootstrap {
namespace {

// libmpi.so.40, libmpich.so.12, libmpi_abi.so.1, libmpifort...
int is_mpi_library(dl_phdr_info* info, size_t, void* found) {
  const std::string_view path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (!name.starts_with("libmpi")) return 0;
  *static_cast<bool*>(found) = true;
  return 1;
}

}  // namespace

bool has_process_manager(const Environment& environment) {
  bool has_mpi = false;
  dl_iterate_phdr(is_mpi_library, &has_mpi);
  return !has_mpi && (has_pmi(environment) || has_pmix(environment));
}

Result<std::unique_ptr<ProcessManager>> open_process_manager(const Environment& environment,
                                                             Deadline deadline) {
  if (!has_pmi(environment)) return open_pmix();
  HVD_TRY_ASSIGN(PmiClient client, PmiClient::open(environment, deadline));
  return std::unique_ptr<ProcessManager>(std::make_unique<PmiClient>(std::move(client)));
}

}  // namespace hvd::bootstrap
