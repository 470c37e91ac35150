#include "net/keys/aead.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "net/cipher/poly1305.h"
#include "tests/unit/net/sockets.h"

namespace hvd::net {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes unhex(std::string_view text) {
  Bytes out;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    out.push_back(static_cast<uint8_t>(std::stoul(std::string(text.substr(i, 2)), nullptr, 16)));
  }
  return out;
}
template <size_t kCount>
std::array<uint8_t, kCount> fixed(const Bytes& bytes) {
  std::array<uint8_t, kCount> out{};
  EXPECT_EQ(bytes.size(), kCount);
  std::copy_n(bytes.begin(), std::min(bytes.size(), kCount), out.begin());
  return out;
}
Bytes text_bytes(std::string_view text) { return {text.begin(), text.end()}; }

const Key& sample_key() {
  static const Key key(
      fixed<kKeyBytes>(unhex("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f")));
  return key;
}

// RFC 8439, 2.8.2.
TEST(Aead, GivesThePublishedBytesAndTag) {
  const auto nonce = fixed<kAeadNonceBytes>(unhex("070000004041424344454647"));
  const Bytes header = unhex("50515253c0c1c2c3c4c5c6c7");
  const Bytes text = text_bytes(
      "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
      "sunscreen would be it.");
  Bytes bytes = text;

  const Tag tag = seal(sample_key(), nonce, header, bytes);

  EXPECT_EQ(bytes, unhex("d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6"
                         "3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36"
                         "92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc"
                         "3ff4def08e4b7a9de576d26586cec64b6116"));
  EXPECT_EQ(tag, fixed<kTagBytes>(unhex("1ae10b594f09e26a7e902ecbd0600691")));
  ASSERT_TRUE(unseal(sample_key(), nonce, header, bytes, tag));
  EXPECT_EQ(bytes, text);
}

// RFC 8439, appendix A.3: the cases where carries matter.
TEST(Poly1305, GivesThePublishedTags) {
  const std::string zeros(32, '0'), ones(32, 'f');
  const struct {
    std::string key, text, tag;
  } kVectors[] = {
      {"02000000000000000000000000000000" + zeros, ones, "03000000000000000000000000000000"},
      {"02000000000000000000000000000000" + ones, "02000000000000000000000000000000",
       "03000000000000000000000000000000"},
      {"01000000000000000000000000000000" + zeros,
       ones + "f0ffffffffffffffffffffffffffffff" + "11000000000000000000000000000000",
       "05000000000000000000000000000000"},
      {"01000000000000000000000000000000" + zeros,
       ones + "fbfefefefefefefefefefefefefefefe" + "01010101010101010101010101010101",
       "00000000000000000000000000000000"},
      {"02000000000000000000000000000000" + zeros, "fdffffffffffffffffffffffffffffff",
       "faffffffffffffffffffffffffffffff"},
  };
  for (const auto& vector : kVectors) {
    Poly1305 poly(fixed<Poly1305::kKeyBytes>(unhex(vector.key)));
    poly.update_padded(unhex(vector.text));
    EXPECT_EQ(poly.finish(), fixed<16>(unhex(vector.tag))) << vector.text;
  }
}

TEST(Aead, RefusesEveryChangedBitOfBytesTagHeaderNonceAndKey) {
  const AeadNonce nonce{1, 2, 3};
  const Bytes header = {4, 0, 0, 0}, text = text_bytes("an object that will be unpickled");
  Bytes sealed = text;
  const Tag tag = seal(sample_key(), nonce, header, sealed);
  const auto refused = [&](const Key& key, const AeadNonce& n, const Bytes& h, Bytes b,
                           const Tag& t) {
    const Bytes before = b;
    return !unseal(key, n, h, b, t) && b == before;
  };

  for (size_t bit = 0; bit < 8 * sealed.size(); ++bit) {
    Bytes changed = sealed;
    changed[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    EXPECT_TRUE(refused(sample_key(), nonce, header, changed, tag)) << bit;
  }
  for (size_t bit = 0; bit < 8 * tag.size(); ++bit) {
    Tag changed = tag;
    changed[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    EXPECT_TRUE(refused(sample_key(), nonce, header, sealed, changed)) << bit;
  }
  EXPECT_TRUE(refused(sample_key(), nonce, {4, 0, 0, 1}, sealed, tag));
  EXPECT_TRUE(refused(sample_key(), nonce, {4, 0, 0}, sealed, tag));
  EXPECT_TRUE(refused(sample_key(), {1, 2, 4}, header, sealed, tag));
  EXPECT_TRUE(refused(test::key_of(1), nonce, header, sealed, tag));
  EXPECT_TRUE(refused(sample_key(), nonce, header, Bytes(sealed.begin(), sealed.end() - 1), tag));
}

TEST(Aead, OpensWhatItSealedAtEveryLength) {
  for (size_t length = 0; length < 600; ++length) {
    Bytes text(length);
    for (size_t i = 0; i < length; ++i) text[i] = static_cast<uint8_t>(i * 31);
    Bytes bytes = text;

    const Tag tag = seal(sample_key(), {}, {}, bytes);

    if (length > 16) {
      EXPECT_NE(bytes, text);
    }
    EXPECT_TRUE(unseal(sample_key(), {}, {}, bytes, tag));
    EXPECT_EQ(bytes, text);
  }
}

}  // namespace
}  // namespace hvd::net
