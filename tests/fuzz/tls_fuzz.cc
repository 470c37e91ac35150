// tls_fuzz.cc - records of TLS with somebody on the way between the two ends, who passes on, flips,
// drops, repeats and inserts bytes as the input says. What comes out is the start of what was put
// in, whatever is done; and nothing but an error behind a change.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/fd.h"
#include "net/tls_stream.h"

namespace {

using namespace hvd;

void require(bool condition) {
  if (!condition) std::abort();
}

std::pair<UniqueFd, UniqueFd> socket_pair() {
  int fds[2];
  require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

class Wire {
 public:
  Wire() {
    auto [a, from_a] = socket_pair();
    auto [b, to_b] = socket_pair();
    from_a_ = std::move(from_a);
    to_b_ = std::move(to_b);
    const net::Key key(std::array<uint8_t, net::kKeyBytes>{42});
    // A new key every third record, so that inputs get there.
    a_ = *net::make_tls_stream(std::move(a), "a", key, net::TlsRole::kClient,
                               {.records_per_key = 3});
    b_ = *net::make_tls_stream(std::move(b), "b", key, net::TlsRole::kServer);
    // Three flights; nothing is sent before both ends are through.
    for (int i = 0; i < 4; ++i) {
      receive(0);
      carry(to_b_, from_a_);
      (void)a_->receive({});
      carry(from_a_, to_b_);
    }
  }

  void send(size_t count) {
    count = std::min(count, all_bytes().size() - sent_);
    const iovec part{const_cast<char*>(all_bytes().data()) + sent_, count};
    const auto taken = a_->send({&part, 1});
    require(taken.is_ok());
    sent_ += *taken;
    held_ += read(from_a_);
  }
  void pass(size_t count) {
    const std::string_view some = std::string_view(held_).substr(0, count);
    const ssize_t done = ::send(to_b_.get(), some.data(), some.size(), MSG_NOSIGNAL);
    if (done > 0) held_.erase(0, static_cast<size_t>(done));
  }
  void flip(size_t bit) {
    if (held_.empty()) return;
    char& byte = held_[bit / 8 % held_.size()];
    byte = static_cast<char>(byte ^ 1 << bit % 8);
  }
  void drop(size_t count) { held_.erase(0, count); }
  void repeat(size_t count) {
    if (held_.size() < kMostBytes) held_.insert(0, held_.substr(0, count));
  }
  void insert(size_t count) { held_.insert(0, std::string(std::min<size_t>(count, 64), '\x17')); }

  void receive(size_t count) {
    std::string out(count, '\0');
    const iovec parts[] = {{out.data(), count / 3}, {out.data() + count / 3, count - count / 3}};
    const auto got = b_->receive(parts);
    if (!got) {
      has_failed_ = true;
      return;
    }
    require(!has_failed_ || *got == 0);
    require(got_ + *got <= sent_ && std::memcmp(out.data(), all_bytes().data() + got_, *got) == 0);
    got_ += *got;
  }

 private:
  // What a sends, from the start; made once, since an instrumented loop takes its time.
  static constexpr size_t kMostBytes = 256 << 10;
  static const std::string& all_bytes() {
    static const std::string all = [] {
      std::string out(kMostBytes, '\0');
      for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>(i * 7 >> 3);
      return out;
    }();
    return all;
  }
  static std::string read(const UniqueFd& from) {
    std::string all;
    char buffer[65536];
    for (;;) {
      const ssize_t got = recv(from.get(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (got <= 0) return all;
      all.append(buffer, static_cast<size_t>(got));
    }
  }
  static void carry(const UniqueFd& from, const UniqueFd& to) {
    const std::string bytes = read(from);
    (void)!::send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  UniqueFd from_a_, to_b_;
  std::unique_ptr<net::Stream> a_, b_;
  std::string held_;  // on the way
  size_t sent_ = 0, got_ = 0;
  bool has_failed_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (!net::load_tls().is_ok()) return 0;
  constexpr void (Wire::*kSteps[])(size_t) = {&Wire::send,   &Wire::pass,   &Wire::flip,
                                              &Wire::drop,   &Wire::repeat, &Wire::insert,
                                              &Wire::receive};
  constexpr size_t kStepBytes = 3, kMostSteps = 200;
  Wire wire;
  for (size_t at = 0; at + kStepBytes <= std::min(size, kMostSteps * kStepBytes);
       at += kStepBytes) {
    uint16_t count = 0;
    std::memcpy(&count, data + at + 1, sizeof count);
    (wire.*kSteps[data[at] % std::size(kSteps)])(count);
  }
  return 0;
}
