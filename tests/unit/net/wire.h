// wire.h - two protected streams with the test on the way between them: it sees every byte and may
// change, drop, repeat or reorder them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "net/sealed_stream.h"
#include "net/tls_stream.h"
#include "tests/unit/net/sockets.h"

namespace hvd::net::test {

enum class Cover { kSealed, kTls };

class Wire {
 public:
  // What is passed on for what came; once the streams have settled (TLS: its own first messages).
  using Attack = std::function<std::string(std::string)>;

  explicit Wire(Cover cover, const TlsOptions& options = {}, const Key& key = key_of(1)) {
    auto [a, from_a] = socket_pair();
    auto [b, from_b] = socket_pair();
    wire_a_ = std::move(from_a);
    wire_b_ = std::move(from_b);
    if (cover == Cover::kTls) {
      a_ = *make_tls_stream(std::move(a), "rank 1", key, TlsRole::kClient, options);
      b_ = *make_tls_stream(std::move(b), "rank 0", key, TlsRole::kServer, options);
    } else {
      a_ = make_sealed_stream(std::move(a), "rank 1", key, SealRole::kDialler);
      b_ = make_sealed_stream(std::move(b), "rank 0", key, SealRole::kAcceptor);
    }
  }

  Stream& a() { return *a_; }
  Stream& b() { return *b_; }
  // All that passed from a to b, as it came.
  const std::string& seen() const { return seen_; }

  // A word each way, so that nothing but records follows.
  void settle() {
    EXPECT_EQ(carry("a"), "a");
    size_t sent = 0;
    std::string out;
    EXPECT_TRUE(wait_until({}, [&] {
      if (sent == 0) sent = *send_text(*b_, "b");
      pass({});
      (void)receive_into(*a_, out);
      return out == "b";
    }));
    seen_.clear();
  }

  // What a sends and b gets; ends early when b fails.
  std::string carry(std::string_view text, const Attack& attack = {}) {
    std::string out, back;
    size_t sent = 0;
    failure_ = Status::ok();
    wait_until({}, [&] {
      if (sent < text.size()) {
        const auto took = send_text(*a_, text.substr(sent));
        if (took) sent += *took;
      }
      pass(sent == text.size() || text.size() > 1000 ? attack : Attack());
      failure_ = receive_into(*b_, out).status();
      (void)receive_into(*a_, back);
      return !failure_.is_ok() || out.size() >= text.size();
    });
    return out;
  }
  // Why the last carry() ended early.
  const Status& failure() const { return failure_; }

  // Sends `text` and gives the bytes on the wire, which b does not get.
  std::string capture(std::string_view text) {
    EXPECT_EQ(*send_text(*a_, text), text.size());
    return read(wire_a_);
  }
  // Gives b these bytes; what it makes of them.
  std::string inject(std::string_view bytes) {
    std::string out;
    while (!bytes.empty()) {
      const ssize_t sent =
          ::send(wire_b_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
      do {
        failure_ = receive_into(*b_, out).status();
      } while (failure_.is_ok() && b_->has_buffered());
      if (!failure_.is_ok()) break;
    }
    return out;
  }
  void hang_up() {
    wire_b_.reset();
    std::string out;
    failure_ = receive_into(*b_, out).status();
    EXPECT_EQ(out, "");
  }

 private:
  static Result<size_t> receive_into(Stream& stream, std::string& out) {
    char buffer[3000];  // not a divisor of a record, so that bytes stay buffered
    const iovec part{buffer, sizeof buffer};
    const auto got = stream.receive({&part, 1});
    if (got) out.append(buffer, *got);
    return got;
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
  void pass(const Attack& attack) {
    const std::string forth = read(wire_a_);
    seen_ += forth;
    held_ += attack && !forth.empty() ? attack(forth) : forth;
    const ssize_t sent =
        ::send(wire_b_.get(), held_.data(), held_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) held_.erase(0, static_cast<size_t>(sent));
    const std::string back = read(wire_b_);
    EXPECT_EQ(::send(wire_a_.get(), back.data(), back.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(back.size()));
  }

  std::unique_ptr<Stream> a_, b_;
  UniqueFd wire_a_, wire_b_;
  std::string seen_, held_;
  Status failure_;
};

}  // namespace hvd::net::test
