// dots() and combine(): values, the fixed order, and equality of all tables.
#include <cmath>
#include <cstring>

#include "plain_reference.h"

namespace hvd {
namespace {

using plain::Bytes;
using plain::Fenced;
using plain::Values;

constexpr size_t kAdasumCounts[] = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 64, 100, 1000, 4097};

double number(DType dtype, const Bytes& bytes, size_t i) {
  if (dtype == DType::kFloat64) {
    double value;
    std::memcpy(&value, bytes.data() + 8 * i, 8);
    return value;
  }
  float value;
  std::memcpy(&value, bytes.data() + 4 * i, 4);
  return value;
}

class AdasumKernels : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Dtypes, AdasumKernels, ::testing::Values(DType::kFloat32, DType::kFloat64),
                         [](const auto& test) { return std::string(dtype_name(test.param)); });

// The order is part of the promise: eight partial sums, element i in number i mod 8, added in
// pairs.
double dot_in_order(DType dtype, const Bytes& a, const Bytes& b, size_t count) {
  double sums[8] = {};
  for (size_t i = 0; i < count; ++i) sums[i % 8] += number(dtype, a, i) * number(dtype, b, i);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

TEST_P(AdasumKernels, DotsHaveTheBitsOfTheFixedOrder) {
  for (const size_t count : kAdasumCounts) {
    const Bytes a = plain::random_elements(GetParam(), count, 1, Values::kOrdinary);
    const Bytes b = plain::random_elements(GetParam(), count, 2, Values::kOrdinary);
    const double expected[3] = {dot_in_order(GetParam(), a, b, count),
                                dot_in_order(GetParam(), a, a, count),
                                dot_in_order(GetParam(), b, b, count)};
    for (const Kernels* table : plain::all_tables()) {
      for (const size_t misalignment : {0, 1}) {
        const Fenced x(a, misalignment), y(b, 3 * misalignment);
        double out[3];

        table->dots(GetParam(), x.data(), y.data(), count, out);

        for (int i = 0; i < 3; ++i) EXPECT_EQ(out[i], expected[i]) << table->name << " " << count;
      }
    }
  }
}

TEST_P(AdasumKernels, CombineComputesInTheArithmeticOfTheDtype) {
  constexpr double kCa = 0.7, kCb = -1.3;
  for (const size_t count : kAdasumCounts) {
    const Bytes a = plain::random_elements(GetParam(), count, 3, Values::kSpecial);
    const Bytes b = plain::random_elements(GetParam(), count, 4, Values::kOrdinary);
    Bytes expected(a.size());
    for (size_t i = 0; i < count; ++i) {
      if (GetParam() == DType::kFloat64) {
        const double value = kCa * number(GetParam(), a, i) + kCb * number(GetParam(), b, i);
        std::memcpy(expected.data() + 8 * i, &value, 8);
      } else {
        const float value = static_cast<float>(kCa) * static_cast<float>(number(GetParam(), a, i)) +
                            static_cast<float>(kCb) * static_cast<float>(number(GetParam(), b, i));
        std::memcpy(expected.data() + 4 * i, &value, 4);
      }
    }
    for (const Kernels* table : plain::all_tables()) {
      Fenced x(a, 1);
      const Fenced y(b, 2);

      table->combine(GetParam(), x.data(), y.data(), count, kCa, kCb);

      EXPECT_TRUE(plain::same_numbers(GetParam(), expected, x.data())) << table->name;
      EXPECT_TRUE(x.fences_intact());
      EXPECT_EQ(y.content(), b);
    }
  }
}

}  // namespace
}  // namespace hvd
