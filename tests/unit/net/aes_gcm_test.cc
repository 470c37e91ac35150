#include "net/cipher/aes_gcm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string_view>
#include <vector>

namespace hvd::net::aes_gcm_test {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes from_hex(std::string_view digits) {
  Bytes out;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    out.push_back(static_cast<uint8_t>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16)));
  return out;
}

template <typename Array>
Array array_of(std::string_view digits) {
  const Bytes bytes = from_hex(digits);
  Array out{};
  EXPECT_EQ(bytes.size(), out.size());
  std::copy_n(bytes.begin(), std::min(bytes.size(), out.size()), out.begin());
  return out;
}

Bytes random_bytes(std::mt19937& random, size_t count) {
  Bytes out(count);
  for (uint8_t& byte : out) byte = static_cast<uint8_t>(random());
  return out;
}

struct Maker {
  const char* name;
  std::unique_ptr<AesGcm> (*make)(const GcmKey&);
};

std::unique_ptr<AesGcm> make_narrow(const GcmKey& key) {
  return make_vector_aes_gcm(key, GcmVectors::k256Bits);
}
std::unique_ptr<AesGcm> make_wide(const GcmKey& key) {
  return make_vector_aes_gcm(key, GcmVectors::k512Bits);
}

class AesGcmTest : public testing::TestWithParam<Maker> {
 protected:
  void SetUp() override {
    if (GetParam().make({}) == nullptr) GTEST_SKIP() << "not on this machine";
  }
};

struct Vector {
  const char *key, *nonce, *header, *bytes, *sealed;
};

// Test cases 2 to 4 of "The Galois/Counter Mode of Operation" (McGrew and Viega), the tag behind
// the text.
constexpr Vector kVectors[] = {
    {"00000000000000000000000000000000", "000000000000000000000000", "",
     "00000000000000000000000000000000",
     "0388dace60b6a392f328c2b971b2fe78ab6e47d42cec13bdf53a67b21257bddf"},
    {"feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888", "",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
     "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255",
     "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
     "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091473f5985"
     "4d5c2af327cd64a62cf35abd2ba6fab4"},
    {"feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
     "feedfacedeadbeeffeedfacedeadbeefabaddad2",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
     "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
     "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
     "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091"
     "5bc94fbc3221a5db94fae95ae7121a47"},
};

TEST_P(AesGcmTest, GivesThePublishedVectors) {
  for (const Vector& vector : kVectors) {
    const auto cipher = GetParam().make(array_of<GcmKey>(vector.key));
    const auto nonce = array_of<GcmNonce>(vector.nonce);
    const Bytes header = from_hex(vector.header), bytes = from_hex(vector.bytes);
    const Bytes expected = from_hex(vector.sealed);
    const std::span<const uint8_t> most(bytes.data(), bytes.size() - 1);
    Bytes sealed(bytes.size() + kGcmTagBytes), opened(most.size());
    uint8_t last = 0;

    EXPECT_TRUE(cipher->seal(nonce, header, most, bytes.back(), sealed.data()));
    EXPECT_EQ(sealed, expected);
    EXPECT_TRUE(cipher->open(nonce, header, expected, opened.data(), last));
    EXPECT_TRUE(std::equal(opened.begin(), opened.end(), bytes.begin()));
    EXPECT_EQ(last, bytes.back());
  }
}

// All ways to be no multiple of a block or of sixteen of them; elsewhere and in place.
TEST_P(AesGcmTest, OpensWhatItSealedOfEveryLength) {
  std::mt19937 random(1);
  const auto cipher = GetParam().make(array_of<GcmKey>("feffe9928665731c6d6a8f9467308308"));
  for (size_t count = 0; count < 800; count += count < 600 ? 1 : 37) {
    GcmNonce nonce{};
    nonce[11] = static_cast<uint8_t>(count);
    const Bytes header = random_bytes(random, count % 40), bytes = random_bytes(random, count);
    const auto kind = static_cast<uint8_t>(random());
    Bytes sealed(count + AesGcm::kMoreBytes), opened(count), in_place = bytes;
    in_place.resize(sealed.size());
    uint8_t last = 0;

    ASSERT_TRUE(cipher->seal(nonce, header, bytes, kind, sealed.data()));
    ASSERT_TRUE(cipher->seal(nonce, header, {in_place.data(), count}, kind, in_place.data()));
    EXPECT_EQ(sealed, in_place) << count;
    ASSERT_TRUE(cipher->open(nonce, header, sealed, opened.data(), last)) << count;
    EXPECT_EQ(opened, bytes);
    EXPECT_EQ(last, kind);
    ASSERT_TRUE(cipher->open(nonce, header, in_place, in_place.data(), last)) << count;
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), in_place.begin())) << count;
  }
}

