#include "mpi/abi/standard.h"

#include "mpi/library.inc.h"

namespace hvd::mpi {

Result<std::unique_ptr<Api>> load_standard(const Symbols& symbols, std::string name) {
  return Library<StandardAbi>::load(symbols, std::move(name));
}

}  // namespace hvd::mpi
