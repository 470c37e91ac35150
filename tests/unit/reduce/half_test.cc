// float16 and bfloat16: all bit patterns, rounding, and the narrow()/widen() kernels.
#include "reduce/half.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "plain_reference.h"

namespace hvd {
namespace {

using plain::Fenced;

struct HalfType {
  DType dtype;
  plain::HalfFormat format;
  float (*to_float)(uint16_t);
  uint16_t (*from_float)(float);
};
const HalfType kHalfTypes[] = {
    {DType::kFloat16, plain::kFloat16Format, float16_to_float, float_to_float16},
    {DType::kBfloat16, plain::kBfloat16Format, bfloat16_to_float, float_to_bfloat16}};

bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof(a)) == 0;
}

std::vector<uint16_t> all_halves() {
  std::vector<uint16_t> halves(65536);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  return halves;
}

// Floats where rounding is decided: each half, the midpoint above it, and the floats around both.
std::vector<float> interesting_floats(const HalfType& type) {
  std::vector<float> floats;
  for (int bits = 0; bits < 0x8000; ++bits) {
    const double here = plain::value_of(type.format, static_cast<uint16_t>(bits));
    const double next = plain::value_of(type.format, static_cast<uint16_t>(bits + 1));
    if (!std::isfinite(here)) break;
    const double top = std::isfinite(next) ? next : 2 * here;
    for (const double value : {here, (here + top) / 2}) {
      const float center = static_cast<float>(value);
      for (const float x :
           {std::nextafter(center, -1e38f), center, std::nextafter(center, 1e38f)}) {
        floats.insert(floats.end(), {x, -x});
      }
    }
  }
  std::mt19937 random(1);
  for (int i = 0; i < 100000; ++i) {
    const auto bits = static_cast<uint32_t>(random());
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    floats.push_back(value);
  }
  const float infinity = std::numeric_limits<float>::infinity();
  floats.insert(floats.end(),
                {infinity, -infinity, std::numeric_limits<float>::max(),
                 std::numeric_limits<float>::denorm_min(), 65504.f, 65519.99f, 65520.f});
  return floats;
}

uint16_t expected_half(const HalfType& type, float value) {
  return plain::nearest(type.format, static_cast<double>(value));
}

TEST(Half, EveryPatternHasTheValueOfItsDefinition) {
  for (const HalfType& type : kHalfTypes) {
    for (const uint16_t half : all_halves()) {
      const auto expected = static_cast<float>(plain::value_of(type.format, half));
      ASSERT_TRUE(same(type.to_float(half), expected)) << dtype_name(type.dtype) << " " << half;
    }
  }
}

TEST(Half, EveryPatternSurvivesTheRoundTrip) {
  for (const HalfType& type : kHalfTypes) {
    for (const uint16_t half : all_halves()) {
      const uint16_t back = type.from_float(type.to_float(half));
      if (plain::is_nan(type.format, half)) {
        const uint16_t quiet = static_cast<uint16_t>(1 << (type.format.mantissa_bits - 1));
        ASSERT_EQ(back, half | quiet) << dtype_name(type.dtype);
      } else {
        ASSERT_EQ(back, half) << dtype_name(type.dtype);
      }
    }
  }
}

TEST(Half, RoundsToNearestEven) {
  for (const HalfType& type : kHalfTypes) {
    for (const float value : interesting_floats(type)) {
      const uint16_t half = type.from_float(value);
      if (std::isnan(value)) {
        ASSERT_TRUE(plain::is_nan(type.format, half));
      } else {
        ASSERT_EQ(half, expected_half(type, value)) << dtype_name(type.dtype) << " " << value;
      }
    }
  }
}

// A NaN whose payload lies only in the bits that are cut off must not become infinity.
TEST(Half, KeepsEveryNan) {
  for (const HalfType& type : kHalfTypes) {
    for (const uint32_t bits : {0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffffffffu, 0x7fc00000u}) {
      float nan;
      std::memcpy(&nan, &bits, sizeof(nan));
      const uint16_t half = type.from_float(nan);
      EXPECT_TRUE(plain::is_nan(type.format, half)) << std::hex << bits;
      EXPECT_EQ(half >> 15, bits >> 31);
    }
  }
}

