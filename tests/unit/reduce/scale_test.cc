// scale(): the meaning of Scale for each dtype.
#include <cmath>
#include <cstring>
#include <limits>

#include "plain_reference.h"

namespace hvd {
namespace {

using plain::Bytes;
using plain::Fenced;
using plain::Values;

class ScaleOfDtype : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Dtypes, ScaleOfDtype, ::testing::ValuesIn(plain::all_dtypes()),
                         [](const auto& test) { return std::string(dtype_name(test.param)); });

TEST_P(ScaleOfDtype, EqualsTheReferenceInPlaceAndOutOfPlace) {
  const Scale scales[] = {{1, 1}, {1, 2}, {1, 7}, {3, 3}, {0.1, 1}, {1e300, 1}, {-2.5, 3}, {0, 1}};
  for (const size_t count : {0, 1, 3, 8, 31, 64, 1000}) {
    const Bytes source = plain::random_elements(GetParam(), count, count, Values::kSpecial);
    for (const Scale& scale : scales) {
      const Bytes expected = plain::reduce(GetParam(), ReduceOp::kSum, {source}, scale);
      for (const Kernels* table : plain::all_tables()) {
        Fenced in_place(source, 1), input(source, 0), output(source.size(), 3);

        table->scale(GetParam(), in_place.data(), in_place.data(), count, scale);
        table->scale(GetParam(), output.data(), input.data(), count, scale);

        EXPECT_TRUE(plain::same_numbers(GetParam(), expected, in_place.data())) << table->name;
        EXPECT_TRUE(plain::same_numbers(GetParam(), expected, output.data())) << table->name;
        EXPECT_TRUE(in_place.fences_intact() && output.fences_intact());
        EXPECT_EQ(input.content(), source);
      }
    }
  }
}

template <class T>
std::vector<T> scale_all(const Kernels& table, DType dtype, std::vector<T> values, Scale scale) {
  table.scale(dtype, values.data(), values.data(), values.size(), scale);
  return values;
}

TEST(ScaleInteger, DividesInt64ExactlyTowardsZero) {
  const int64_t large = (int64_t{1} << 62) + 1;  // not representable in float64
  for (const Kernels* table : plain::all_tables()) {
    EXPECT_EQ(scale_all<int64_t>(*table, DType::kInt64, {large, -large, 7, -7, 2, 0}, {1.0, 3}),
              (std::vector<int64_t>{large / 3, -large / 3, 2, -2, 0, 0}));
  }
}

TEST(ScaleInteger, DividesInt32ExactlyAtTheEdges) {
  const int32_t top = std::numeric_limits<int32_t>::max();
  const int32_t bottom = std::numeric_limits<int32_t>::min();
  for (const int64_t divisor : {2, 3, 7, 1000003, top}) {
    std::vector<int32_t> values, expected;
    for (int32_t k = -50; k <= 50; ++k) {
      for (const int64_t near : {k * divisor - 1, k * divisor, k * divisor + 1}) {
        if (near >= bottom && near <= top) values.push_back(static_cast<int32_t>(near));
      }
    }
    values.insert(values.end(), {top, top - 1, bottom, bottom + 1});
    for (const int32_t value : values) expected.push_back(static_cast<int32_t>(value / divisor));
    for (const Kernels* table : plain::all_tables()) {
      EXPECT_EQ(scale_all(*table, DType::kInt32, values, {1.0, divisor}), expected);
    }
  }
}

TEST(ScaleInteger, SaturatesAndTurnsNanIntoZero) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Kernels* table : plain::all_tables()) {
    EXPECT_EQ(scale_all<int8_t>(*table, DType::kInt8, {100, -100, 0}, {1e9, 1}),
              (std::vector<int8_t>{127, -128, 0}));
    EXPECT_EQ(scale_all<uint8_t>(*table, DType::kUint8, {200, 1, 0}, {-2.0, 1}),
              (std::vector<uint8_t>{0, 0, 0}));
    EXPECT_EQ(scale_all<int64_t>(*table, DType::kInt64, {5, -5, 0}, {1e300, 1}),
              (std::vector<int64_t>{INT64_MAX, INT64_MIN, 0}));
    EXPECT_EQ(scale_all<int64_t>(*table, DType::kInt64, {5, -5}, {nan, 1}),
              (std::vector<int64_t>{0, 0}));
    EXPECT_EQ(scale_all<int32_t>(*table, DType::kInt32, {5, -5}, {nan, 1}),
              (std::vector<int32_t>{0, 0}));
  }
}

TEST(ScaleFloat, LeavesTheBitsAloneWhenTheQuotientIsOne) {
  const std::vector<float> values = {1.5f, -0.0f, std::numeric_limits<float>::denorm_min(),
                                     std::numeric_limits<float>::infinity()};
  for (const Kernels* table : plain::all_tables()) {
    const auto result = scale_all(*table, DType::kFloat32, values, {4.0, 4});
    EXPECT_EQ(std::memcmp(result.data(), values.data(), values.size() * sizeof(float)), 0);
  }
}

TEST(ScaleBool, IsTrueWhereTheProductIsNotZero) {
  for (const Kernels* table : plain::all_tables()) {
    EXPECT_EQ(scale_all<uint8_t>(*table, DType::kBool, {0, 1, 7, 255}, {0.25, 3}),
              (std::vector<uint8_t>{0, 1, 1, 1}));
    EXPECT_EQ(scale_all<uint8_t>(*table, DType::kBool, {0, 1, 7, 255}, {0.0, 1}),
              (std::vector<uint8_t>{0, 0, 0, 0}));
  }
}

}  // namespace
}  // namespace hvd
