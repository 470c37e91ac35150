// Our records against OpenSSL's own: one end is a stream of ours, the other one goes on by itself
// behind the handshake.
#include "net/tls_records.h"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include "net/tls_stream.h"
#include "tests/unit/net/sockets.h"

namespace hvd::net::tls_records_test {
namespace {

using net::test::key_of;
using net::test::send_text;
using net::test::socket_pair;
using net::test::wait_until;
using ::testing::HasSubstr;

std::string some_text(size_t count) {
  std::string text(count, '\0');
  for (size_t i = 0; i < count; ++i) text[i] = static_cast<char>(i * 7 + i / 251);
  return text;
}

class AgainstOpenssl : public testing::TestWithParam<TlsRole> {
 protected:
  void SetUp() override {
    if (const Status loaded = load_tls(); !loaded) GTEST_SKIP() << loaded.message();
    library_ = ::dlopen("libssl.so.3", RTLD_NOW);
    ASSERT_NE(library_, nullptr);
    auto [a, b] = socket_pair();
    other_socket_ = std::move(b);
    const TlsRole role = GetParam();
    other_ = *TlsHandshake::create(other_socket_.get(), key_of(1),
                                   role == TlsRole::kClient ? TlsRole::kServer : TlsRole::kClient);
    ours_ = *make_tls_stream(std::move(a), "rank 1", key_of(1), role, {.records_per_key = 40});
    ASSERT_TRUE(wait_until({}, [&] {
      EXPECT_TRUE(other_->advance());
      EXPECT_EQ(receive(), "");
      return other_->is_done();
    }));
  }
  void TearDown() override {
    other_.reset();
    if (library_ != nullptr) ::dlclose(library_);
  }

  template <typename Function>
  Function* find(const char* name) {
    auto* const function = reinterpret_cast<Function*>(::dlsym(library_, name));
    EXPECT_NE(function, nullptr) << name;
    return function;
  }

  std::string receive() {
    char buffer[20000];
    const iovec parts[] = {{buffer, 3000}, {buffer + 3000, sizeof buffer - 3000}};
    const auto got = ours_->receive(parts);
    failure_ = got.status();
    return got ? std::string(buffer, *got) : "";
  }
  std::string read_there() {
    static auto* const read = find<int(openssl::Ssl*, void*, size_t, size_t*)>("SSL_read_ex");
    char buffer[20000];
    size_t got = 0;
    return read(other_->ssl(), buffer, sizeof buffer, &got) == 1 ? std::string(buffer, got) : "";
  }
  size_t write_there(std::string_view text) {
    static auto* const write =
        find<int(openssl::Ssl*, const void*, size_t, size_t*)>("SSL_write_ex");
    size_t sent = 0;
    return write(other_->ssl(), text.data(), text.size(), &sent) == 1 ? sent : 0;
  }

  void expect_carried_there(const std::string& text) {
    std::string out;
    size_t sent = 0;
    ASSERT_TRUE(wait_until({},
                           [&] {
                             if (sent < text.size())
                               sent += *send_text(*ours_, std::string_view(text).substr(sent));
                             out += read_there();
                             return out.size() >= text.size();
                           }))
        << out.size() << " of " << text.size();
    EXPECT_TRUE(out == text);
  }
  void expect_carried_here(const std::string& text) {
    std::string out;
    size_t sent = 0;
    ASSERT_TRUE(wait_until({},
                           [&] {
                             if (sent < text.size())
                               sent += write_there(std::string_view(text).substr(sent, 16000));
                             out += receive();
                             EXPECT_TRUE(failure_) << failure_.message();
                             return out.size() >= text.size() || !failure_;
                           }))
        << out.size() << " of " << text.size();
    EXPECT_TRUE(out == text);
  }

  void* library_ = nullptr;
  UniqueFd other_socket_;
  std::unique_ptr<Stream> ours_;
  std::unique_ptr<TlsHandshake> other_;
  Status failure_;
};

TEST_P(AgainstOpenssl, OpensslReadsOurRecordsAndWeReadIts) {
  for (const size_t count : {1, 20, 5000, 16384, 16385, 200000}) {
    expect_carried_there(some_text(count));
    expect_carried_here(some_text(count));
  }
}

// Forty records to a key: several changes.
TEST_P(AgainstOpenssl, OpensslFollowsWhenWeChangeTheKey) {
  expect_carried_there(some_text(3 << 20));
}

TEST_P(AgainstOpenssl, WeFollowWhenOpensslChangesItsKey) {
  auto* const update = find<int(openssl::Ssl*, int)>("SSL_key_update");
  for (const int asks_for_ours : {0, 1, 0, 1}) {
    ASSERT_EQ(update(other_->ssl(), asks_for_ours), 1);
    expect_carried_here(some_text(1000));
    expect_carried_there(some_text(1000));
  }
}

TEST_P(AgainstOpenssl, AGoodbyeIsTheEnd) {
  ASSERT_GE(find<int(openssl::Ssl*)>("SSL_shutdown")(other_->ssl()), 0);

  ASSERT_TRUE(wait_until({}, [&] {
    EXPECT_EQ(receive(), "");
    return !failure_.is_ok();
  }));

  EXPECT_EQ(failure_.code(), StatusCode::kPeerLost);
  EXPECT_THAT(failure_.message(), HasSubstr("rank 1: the connection was closed"));
}

INSTANTIATE_TEST_SUITE_P(Roles, AgainstOpenssl, testing::Values(TlsRole::kClient, TlsRole::kServer),
                         [](const auto& role) {
                           return role.param == TlsRole::kClient ? "Client" : "Server";
                         });

TEST(TlsRecords, RefuseHeadsThatNoRecordHas) {
  using Head = std::array<uint8_t, TlsRecords::kHeadBytes>;
  EXPECT_EQ(TlsRecords::length_of(Head{23, 3, 3, 0, 17}), 22u);
  EXPECT_EQ(TlsRecords::length_of(Head{23, 3, 3, 0x40, 17}), 5u + 16384 + 17);
  EXPECT_EQ(TlsRecords::length_of(Head{23, 3, 3, 0x40, 18}), 0u) << "too long";
  EXPECT_EQ(TlsRecords::length_of(Head{23, 3, 3, 0, 16}), 0u) << "no room for a tag";
  EXPECT_EQ(TlsRecords::length_of(Head{22, 3, 3, 0, 17}), 0u) << "a handshake in the clear";
  EXPECT_EQ(TlsRecords::length_of(Head{23, 3, 1, 0, 17}), 0u) << "another version";
}

}  // namespace
}  // namespace hvd::net::tls_records_test
