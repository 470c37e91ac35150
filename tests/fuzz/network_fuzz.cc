// What is read from peers while a job comes together, and what an unproven stranger can send: every
// input ends in a value that survives the way back through bytes, or in an error.
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/fd.h"
#include "base/json_reader.h"
#include "bootstrap/pmi_client.h"
#include "bootstrap/pmi_meeting.h"
#include "bootstrap/roster.h"
#include "net/address.h"
#include "net/handshake.h"

namespace {

using namespace hvd;

void require(bool condition) {
  if (!condition) std::abort();
}

void decode_rosters(std::string_view bytes) {
  const auto roster = bootstrap::decode_roster(bytes);
  if (!roster) return;
  const auto again = bootstrap::decode_roster(bootstrap::encode_roster(*roster));
  require(again.is_ok() && again->members == roster->members);
  (void)bootstrap::make_host_map(roster->members).is_ok();
}

// What a process manager answers, and files that a launcher leaves.
void parse_launcher_texts(std::string_view text) {
  (void)bootstrap::decode_meeting(text).is_ok();
  (void)bootstrap::pmi_field(text, "value").size();
  (void)parse_json_object(text).is_ok();
  (void)parse_json_strings(text).is_ok();
}

void parse_lists(std::string_view text) {
  parse_launcher_texts(text);
  const auto addresses = net::parse_addresses(text);
  if (!addresses) return;
  require(*net::parse_addresses(net::to_text(*addresses)) == *addresses);
}

void decode_hellos(std::string_view bytes) {
  std::array<uint8_t, net::kHelloBytes> fixed{};
  std::copy_n(bytes.begin(), std::min(bytes.size(), fixed.size()), fixed.begin());
  const auto hello = net::decode_hello(fixed);
  if (hello) require(*net::decode_hello(net::encode_hello(*hello)) == *hello);
}

// A stranger without the key never gets further than the first message.
void greet(std::string_view bytes) {
  const std::array<uint8_t, net::kKeyBytes> key_bytes{42};
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0) return;
  const UniqueFd stranger(fds[0]), own(fds[1]);
  auto handshake = net::Handshake::accept(net::Key(key_bytes), {},
                                          [](const net::Hello&) -> net::Verdict { std::abort(); });
  (void)!send(stranger.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  require(handshake->advance(own.get()) != net::Handshake::State::kDone);
  char byte;
  require(recv(stranger.get(), &byte, 1, MSG_DONTWAIT) <= 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  constexpr void (*kTargets[])(std::string_view) = {decode_rosters, parse_lists, decode_hellos,
                                                    greet};
  kTargets[data[0] % std::size(kTargets)](bytes);
  return 0;
}
