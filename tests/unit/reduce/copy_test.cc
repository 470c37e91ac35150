// The copies of a table: every small size, some large ones, nothing beyond the ends.
#include <functional>

#include "plain_reference.h"

namespace hvd {
namespace {

using plain::Bytes;
using plain::Fenced;

using Copy = std::function<void(void*, const void*, size_t)>;

std::vector<Copy> all_copies() {
  std::vector<Copy> copies;
  for (const Kernels* table : plain::all_tables()) {
    copies.insert(copies.end(), {table->copy_to_shared, table->copy_from_shared});
    for (const Reuse reuse : {Reuse::kSoon, Reuse::kLate}) {
      copies.emplace_back(
          [=](void* dst, const void* src, size_t bytes) { table->copy(dst, src, bytes, reuse); });
    }
  }
  return copies;
}

void check_copy(const Copy& copy, size_t bytes, size_t misalignment) {
  const Bytes source =
      plain::random_elements(DType::kUint8, bytes, bytes, plain::Values::kOrdinary);
  Fenced from(source, misalignment), to(bytes, 2 * misalignment + 1);

  copy(to.data(), from.data(), bytes);

  ASSERT_EQ(to.content(), source) << bytes;
  ASSERT_EQ(from.content(), source) << bytes;
  ASSERT_TRUE(to.fences_intact() && from.fences_intact()) << bytes;
}

TEST(Copy, EverySmallSizeArrivesWhole) {
  for (const Copy& copy : all_copies()) {
    for (size_t bytes = 0; bytes <= 300; ++bytes) {
      for (const size_t misalignment : {0, 1, 16}) check_copy(copy, bytes, misalignment);
    }
  }
}

TEST(Copy, LargeSizesArriveWhole) {
  for (const Copy& copy : all_copies()) {
    for (size_t bytes = 500; bytes < 1500; bytes += 7) check_copy(copy, bytes, 3);
    for (const size_t bytes : {4095, 4096, 65536 + 5, 300000}) check_copy(copy, bytes, 8);
  }
}

void check_both(const Kernels& table, Reuse reuse, size_t bytes, size_t misalignment) {
  const Bytes source =
      plain::random_elements(DType::kUint8, bytes, bytes, plain::Values::kOrdinary);
  Fenced from(source, misalignment), shared(bytes, 0), own(bytes, 3 * misalignment);

  table.copy_to_both(shared.data(), own.data(), from.data(), bytes, reuse);

  ASSERT_EQ(shared.content(), source) << bytes;
  ASSERT_EQ(own.content(), source) << bytes;
  ASSERT_TRUE(shared.fences_intact() && own.fences_intact() && from.fences_intact()) << bytes;
}

TEST(Copy, BothDestinationsGetEverything) {
  for (const Kernels* table : plain::all_tables()) {
    for (const Reuse reuse : {Reuse::kSoon, Reuse::kLate}) {
      for (size_t bytes = 0; bytes <= 300; ++bytes) {
        for (const size_t misalignment : {0, 1, 16}) check_both(*table, reuse, bytes, misalignment);
      }
      for (const size_t bytes : {1000, 4095, 4096, 65536 + 5, 300000})
        check_both(*table, reuse, bytes, 7);
    }
  }
}

}  // namespace
}  // namespace hvd
