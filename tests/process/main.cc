// The tests of ranks that are processes, but those of MPI. Jobs over several hosts start the
// program again as a rank.
#include <gmock/gmock.h>

#include "tests/support/elastic_worker.h"
#include "tests/support/host_worker.h"

int main(int argc, char** argv) {
  if (const auto code = hvd::testing::run_as_rank(argc, argv)) return *code;
  if (const auto code = hvd::testing::run_as_elastic_worker(argc, argv)) return *code;
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
