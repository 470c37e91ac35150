// copy_to_shared() and copy_from_shared(): every small size, some large ones, nothing beyond the
// ends.
#include "plain_reference.h"

namespace hvd {
namespace {

using plain::Bytes;
using plain::Fenced;

using Copy = void (*)(void*, const void*, size_t);

std::vector<Copy> all_copies() {
  std::vector<Copy> copies;
  for (const Kernels* table : plain::all_tables()) {
    copies.insert(copies.end(), {table->copy_to_shared, table->copy_from_shared});
  }
  return copies;
}

void check_copy(Copy copy, size_t bytes, size_t misalignment) {
  const Bytes source =
      plain::random_elements(DType::kUint8, bytes, bytes, plain::Values::kOrdinary);
  Fenced from(source, misalignment), to(bytes, 2 * misalignment + 1);

  copy(to.data(), from.data(), bytes);

  ASSERT_EQ(to.content(), source) << bytes;
  ASSERT_EQ(from.content(), source) << bytes;
  ASSERT_TRUE(to.fences_intact() && from.fences_intact()) << bytes;
}

TEST(Copy, EverySmallSizeArrivesWhole) {
  for (const Copy copy : all_copies()) {
    for (size_t bytes = 0; bytes <= 300; ++bytes) {
      for (const size_t misalignment : {0, 1, 16}) check_copy(copy, bytes, misalignment);
    }
  }
}

TEST(Copy, LargeSizesArriveWhole) {
  for (const Copy copy : all_copies()) {
    for (size_t bytes = 500; bytes < 1500; bytes += 7) check_copy(copy, bytes, 3);
    for (const size_t bytes : {4095, 4096, 65536 + 5, 300000}) check_copy(copy, bytes, 8);
  }
}

}  // namespace
}  // namespace hvd
