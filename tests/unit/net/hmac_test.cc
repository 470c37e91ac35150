#include "net/keys/hmac.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace hvd::net {
namespace {

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string hex(const Digest& digest) {
  std::string out;
  for (const uint8_t byte : digest) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

// FIPS 180-4 examples.
TEST(Sha256, GivesThePublishedDigests) {
  const struct {
    std::string text, digest;
  } kVectors[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {std::string(1'000'000, 'a'),
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
  };
  for (const auto& vector : kVectors) {
    EXPECT_EQ(hex(sha256(bytes_of(vector.text))), vector.digest);
  }
}

TEST(Sha256, DoesNotCareHowItsInputIsCut) {
  const std::string text(200, 'x');
  const Digest whole = sha256(bytes_of(text));
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    Sha256 hash;
    hash.update(bytes_of(std::string_view(text).substr(0, cut)));
    hash.update(bytes_of(std::string_view(text).substr(cut)));

    EXPECT_EQ(hash.finish(), whole) << cut;
  }
}

// RFC 4231, test cases 1, 2, 3, 4, 6, 7.
TEST(Hmac, GivesTheDigestsOfRfc4231) {
  std::string counting;
  for (char c = 1; c <= 25; ++c) counting += c;
  const struct {
    std::string key, text, digest;
  } kVectors[] = {
      {std::string(20, '\x0b'), "Hi There",
       "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
      {"Jefe", "what do ya want for nothing?",
       "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
      {std::string(20, '\xaa'), std::string(50, '\xdd'),
       "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
      {counting, std::string(50, '\xcd'),
       "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
      {std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First",
       "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
      {std::string(131, '\xaa'),
       "This is a test using a larger than block-size key and a larger than block-size data. The "
       "key needs to be hashed before being used by the HMAC algorithm.",
       "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
  };
  for (const auto& vector : kVectors) {
    EXPECT_EQ(hex(hmac_sha256(bytes_of(vector.key), {bytes_of(vector.text)})), vector.digest);
  }
}

TEST(Hmac, TakesPartsAsOneText) {
  EXPECT_EQ(hmac_sha256(bytes_of("k"), {bytes_of("ab"), bytes_of("c")}),
            hmac_sha256(bytes_of("k"), {bytes_of("abc")}));
}

TEST(Hmac, ComparesAllBytes) {
  const Digest a = sha256(bytes_of("a"));
  Digest b = a;

  EXPECT_TRUE(equal_in_constant_time(a, b));
  b.back() ^= 1;
  EXPECT_FALSE(equal_in_constant_time(a, b));
  EXPECT_FALSE(equal_in_constant_time(a, std::span(a).first(31)));
}

}  // namespace
}  // namespace hvd::net
