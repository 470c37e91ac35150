#include "mpi/abi/open_mpi.h"

#include "mpi/library.inc.h"

namespace hvd::mpi {

Result<std::unique_ptr<Api>> load_open_mpi(const Symbols& symbols, std::string name) {
  return Library<OpenMpiAbi>::load(symbols, std::move(name));
}

}  // namespace hvd::mpi