TEST_P(AesGcmTest, RefusesWhatWasChangedAndGivesOutNothing) {
  std::mt19937 random(2);
  const auto cipher = GetParam().make({});
  for (const size_t count : {size_t{0}, size_t{1}, size_t{15}, size_t{300}, size_t{1000}}) {
    const Bytes header{1, 2, 3, 4, 5}, bytes = random_bytes(random, count);
    Bytes sealed(count + AesGcm::kMoreBytes), opened(count, 0xee);
    ASSERT_TRUE(cipher->seal({}, header, bytes, 23, sealed.data()));
    uint8_t last = 0;
    for (size_t at = 0; at < sealed.size(); at += 1 + count / 100) {
      Bytes changed = sealed;
      changed[at] = static_cast<uint8_t>(changed[at] ^ 1 << random() % 8);
      EXPECT_FALSE(cipher->open({}, header, changed, opened.data(), last)) << count << " " << at;
      EXPECT_EQ(opened, Bytes(count, 0));
    }
    EXPECT_FALSE(cipher->open({}, Bytes{1, 2, 3, 4, 6}, sealed, opened.data(), last));
    GcmNonce other{};
    other[0] = 1;
    EXPECT_FALSE(cipher->open(other, header, sealed, opened.data(), last));
    EXPECT_TRUE(cipher->open({}, header, sealed, opened.data(), last));
  }
}

INSTANTIATE_TEST_SUITE_P(Makers, AesGcmTest,
                         testing::Values(Maker{"Narrow", make_narrow}, Maker{"Wide", make_wide},
                                         Maker{"Openssl", make_openssl_aes_gcm}),
                         [](const auto& maker) { return maker.param.name; });

class AesGcmOfVectors : public testing::TestWithParam<GcmVectors> {
 protected:
  // Whether both are on this machine.
  bool make(const GcmKey& key) {
    own_ = make_vector_aes_gcm(key, GetParam());
    openssl_ = make_openssl_aes_gcm(key);
    return own_ != nullptr && openssl_ != nullptr;
  }
  void expect_same(const GcmNonce& nonce, const Bytes& header, const Bytes& bytes) {
    Bytes sealed(bytes.size() + AesGcm::kMoreBytes), expected(sealed.size());
    ASSERT_TRUE(own_->seal(nonce, header, bytes, 23, sealed.data()));
    ASSERT_TRUE(openssl_->seal(nonce, header, bytes, 23, expected.data()));
    ASSERT_TRUE(sealed == expected) << bytes.size();
  }

  std::unique_ptr<AesGcm> own_, openssl_;
};

TEST_P(AesGcmOfVectors, GivesWhatOpensslGives) {
  std::mt19937 random(3);
  for (int round = 0; round < 400; ++round) {
    GcmKey key{};
    GcmNonce nonce{};
    for (uint8_t& byte : key) byte = static_cast<uint8_t>(random());
    for (uint8_t& byte : nonce) byte = static_cast<uint8_t>(random());
    if (!make(key)) GTEST_SKIP() << "not on this machine";

    expect_same(nonce, random_bytes(random, 5), random_bytes(random, random() % 17000));
  }
}

// The counter of blocks is 32 bits in another byte order: its second and third byte move, too.
TEST_P(AesGcmOfVectors, CountsBlocksAcrossBytes) {
  if (!make({})) GTEST_SKIP() << "not on this machine";

  expect_same({}, {}, Bytes(2 << 20, 0));
}

INSTANTIATE_TEST_SUITE_P(Widths, AesGcmOfVectors,
                         testing::Values(GcmVectors::k256Bits, GcmVectors::k512Bits),
                         [](const auto& width) {
                           return width.param == GcmVectors::k256Bits ? "Narrow" : "Wide";
                         });

}  // namespace
}  // namespace hvd::net::aes_gcm_test