TEST(Narrow, EqualsTheReferenceOnEveryTable) {
  for (const HalfType& type : kHalfTypes) {
    const auto floats = interesting_floats(type);
    for (const Scale& scale : {Scale{}, Scale{1.0, 3}}) {
      const auto quotient = static_cast<float>(scale.factor / static_cast<double>(scale.divisor));
      for (const Kernels* table : plain::all_tables()) {
        std::vector<uint16_t> halves(floats.size());
        table->narrow(type.dtype, halves.data(), floats.data(), floats.size(), scale);
        for (size_t i = 0; i < floats.size(); ++i) {
          if (std::isnan(floats[i])) {
            ASSERT_TRUE(plain::is_nan(type.format, halves[i]));
          } else {
            ASSERT_EQ(halves[i], expected_half(type, floats[i] * quotient)) << floats[i];
          }
        }
      }
    }
  }
}

TEST(Narrow, GivesTheBitsOfTheScalarConversionForNans) {
  std::vector<float> nans;
  for (uint32_t payload = 1; payload < 0x800000; payload += 4099) {
    for (const uint32_t sign : {0u, 0x80000000u}) {
      const uint32_t bits = sign | 0x7fc00000u | payload;
      nans.emplace_back();
      std::memcpy(&nans.back(), &bits, sizeof(bits));
    }
  }
  for (const HalfType& type : kHalfTypes) {
    for (const Kernels* table : plain::all_tables()) {
      std::vector<uint16_t> halves(nans.size());
      table->narrow(type.dtype, halves.data(), nans.data(), nans.size(), Scale{});
      for (size_t i = 0; i < nans.size(); ++i) ASSERT_EQ(halves[i], type.from_float(nans[i]));
    }
  }
}

TEST(Widen, EqualsTheReferenceOnEveryTable) {
  const auto halves = all_halves();
  for (const HalfType& type : kHalfTypes) {
    for (const Scale& scale : {Scale{}, Scale{2.5, 3}}) {
      const auto quotient = static_cast<float>(scale.factor / static_cast<double>(scale.divisor));
      for (const Kernels* table : plain::all_tables()) {
        std::vector<float> floats(halves.size());
        table->widen(type.dtype, floats.data(), halves.data(), halves.size(), scale);
        for (size_t i = 0; i < halves.size(); ++i) {
          const auto value = static_cast<float>(plain::value_of(type.format, halves[i]));
          ASSERT_TRUE(same(floats[i], value * quotient)) << dtype_name(type.dtype) << " " << i;
        }
      }
    }
  }
}

TEST(NarrowAndWiden, TouchOnlyTheirElementsAtEverySize) {
  for (const HalfType& type : kHalfTypes) {
    for (const Kernels* table : plain::all_tables()) {
      for (size_t count = 0; count < 70; ++count) {
        const auto source =
            plain::random_elements(DType::kFloat32, count, count, plain::Values::kOrdinary);
        Fenced floats(source, 4), halves(count * 2, 1), wide(count * 4, 4);

        table->narrow(type.dtype, halves.data(), static_cast<const float*>(floats.data()), count,
                      {});
        table->widen(type.dtype, static_cast<float*>(wide.data()), halves.data(), count, {});

        EXPECT_TRUE(halves.fences_intact() && wide.fences_intact());
        for (size_t i = 0; i < count; ++i) {
          float value, result;
          std::memcpy(&value, source.data() + 4 * i, 4);
          std::memcpy(&result, static_cast<const char*>(wide.data()) + 4 * i, 4);
          ASSERT_EQ(result, plain::value_of(type.format, expected_half(type, value)));
        }
      }
    }
  }
}

}  // namespace
}  // namespace hvd
