// codec_fuzz.cc - any bytes end in a request or a Status; what decodes is written back byte for
// byte, and no request, however mad, hurts the validators.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "negotiate/validate.h"
#include "wire/codec.h"

namespace {

using hvd::wire::Request;

bool has_nan(const Request& request) {
  return std::isnan(request.prescale) || std::isnan(request.postscale);
}

void check_codec(const Request& request, std::span<const std::byte> message) {
  const std::vector<std::byte> again = hvd::wire::encode(request);
  HVD_ASSERT(std::equal(again.begin(), again.end(), message.begin(), message.end()),
             "a request has one encoding");
  const hvd::Result<Request> second = hvd::wire::decode(again);
  HVD_ASSERT(second.is_ok(), "what was encoded can be decoded");
  HVD_ASSERT(second.value() == request || has_nan(request), "and is the same");
}

void check_validators(const Request& request) {
  const int32_t ranks[] = {0, 1};
  const Request* const equal[] = {&request, &request};
  const Request* const joined[] = {nullptr, &request};
  const bool is_valid = hvd::negotiate::validate_local(request, ranks).is_ok();
  (void)hvd::negotiate::validate_local(request, {}).is_ok();
  const auto plan = hvd::negotiate::validate({.requests = equal, .global_ranks = ranks});
  (void)hvd::negotiate::validate({.requests = joined, .global_ranks = ranks}).is_ok();
  // The only thing that is left to negotiation although one rank could see it.
  const bool has_scalar =
      std::ranges::any_of(request.tensors, [](const auto& tensor) { return tensor.shape.empty(); });
  HVD_ASSERT(!is_valid || plan.is_ok() || has_scalar, "two equal valid requests fit together");
  HVD_ASSERT(!plan.is_ok() || plan->tensors.size() == request.tensors.size(),
             "a plan has one entry per tensor");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span message(reinterpret_cast<const std::byte*>(data), size);
  const hvd::Result<Request> request = hvd::wire::decode(message);
  if (!request.is_ok()) {
    HVD_ASSERT(request.status().code() == hvd::StatusCode::kCorrupted, "bad bytes are corruption");
    return 0;
  }
  check_codec(request.value(), message);
  check_validators(request.value());
  return 0;
}
