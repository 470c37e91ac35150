#include "wire/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/wire/random_request.h"
#include "wire/limits.h"

namespace hvd::wire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Bytes = std::vector<std::byte>;

// Where the fields of a message lie; the layout is part of the protocol.
constexpr size_t kVersionAt = 0, kKindAt = 1, kReduceOpAt = 2, kWireDtypeAt = 3, kPrescaleAt = 15;
constexpr size_t kRankCountAt = 31, kTensorCountAt = 35, kFirstTensorAt = 39;

Request one_tensor() {
  Request request;
  request.tensors.push_back({.name = "fc1.grad", .shape = {2, 3}});
  return request;
}

void put_u32(Bytes& bytes, size_t at, uint32_t value) {
  for (size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
}

std::string failure_of(const Bytes& bytes) {
  const Result<Request> decoded = decode(bytes);
  EXPECT_FALSE(decoded.is_ok());
  EXPECT_EQ(decoded.status().code(), StatusCode::kCorrupted);
  return decoded.status().message();
}

TEST(Codec, RoundTripsRandomRequests) {
  test::RandomRequests random(1);

  for (int i = 0; i < 5000; ++i) {
    const Request request = random.next();
    const Bytes bytes = encode(request);
    const Result<Request> decoded = decode(bytes);
    ASSERT_TRUE(decoded.is_ok()) << decoded.status().message();
    ASSERT_EQ(decoded.value(), request);
    ASSERT_EQ(bytes.size(), encoded_bytes(request));
    ASSERT_EQ(encode(decoded.value()), bytes);
  }
}

TEST(Codec, KeepsEveryBitOfTheFactors) {
  const double values[] = {0.0,
                           -0.0,
                           1e-310,
                           std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN(),
                           0.1};

  for (double value : values) {
    Request request = one_tensor();
    request.prescale = value;
    request.postscale = -value;
    const Bytes bytes = encode(request);
    const Result<Request> decoded = decode(bytes);
    ASSERT_TRUE(decoded.is_ok());
    EXPECT_EQ(encode(decoded.value()), bytes);
  }
}

TEST(Codec, WritesTheDocumentedLayout) {
  Request request = one_tensor();
  request.kind = Kind::kBroadcast;
  request.root_rank = 0x01020304;

  const Bytes bytes = encode(request);

  ASSERT_EQ(bytes.size(), kFirstTensorAt + 4 + 8 + 1 + 4 + 16 + 4);
  EXPECT_EQ(bytes[kVersionAt], std::byte{1});
  EXPECT_EQ(bytes[kKindAt], std::byte{2});
  EXPECT_EQ(bytes[kWireDtypeAt], std::byte{0xff});
  EXPECT_EQ(bytes[7], std::byte{4});  // root rank, lowest byte first
  EXPECT_EQ(bytes[kPrescaleAt + 7], std::byte{0x3f});
  EXPECT_EQ(bytes[kTensorCountAt], std::byte{1});
  EXPECT_EQ(bytes[kFirstTensorAt + 4], std::byte{'f'});
}

TEST(Codec, RefusesEveryTruncation) {
  test::RandomRequests random(2);

  for (int i = 0; i < 50; ++i) {
    const Bytes bytes = encode(random.next());
    for (size_t length = 0; length < bytes.size(); ++length) {
      // A copy of exactly that length, so that a sanitizer sees any read beyond it.
      const Bytes cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length));
      const Result<Request> decoded = decode(cut);
      ASSERT_FALSE(decoded.is_ok()) << "at " << length << " of " << bytes.size();
      ASSERT_EQ(decoded.status().code(), StatusCode::kCorrupted);
    }
  }
}

TEST(Codec, RefusesTrailingBytes) {
  Bytes bytes = encode(one_tensor());
  const size_t end = bytes.size();
  bytes.resize(end + 3);

  EXPECT_EQ(failure_of(bytes), "request message: end at byte " + std::to_string(end) +
                                   ": expected no more bytes, got 3");
}

