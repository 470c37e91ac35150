#include "net/keys/x25519.h"

#include <algorithm>

#include "net/keys/hmac.h"

namespace hvd::net {
namespace {

// A number modulo p = 2^255 - 19 as five digits of 51 bits, least first. Digits may be larger than
// that between two steps: sums of two products' results stay below 2^54, for which the 128-bit
// columns of a product have room.
using Number = std::array<uint64_t, 5>;
__extension__ using Wide = unsigned __int128;

constexpr uint64_t kDigit = (uint64_t{1} << 51) - 1;
constexpr Number kTwoP = {0xfffffffffffda, 0xffffffffffffe, 0xffffffffffffe, 0xffffffffffffe,
                          0xffffffffffffe};
constexpr uint64_t kA24 = 121665;  // (486662 - 2) / 4

Number add(const Number& a, const Number& b) {
  Number out;
  for (size_t i = 0; i < 5; ++i) out[i] = a[i] + b[i];
  return out;
}

// b has digits below 2^52 - 38: it comes from a product.
Number subtract(const Number& a, const Number& b) {
  Number out;
  for (size_t i = 0; i < 5; ++i) out[i] = a[i] + kTwoP[i] - b[i];
  return out;
}

Number carried(Number a) {
  for (size_t i = 0; i < 4; ++i) {
    a[i + 1] += a[i] >> 51;
    a[i] &= kDigit;
  }
  a[0] += 19 * (a[4] >> 51);
  a[4] &= kDigit;
  return a;
}

Number carried(std::array<Wide, 5> columns) {
  for (size_t i = 0; i < 4; ++i) {
    columns[i + 1] += columns[i] >> 51;
    columns[i] &= kDigit;
  }
  const Wide over = columns[4] >> 51;
  columns[4] &= kDigit;
  columns[0] += 19 * over;
  columns[1] += columns[0] >> 51;
  columns[0] &= kDigit;
  Number out;
  for (size_t i = 0; i < 5; ++i) out[i] = static_cast<uint64_t>(columns[i]);
  return out;
}

// Digits i and j give column i + j; above 2^255 a column comes back as 19 of the lower one.
Number multiply(const Number& a, const Number& b) {
  std::array<Wide, 5> columns{};
  for (size_t i = 0; i < 5; ++i) {
    for (size_t j = 0; j < 5; ++j) {
      const uint64_t digit = i + j < 5 ? b[j] : 19 * b[j];
      columns[(i + j) % 5] += Wide{a[i]} * digit;
    }
  }
  return carried(columns);
}

Number square(const Number& a) { return multiply(a, a); }

Number multiply_small(const Number& a, uint64_t factor) {
  std::array<Wide, 5> columns{};
  for (size_t i = 0; i < 5; ++i) columns[i] = Wide{a[i]} * factor;
  return carried(columns);
}

// a^(p - 2): every bit of p - 2 is one but bits 2 and 4. The exponent is public.
Number invert(const Number& a) {
  Number out = a;
  for (int bit = 253; bit >= 0; --bit) {
    out = square(out);
    if (bit != 2 && bit != 4) out = multiply(out, a);
  }
  return out;
}

// Exchanges a and b if `bit` is 1, without a branch.
void swap_if(uint64_t bit, Number& a, Number& b) {
  const uint64_t mask = 0 - bit;
  for (size_t i = 0; i < 5; ++i) {
    const uint64_t difference = mask & (a[i] ^ b[i]);
    a[i] ^= difference;
    b[i] ^= difference;
  }
}

uint64_t load(std::span<const uint8_t, 32> bytes, size_t at) {
  uint64_t out = 0;
  for (size_t i = 8; i-- > 0;) out = out << 8 | bytes[at + i];
  return out;
}

// Without the highest bit, as RFC 7748 has it.
Number decode(std::span<const uint8_t, 32> bytes) {
  return {load(bytes, 0) & kDigit, load(bytes, 6) >> 3 & kDigit, load(bytes, 12) >> 6 & kDigit,
          load(bytes, 19) >> 1 & kDigit, load(bytes, 24) >> 12 & kDigit};
}

Point encode(Number a) {
  a = carried(carried(carried(a)));
  // Now a < 2^255: it is p or more exactly if a + 19 reaches 2^255.
  uint64_t over = 19;
  for (const uint64_t digit : a) over = (digit + over) >> 51;
  a[0] += 19 * over;
  for (size_t i = 0; i < 4; ++i) {
    a[i + 1] += a[i] >> 51;
    a[i] &= kDigit;
  }
  a[4] &= kDigit;
  Point out{};
  for (size_t bit = 0; bit < 255; ++bit) {
    out[bit / 8] |= static_cast<uint8_t>((a[bit / 51] >> (bit % 51) & 1) << (bit % 8));
  }
  return out;
}

// x/z of two neighbouring multiples of the point, whose difference is the point itself.
struct Rungs {
  Number x2{1}, z2{}, x3{}, z3{1};
};

void climb(Rungs& r, const Number& x1) {
  const Number a = add(r.x2, r.z2), b = subtract(r.x2, r.z2);
  const Number aa = square(a), bb = square(b), e = subtract(aa, bb);
  const Number da = multiply(subtract(r.x3, r.z3), a), cb = multiply(add(r.x3, r.z3), b);
  r.x3 = square(add(da, cb));
  r.z3 = multiply(x1, square(subtract(da, cb)));
  r.x2 = multiply(aa, bb);
  r.z2 = multiply(e, add(aa, multiply_small(e, kA24)));
}

}  // namespace

Point x25519(std::span<const uint8_t, 32> scalar, std::span<const uint8_t, kPointBytes> point) {
  std::array<uint8_t, 32> k;
  std::copy(scalar.begin(), scalar.end(), k.begin());
  k[0] &= 248;
  k[31] = static_cast<uint8_t>((k[31] & 127) | 64);
  const Number x1 = decode(point);
  Rungs rungs{.x3 = x1};
  uint64_t swapped = 0;
  for (size_t bit = 255; bit-- > 0;) {
    const uint64_t now = static_cast<uint64_t>(k[bit / 8]) >> (bit % 8) & 1;
    swap_if(swapped ^ now, rungs.x2, rungs.x3);
    swap_if(swapped ^ now, rungs.z2, rungs.z3);
    swapped = now;
    climb(rungs, x1);
  }
  swap_if(swapped, rungs.x2, rungs.x3);
  swap_if(swapped, rungs.z2, rungs.z3);
  const Point out = encode(multiply(rungs.x2, invert(rungs.z2)));
  wipe(k);
  wipe({reinterpret_cast<uint8_t*>(&rungs), sizeof rungs});
  return out;
}

KeyPair::KeyPair(const Key& secret) : secret_(secret) {
  constexpr Point kBase = {9};
  public_ = x25519(secret_.bytes(), kBase);
}

Result<KeyPair> KeyPair::random() {
  HVD_TRY_ASSIGN(const Key secret, Key::random());
  return KeyPair(secret);
}

Result<Key> KeyPair::shared_secret(std::span<const uint8_t, kPointBytes> other) const {
  Point shared = x25519(secret_.bytes(), other);
  uint8_t any = 0;
  for (const uint8_t byte : shared) any |= byte;
  const Key key(shared);
  wipe(shared);
  if (any == 0) return corrupted("a point of small order instead of a public key");
  return key;
}

}  // namespace hvd::net
