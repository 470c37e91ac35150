#include "mpi/abi/mpich.h"

#include "mpi/library.inc.h"

namespace hvd::mpi {

Result<std::unique_ptr<Api>> load_mpich(const Symbols& symbols, std::string name) {
  return Library<MpichAbi>::load(symbols, std::move(name));
}

}  // namespace hvd::mpi