TEST(Codec, FlippedBitsGiveAnotherValueOrAFailure) {
  test::RandomRequests random(3);

  for (int i = 0; i < 20; ++i) {
    const Request request = random.next();
    Bytes bytes = encode(request);
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      bytes[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
      const Result<Request> decoded = decode(bytes);
      if (decoded.is_ok()) {
        ASSERT_EQ(encode(decoded.value()), bytes) << "bit " << bit;
      }
      bytes[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    }
  }
}

TEST(Codec, RefusesUnknownCodes) {
  const struct {
    size_t at;
    uint8_t code;
    const char* message;
  } cases[] = {
      {kVersionAt, 2, "request message: version at byte 0: expected 1, got 2"},
      {kKindAt, 10, "request message: kind at byte 1: expected a code below 10, got 10"},
      {kReduceOpAt, 6, "request message: reduce op at byte 2: expected a code below 6, got 6"},
      {kWireDtypeAt, 0xfe,
       "request message: wire dtype at byte 3: expected -1 or a code below 11, got -2"},
      {kFirstTensorAt + 12, 11,
       "request message: tensor 0 dtype at byte 51: expected a code below 11, got 11"},
  };

  for (const auto& c : cases) {
    Bytes bytes = encode(one_tensor());
    bytes[c.at] = static_cast<std::byte>(c.code);
    EXPECT_EQ(failure_of(bytes), c.message);
  }
}

TEST(Codec, RefusesCountsBeyondTheLimitsOrTheMessage) {
  const size_t dimensions_at = kFirstTensorAt + 13;
  const size_t splits_at = dimensions_at + 4 + 16;
  const struct {
    size_t at;
    uint32_t count;
    const char* field;
    const char* expected;
  } cases[] = {
      {kRankCountAt, kMaxRanks + 1, "ranks at byte 31", "at most 65536, got 65537"},
      {kRankCountAt, 60000, "ranks at byte 31", "items in the remaining 41 bytes, got 60000"},
      {kTensorCountAt, kMaxTensorsPerRequest + 1, "tensors at byte 35", "got 1048577"},
      {kTensorCountAt, 1000000, "tensors at byte 35", "at most 2 items"},
      {kFirstTensorAt, kMaxNameBytes + 1, "tensor 0 name at byte 39", "at most 4096, got 4097"},
      {kFirstTensorAt, 4000, "tensor 0 name at byte 39", "got 4000"},
      {dimensions_at, kMaxDimensions + 1, "tensor 0 dimensions at byte 52", "at most 64, got 65"},
      {dimensions_at, 60, "tensor 0 dimensions at byte 52", "got 60"},
      {splits_at, kMaxRanks + 1, "tensor 0 splits at byte 72", "at most 65536, got 65537"},
      {splits_at, 0xffffffff, "tensor 0 splits at byte 72", "got 4294967295"},
  };

  for (const auto& c : cases) {
    Bytes bytes = encode(one_tensor());
    put_u32(bytes, c.at, c.count);
    EXPECT_THAT(failure_of(bytes), AllOf(HasSubstr(c.field), HasSubstr(c.expected)));
  }
}

TEST(Codec, AcceptsWhatIsExactlyAtTheLimits) {
  Request request = one_tensor();
  request.tensors[0].name.assign(kMaxNameBytes, 'x');
  request.tensors[0].shape.assign(kMaxDimensions, 1);
  request.tensors[0].splits.assign(kMaxRanks, 7);
  request.ranks.assign(kMaxRanks, 3);

  const Result<Request> decoded = decode(encode(request));

  ASSERT_TRUE(decoded.is_ok()) << decoded.status().message();
  EXPECT_EQ(decoded.value(), request);
}

TEST(Codec, NamesTheTensorThatIsBroken) {
  Request request = one_tensor();
  request.tensors.push_back({.name = "b", .dtype = DType::kInt8, .shape = {}});
  Bytes bytes = encode(request);
  bytes[bytes.size() - 9] = std::byte{200};

  EXPECT_THAT(failure_of(bytes), HasSubstr("tensor 1 dtype"));
}

TEST(Codec, RefusesRandomBytesWithoutHarm) {
  std::mt19937 random(4);

  for (int i = 0; i < 20000; ++i) {
    Bytes bytes(random() % 200);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random() % 4 == 0 ? random() : 0);
    if (!bytes.empty()) bytes[0] = std::byte{1};
    const Result<Request> decoded = decode(bytes);
    if (decoded.is_ok()) {
      ASSERT_EQ(encode(decoded.value()), bytes);
    }
  }
}

}  // namespace
}  // namespace hvd::wire
