#include "net/keys/x25519.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace hvd::net {
namespace {

Point from_hex(std::string_view text) {
  Point out{};
  for (size_t i = 0; i < out.size(); ++i) {
    unsigned value = 0;
    EXPECT_EQ(std::sscanf(std::string(text.substr(2 * i, 2)).c_str(), "%2x", &value), 1);
    out[i] = static_cast<uint8_t>(value);
  }
  return out;
}

TEST(X25519, GivesTheResultsOfRfc7748) {
  EXPECT_EQ(x25519(from_hex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4"),
                   from_hex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c")),
            from_hex("c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"));
  // The highest bit of the point is set, and must not count.
  EXPECT_EQ(x25519(from_hex("4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d"),
                   from_hex("e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493")),
            from_hex("95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957"));
}

TEST(X25519, GivesTheResultsOfRfc7748AfterManyRounds) {
  Point k = {9}, u = {9};
  for (int round = 1; round <= 1000; ++round) {
    const Point result = x25519(k, u);
    u = k;
    k = result;
    if (round == 1) {
      EXPECT_EQ(k, from_hex("422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079"));
    }
  }
  EXPECT_EQ(k, from_hex("684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51"));
}

TEST(X25519, GivesBothEndsOfTheExampleTheSameSecret) {
  const Point alice = from_hex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
  const Point bob = from_hex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb");
  const Point base = {9};
  const Point of_alice = x25519(alice, base), of_bob = x25519(bob, base);

  EXPECT_EQ(of_alice, from_hex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"));
  EXPECT_EQ(of_bob, from_hex("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"));
  const Point secret = from_hex("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
  EXPECT_EQ(x25519(alice, of_bob), secret);
  EXPECT_EQ(x25519(bob, of_alice), secret);
}

// 0, 1, the points of order eight, p - 1, and their other forms above p.
TEST(X25519, RefusesPointsThatGiveEverybodyTheSameSecret) {
  for (const char* point : {
           "0000000000000000000000000000000000000000000000000000000000000000",
           "0100000000000000000000000000000000000000000000000000000000000000",
           "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
           "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
           "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
           "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
           "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
       }) {
    const auto secret = KeyPair::random()->shared_secret(from_hex(point));

    EXPECT_EQ(secret.status().code(), StatusCode::kCorrupted) << point;
  }
}

TEST(X25519, PairsAreDifferentAndAgree) {
  const auto a = KeyPair::random(), b = KeyPair::random();
  ASSERT_TRUE(a && b);

  EXPECT_NE(a->public_point(), b->public_point());
  EXPECT_EQ(*a->shared_secret(b->public_point()), *b->shared_secret(a->public_point()));
}

}  // namespace
}  // namespace hvd::net
