#include "bootstrap/key_agreement.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/parse.h"
#include "base/text.h"
#include "net/keys/hmac.h"
#include "net/packing.h"

namespace hvd::bootstrap {
namespace {

// The first byte of what rank 0 leaves: what follows.
constexpr char kSealedKeys = 'k';
constexpr char kNoKeys = 'f';
// Instead of a public key, by a rank that has the job's key from its environment.
constexpr std::string_view kGiven = "given";
constexpr std::string_view kAnswer = "sealed";
constexpr std::string_view kComplaint = "complaint";
constexpr size_t kMostHostBytes = 255;
// How often rank 0, while it waits for a rank, looks whether somebody complained.
constexpr auto kLookForOffers = std::chrono::milliseconds(500);
// The last part of the time is left to the gathering, which says who is missing.
constexpr int kGatheringShare = 10;
constexpr auto kShortestOfferLook = std::chrono::milliseconds(20);
// What others leave rank 0.
constexpr auto kTimeForRank0 = std::chrono::seconds(2);

Deadline before_gathering(Deadline deadline) {
  if (deadline.is_never()) return deadline;
  const Nanoseconds left = deadline.remaining(std::chrono::hours(24));
  return Deadline::at(deadline.when() - left / kGatheringShare);
}

Deadline with_time_for_rank0(Deadline deadline) {
  return deadline.is_never() ? deadline : Deadline::at(deadline.when() + kTimeForRank0);
}

std::span<const uint8_t> octets_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string_view octet_text(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

net::Key key_for(std::string_view label, const net::Key& secret, const SealContext& context) {
  std::string bound;
  net::put(bound, context.epoch);
  net::put(bound, context.rank);
  bound += octet_text(context.from);
  bound += octet_text(context.to);
  return secret.derive(label, octets_of(bound));
}

net::Digest proof_of(std::string_view padded, const net::Key& secret, const SealContext& context) {
  const net::Key key = key_for("horovod key proof", secret, context);
  return net::hmac_sha256(key.bytes(), {octets_of(padded)});
}

// A public key, and at an offer the name of its host.
Result<net::Point> parse_point(std::string_view bytes, std::string_view who) {
  if (bytes.size() < net::kPointBytes) {
    return corrupted(concat("key agreement: ", who, " left ", bytes.size(), " bytes, expected ",
                            net::kPointBytes));
  }
  net::Point point;
  std::copy_n(bytes.begin(), point.size(), point.begin());
  return point;
}

Status mixed_keys(std::string_view with, std::string_view without) {
  return precondition_error(concat("key agreement: ", with,
                                   " has a key from its environment (HOROVOD_KEY_FILE or "
                                   "HOROVOD_KEY_FD), ",
                                   without, " has none; set it on every rank or on none"));
}

}  // namespace

std::string seal_key(const net::Key& key, const net::Key& secret, const SealContext& context) {
  const net::Key pad = key_for("horovod key pad", secret, context);
  std::string out;
  for (size_t i = 0; i < net::kKeyBytes; ++i) {
    out.push_back(static_cast<char>(key.bytes()[i] ^ pad.bytes()[i]));
  }
  const net::Digest proof = proof_of(out, secret, context);
  return out.append(octet_text(proof));
}

Result<net::Key> open_key(std::string_view sealed, const net::Key& secret,
                          const SealContext& context) {
  if (sealed.size() != kSealedKeyBytes) {
    return corrupted(
        concat("a sealed key of ", sealed.size(), " bytes, expected ", kSealedKeyBytes));
  }
  const std::string_view padded = sealed.substr(0, net::kKeyBytes);
  if (!net::equal_in_constant_time(proof_of(padded, secret, context),
                                   octets_of(sealed.substr(net::kKeyBytes)))) {
    return corrupted("a sealed key that was not made for this process");
  }
  const net::Key pad = key_for("horovod key pad", secret, context);
  std::array<uint8_t, net::kKeyBytes> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(static_cast<uint8_t>(padded[i]) ^ pad.bytes()[i]);
  }
  const net::Key key(bytes);
  net::wipe(bytes);
  return key;
}

std::string KeyAgreement::name_of(std::string_view what) const {
  return concat("horovod/", self_.epoch, "/key/", what);
}

std::string KeyAgreement::offer_name(int32_t rank) const { return name_of(concat(rank)); }

Result<net::Key> KeyAgreement::agree(const std::optional<net::Key>& given, Deadline deadline) {
  const bool is_dealer = self_.rank == 0;
  if (!given) return is_dealer ? deal(deadline) : receive(deadline);
  // So that nobody waits for a rank that has the key already.
  const std::string text =
      is_dealer ? kNoKeys + mixed_keys("rank 0", "another rank").message() : std::string(kGiven);
  HVD_TRY(store_.set(is_dealer ? name_of(kAnswer) : offer_name(self_.rank), text, deadline));
  return *given;
}

// Rank 0.
Result<net::Key> KeyAgreement::deal(Deadline deadline) {
  HVD_TRY_ASSIGN(const net::KeyPair own, net::KeyPair::random());
  HVD_TRY_ASSIGN(const net::Key key, net::Key::random());
  const auto sealed = seal_for_all(own, key, before_gathering(deadline));
  const std::string answer = sealed ? *sealed : kNoKeys + sealed.status().message();
  const Status set = store_.set(name_of(kAnswer), answer, deadline);
  if (!sealed) return sealed.status();
  HVD_TRY(set);
  return key;
}

// Ranks that do not come in time get nothing; the gathering, which misses them, names them all.
Result<std::string> KeyAgreement::seal_for_all(const net::KeyPair& own, const net::Key& key,
                                               Deadline deadline) {
  std::string out(1, kSealedKeys);
  out += octet_text(own.public_point());
  for (int32_t rank = 1; rank < self_.size; ++rank) {
    HVD_TRY_ASSIGN(const auto offer, await_offer(rank, deadline));
    if (!offer) {
      out.append(kSealedKeyBytes, '\0');
      continue;
    }
    const std::string who = concat("rank ", rank);
    if (*offer == kGiven) return mixed_keys(who, "rank 0");
    HVD_TRY_ASSIGN(const net::Point point, parse_point(*offer, who));
    auto secret = own.shared_secret(point);
    if (!secret) return blame(concat("key agreement: ", who, " left"), secret.status());
    out += seal_key(key, *secret,
                    {.epoch = self_.epoch, .rank = rank, .from = own.public_point(), .to = point});
  }
  return out;
}

// nullopt: nobody came until the deadline.
Result<std::optional<std::string>> KeyAgreement::await_offer(int32_t rank, Deadline deadline) {
  for (;;) {
    auto offer =
        store_.get(offer_name(rank), Deadline::after(std::max<Nanoseconds>(
                                         deadline.remaining(kLookForOffers), kShortestOfferLook)));
    if (offer) return std::optional(*std::move(offer));
    if (offer.status().code() != StatusCode::kTimedOut) return offer.status();
    if (auto complaint = store_.get(name_of(kComplaint), Deadline::after(kShortestOfferLook))) {
      return precondition_error(*complaint);
    }
    if (deadline.passed()) return std::optional<std::string>();
  }
}

// Somebody else may have come as this rank before us.
Status KeyAgreement::leave_offer(std::string_view offer, Deadline deadline) {
  const Status set = store_.set(offer_name(self_.rank), offer, deadline);
  if (set.code() != StatusCode::kPreconditionError) return set;
  const auto other = store_.get(offer_name(self_.rank), deadline);
  if (!other || other->size() < net::kPointBytes) return set;
  const Status twice = precondition_error(
      concat("key agreement: two processes claim rank ", self_.rank, ": one on host ",
             std::string_view(*other).substr(net::kPointBytes, kMostHostBytes), " and one on host ",
             self_.hostname));
  // For rank 0, which may wait for the rank that this process should have been.
  (void)store_.set(name_of(kComplaint), twice.message(), deadline).is_ok();
  return twice;
}

Result<net::Key> KeyAgreement::receive(Deadline deadline) {
  HVD_TRY_ASSIGN(const net::KeyPair own, net::KeyPair::random());
  HVD_TRY(leave_offer(concat(octet_text(own.public_point()), self_.hostname), deadline));
  HVD_TRY_ASSIGN(const std::string answer,
                 store_.get(name_of(kAnswer), with_time_for_rank0(deadline)));
  return open_answer(answer, own);
}

Result<net::Key> KeyAgreement::open_answer(std::string_view answer, const net::KeyPair& own) const {
  const std::string_view rest = answer.substr(answer.empty() ? 0 : 1);
  if (answer.starts_with(kNoKeys)) return precondition_error(std::string(rest));
  const size_t at = net::kPointBytes + static_cast<size_t>(self_.rank - 1) * kSealedKeyBytes;
  if (!answer.starts_with(kSealedKeys) || rest.size() < at + kSealedKeyBytes) {
    return corrupted(concat("key agreement: rank 0 left ", answer.size(), " bytes, expected ",
                            1 + at + kSealedKeyBytes, " or more for rank ", self_.rank, " of ",
                            self_.size, "; do all ranks have the same size?"));
  }
  HVD_TRY_ASSIGN(const net::Point from, parse_point(rest.substr(0, net::kPointBytes), "rank 0"));
  auto secret = own.shared_secret(from);
  if (!secret) return blame("key agreement: rank 0 left", secret.status());
  const SealContext context{
      .epoch = self_.epoch, .rank = self_.rank, .from = from, .to = own.public_point()};
  auto key = open_key(rest.substr(at, kSealedKeyBytes), *secret, context);
  if (key) return key;
  return blame(concat("key agreement: either two processes claim rank ", self_.rank,
                      ", or this one came too late, or somebody changed the store: rank 0 left"),
               key.status());
}

void KeyAgreement::clean_up(const Forget& forget) const {
  if (!forget) return;
  // Rank 0's is read by all others, each of which has introduced itself since.
  forget(self_.rank == 0 ? name_of(kAnswer) : offer_name(self_.rank));
}

}  // namespace hvd::bootstrap
