// Averages: what users compare with no tolerance at all.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "plain_reference.h"

namespace hvd {
namespace {

using plain::Bytes;

constexpr size_t kMeanCounts[] = {1, 7, 16, 33, 5000};

// Random bits of all exponents, zeros, subnormals and infinities, but no NaN.
template <class Float, class Word>
Bytes numbers(size_t count, Float largest, uint64_t seed) {
  using Limits = std::numeric_limits<Float>;
  std::mt19937_64 random(seed);
  Bytes bytes(count * sizeof(Float));
  for (size_t i = 0; i < count; ++i) {
    const Word bits = static_cast<Word>(random());
    Float value;
    std::memcpy(&value, &bits, sizeof(value));
    if (!(std::fabs(value) <= largest)) value = static_cast<Float>(1) / static_cast<Float>(i + 1);
    const Float special[] = {
        0, -Float{0}, Limits::infinity(), -Limits::infinity(), Limits::denorm_min(), largest};
    if (i % 16 == 5) value = special[i / 16 % std::size(special)];
    std::memcpy(bytes.data() + i * sizeof(value), &value, sizeof(value));
  }
  return bytes;
}

Bytes half_numbers(plain::HalfFormat format, size_t count, double largest) {
  Bytes bytes(count * sizeof(uint16_t));
  for (size_t i = 0; i < count; ++i) {
    auto bits = static_cast<uint16_t>(i * 40503u);  // visits every pattern
    const double value = plain::value_of(format, bits);
    if (plain::is_nan(format, bits) || (std::isfinite(value) && std::fabs(value) > largest))
      bits = static_cast<uint16_t>(i & 0x3fff);
    std::memcpy(bytes.data() + i * sizeof(bits), &bits, sizeof(bits));
  }
  return bytes;
}

// Numbers whose sum, where it is computed, has the range of the type it is computed in.
Bytes numbers_of(DType dtype, size_t count, unsigned ranks) {
  const unsigned added = ranks == 2 ? 2 : 1;  // more are compared first
  const float most = std::numeric_limits<float>::max() / static_cast<float>(ranks);
  switch (dtype) {
    case DType::kFloat32:
      return numbers<float, uint32_t>(count, std::numeric_limits<float>::max() / added, ranks);
    case DType::kFloat64:
      return numbers<double, uint64_t>(count, std::numeric_limits<double>::max() / added, ranks);
    case DType::kFloat16:
      return half_numbers(plain::kFloat16Format, count, most);
    default:
      return half_numbers(plain::kBfloat16Format, count, most);
  }
}

// Into one output or into all sources: the same bits.
Bytes average(const Kernels& table, DType dtype, const std::vector<Bytes>& sources, Scale post) {
  const auto ranks = static_cast<unsigned>(sources.size());
  std::vector<Bytes> buffers;
  for (const unsigned outputs : {1u, ranks}) {
    buffers = sources;
    std::vector<void*> pointers;
    for (Bytes& buffer : buffers) pointers.push_back(buffer.data());
    table.reduce({.dtype = dtype,
                  .op = ReduceOp::kSum,
                  .count = sources[0].size() / dtype_bytes(dtype),
                  .sources = pointers.data(),
                  .source_count = ranks,
                  .outputs = pointers.data(),
                  .output_count = outputs,
                  .post = post});
    for (unsigned o = 1; o < outputs; ++o) EXPECT_EQ(buffers[o], buffers[0]);
  }
  return buffers[0];
}

class AverageOfDtype : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Dtypes, AverageOfDtype,
                         ::testing::Values(DType::kFloat16, DType::kBfloat16, DType::kFloat32,
                                           DType::kFloat64),
                         [](const auto& test) { return std::string(dtype_name(test.param)); });

TEST_P(AverageOfDtype, OfEqualNumbersIsThatNumberBitForBit) {
  for (const unsigned ranks : {2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 31u, 49u, 256u, 1000u}) {
    for (const size_t count : kMeanCounts) {
      if (ranks * count > 300000) continue;
      const std::vector<Bytes> sources(ranks, numbers_of(GetParam(), count, ranks));
      for (const Kernels* table : plain::all_tables()) {
        const Bytes result = average(*table, GetParam(), sources, {1.0, ranks});

        ASSERT_TRUE(plain::same_numbers(GetParam(), sources[0], result.data()))
            << table->name << " ranks " << ranks << " count " << count;
      }
    }
  }
}

// What a user would write: the average, then times the factor.
TEST_P(AverageOfDtype, OfEqualNumbersTimesAFactorIsThatNumberTimesTheFactor) {
  if (GetParam() == DType::kFloat16 || GetParam() == DType::kBfloat16) return;  // rounded once
  for (const unsigned ranks : {3u, 4u, 5u, 6u, 7u, 8u}) {
    const std::vector<Bytes> sources(ranks, numbers_of(GetParam(), 5000, ranks));
    for (const Kernels* table : plain::all_tables()) {
      for (const double factor : {1.5, 0.1, 7.0}) {
        Bytes expected(sources[0].size());
        table->scale(GetParam(), expected.data(), sources[0].data(), 5000, {factor, 1});
        if (factor == ranks) continue;  // that is the sum

        const Bytes result = average(*table, GetParam(), sources, {factor, ranks});

        ASSERT_TRUE(plain::same_numbers(GetParam(), expected, result.data())) << ranks;
      }
    }
  }
}

// One rank that differs in one bit, in every position of a vector.
TEST_P(AverageOfDtype, OfNumbersThatDifferInOneSourceIsTheirSumDivided) {
  for (const unsigned ranks : {3u, 5u, 8u}) {
    for (unsigned odd = 0; odd < ranks; ++odd) {
      std::vector<Bytes> sources(
          ranks, plain::random_elements(GetParam(), 1000, 1, plain::Values::kOrdinary));
      for (size_t i = 0; i < 1000; ++i) sources[odd][i * dtype_bytes(GetParam())] ^= std::byte{1};
      const Bytes expected = plain::reduce(GetParam(), ReduceOp::kSum, sources, {1.0, ranks});
      for (const Kernels* table : plain::all_tables()) {
        const Bytes result = average(*table, GetParam(), sources, {1.0, ranks});

        ASSERT_TRUE(plain::same_numbers(GetParam(), expected, result.data())) << table->name;
      }
    }
  }
}

// A quotient that is no average: one source that is a sum already, as a library gives it.
TEST(Average, OfASumThatWasMadeElsewhereIsAQuotient) {
  for (const Kernels* table : plain::all_tables()) {
    std::vector<float> sums(100, 10.0f);

    table->scale(DType::kFloat32, sums.data(), sums.data(), sums.size(), {1.0, 3});

    EXPECT_EQ(sums, std::vector<float>(100, 10.0f / 3.0f)) << table->name;
  }
}

TEST(Average, TimesTheNumberOfSourcesIsTheirSum) {
  for (const Kernels* table : plain::all_tables()) {
    const std::vector<Bytes> sources(3, numbers_of(DType::kFloat32, 1000, 6));
    const Bytes expected = plain::reduce(DType::kFloat32, ReduceOp::kSum, sources, {});

    const Bytes result = average(*table, DType::kFloat32, sources, {3.0, 3});

    EXPECT_TRUE(plain::same_numbers(DType::kFloat32, expected, result.data())) << table->name;
  }
}

}  // namespace
}  // namespace hvd
