#include "net/tls_handshake.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/text.h"

namespace hvd::net {
namespace {

using openssl::Functions;

// Constants of OpenSSL's interface, which never change.
constexpr int kSetMinVersion = 123, kSetMaxVersion = 124;
constexpr long kTls13 = 0x0304;
constexpr int kVerifyPeer = 1;
constexpr int kWantRead = 2, kWantWrite = 3, kZeroReturn = 6;
constexpr unsigned long kReasonMask = 0x7fffff, kUnexpectedEnd = 294;
constexpr int kBioFlush = 11, kBioRead = 1, kBioWrite = 2, kBioRetry = 8;
constexpr int kBioType = 0x0400 | 100;  // a source and sink, number of our own
constexpr unsigned char kAes128GcmSha256[] = {0x13, 0x01};
constexpr char kSuiteName[] = "TLS_AES_128_GCM_SHA256";
constexpr unsigned char kIdentity[] = "horovod";

}  // namespace

// One for the process: settings that all connections share. Never freed, like the library.
struct TlsCallbacks {
  struct Shared {
    const Functions* f = nullptr;
    openssl::Context* context = nullptr;
    openssl::BioMethod* method = nullptr;
    Status status{};
  };

  static const Shared& shared() {
    static const Shared shared = make();
    return shared;
  }

 private:
  static Shared make();
  static TlsHandshake& of(const openssl::Ssl* ssl) {
    return *static_cast<TlsHandshake*>(shared().f->SSL_get_ex_data(ssl, 0));
  }
  static int use_session(openssl::Ssl* ssl, const void*, const unsigned char** identity,
                         size_t* bytes, openssl::Session** out);
  static int find_session(openssl::Ssl* ssl, const unsigned char* identity, size_t bytes,
                          openssl::Session** out);
  static void take_secret(const openssl::Ssl* ssl, const char* line);
  static int socket_result(openssl::Bio* bio, ssize_t result, int direction);
  static int write(openssl::Bio* bio, const char* bytes, int count);
  static int read(openssl::Bio* bio, char* bytes, int count);
};

TlsCallbacks::Shared TlsCallbacks::make() {
  const auto functions = openssl::load();
  if (!functions) return {.status = functions.status()};
  const Functions& f = **functions;
  Shared out{.f = &f,
             .context = f.SSL_CTX_new(f.TLS_method()),
             .method = f.BIO_meth_new(kBioType, "horovod socket")};
  if (out.context == nullptr || out.method == nullptr) {
    return {.status = Status(StatusCode::kOutOfMemory, "HOROVOD_TLS: no memory")};
  }
  // Without reading ahead (the default), so that the first record behind the handshake stays in the
  // socket.
  f.SSL_CTX_ctrl(out.context, kSetMinVersion, kTls13, nullptr);
  f.SSL_CTX_ctrl(out.context, kSetMaxVersion, kTls13, nullptr);
  f.SSL_CTX_set_num_tickets(out.context, 0);  // nothing is ever resumed
  f.SSL_CTX_set_psk_use_session_callback(out.context, use_session);
  f.SSL_CTX_set_psk_find_session_callback(out.context, find_session);
  f.SSL_CTX_set_keylog_callback(out.context, take_secret);
  f.BIO_meth_set_write(out.method, write);
  f.BIO_meth_set_read(out.method, read);
  f.BIO_meth_set_ctrl(out.method, [](openssl::Bio*, int command, long, void*) -> long {
    return command == kBioFlush ? 1 : 0;
  });
  if (f.SSL_CTX_set_ciphersuites(out.context, kSuiteName) != 1) {
    return {.status = precondition_error(concat("HOROVOD_TLS: OpenSSL has no ", kSuiteName))};
  }
  return out;
}

// Our own BIO, because OpenSSL's would raise SIGPIPE.
int TlsCallbacks::socket_result(openssl::Bio* bio, ssize_t result, int direction) {
  const Functions& f = *shared().f;
  f.BIO_clear_flags(bio, kBioRead | kBioWrite | kBioRetry);
  if (result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    f.BIO_set_flags(bio, direction | kBioRetry);
  }
  return static_cast<int>(result);
}

int TlsCallbacks::write(openssl::Bio* bio, const char* bytes, int count) {
  const int socket = *static_cast<const int*>(shared().f->BIO_get_data(bio));
  return socket_result(
      bio, ::send(socket, bytes, static_cast<size_t>(count), MSG_NOSIGNAL | MSG_DONTWAIT),
      kBioWrite);
}

int TlsCallbacks::read(openssl::Bio* bio, char* bytes, int count) {
  const int socket = *static_cast<const int*>(shared().f->BIO_get_data(bio));
  return socket_result(bio, ::recv(socket, bytes, static_cast<size_t>(count), MSG_DONTWAIT),
                       kBioRead);
}

int TlsCallbacks::use_session(openssl::Ssl* ssl, const void*, const unsigned char** identity,
                              size_t* bytes, openssl::Session** out) {
  *out = of(ssl).make_session();
  *identity = kIdentity;
  *bytes = sizeof kIdentity - 1;
  return *out != nullptr ? 1 : 0;
}

int TlsCallbacks::find_session(openssl::Ssl* ssl, const unsigned char* identity, size_t bytes,
                               openssl::Session** out) {
  const bool known = bytes == sizeof kIdentity - 1 && std::memcmp(identity, kIdentity, bytes) == 0;
  *out = known ? of(ssl).make_session() : nullptr;
  return 1;
}

// "CLIENT_TRAFFIC_SECRET_0 ", 64 digits that name the connection, a blank, and the secret.
void TlsCallbacks::take_secret(const openssl::Ssl* ssl, const char* line) {
  const std::string_view text(line);
  const bool is_client = text.starts_with("CLIENT_TRAFFIC_SECRET_0 ");
  if (!is_client && !text.starts_with("SERVER_TRAFFIC_SECRET_0 ")) return;
  const auto secret = Key::parse(text.substr(text.rfind(' ') + 1));
  if (!secret) return;  // then advance() finds it missing
  (is_client ? of(ssl).client_ : of(ssl).server_).emplace(*secret);
}

Status load_tls() { return TlsCallbacks::shared().status; }

Result<std::unique_ptr<TlsHandshake>> TlsHandshake::create(int socket, const Key& key,
                                                           TlsRole role) {
  HVD_TRY(load_tls());
  std::unique_ptr<TlsHandshake> out(new TlsHandshake(*TlsCallbacks::shared().f, socket, key, role));
  HVD_TRY(out->begin());
  return out;
}

TlsHandshake::~TlsHandshake() {
  if (ssl_ != nullptr) f_.SSL_free(ssl_);  // with its BIO
}

// The pre-shared key as OpenSSL wants it: the session of an imaginary earlier connection.
openssl::Session* TlsHandshake::make_session() const {
  openssl::Session* session = f_.SSL_SESSION_new();
  if (session == nullptr) return nullptr;
  const void* cipher = f_.SSL_CIPHER_find(ssl_, kAes128GcmSha256);
  if (cipher != nullptr &&
      f_.SSL_SESSION_set1_master_key(session, key_.bytes().data(), key_.bytes().size()) == 1 &&
      f_.SSL_SESSION_set_cipher(session, cipher) == 1 &&
      f_.SSL_SESSION_set_protocol_version(session, static_cast<int>(kTls13)) == 1) {
    return session;
  }
  f_.SSL_SESSION_free(session);
  return nullptr;
}

Status TlsHandshake::begin() {
  const TlsCallbacks::Shared& shared = TlsCallbacks::shared();
  ssl_ = f_.SSL_new(shared.context);
  openssl::Bio* bio = ssl_ == nullptr ? nullptr : f_.BIO_new(shared.method);
  if (bio == nullptr) return Status(StatusCode::kOutOfMemory, "TLS: no memory for a connection");
  f_.BIO_set_data(bio, const_cast<int*>(&socket_));
  f_.BIO_set_init(bio, 1);
  f_.SSL_set_bio(ssl_, bio, bio);
  f_.SSL_set_ex_data(ssl_, 0, this);
  if (role_ == TlsRole::kServer) {
    f_.SSL_set_accept_state(ssl_);
    return Status::ok();
  }
  // No certificate is ever right: a server that does not know the key gets no connection.
  f_.SSL_set_verify(ssl_, kVerifyPeer, nullptr);
  f_.SSL_set_connect_state(ssl_);
  return Status::ok();
}

Status TlsHandshake::advance() {
  if (is_done_) return Status::ok();
  f_.ERR_clear_error();
  errno = 0;
  const int result = f_.SSL_do_handshake(ssl_);
  if (result != 1) return outcome(result);
  if (!client_ || !server_) {
    return Status(StatusCode::kUnknownError, "TLS: OpenSSL did not tell the secrets");
  }
  is_done_ = true;
  return Status::ok();
}

// OK: OpenSSL wants the socket to be ready first.
Status TlsHandshake::outcome(int result) {
  const int system_error = errno;
  const int error = f_.SSL_get_error(ssl_, result);
  if (error == kWantRead || error == kWantWrite) return Status::ok();
  std::string why = "the connection was closed";
  const unsigned long code = error == kZeroReturn ? 0 : f_.ERR_get_error();
  if (code != 0 && (code & kReasonMask) != kUnexpectedEnd) {
    char text[256];
    f_.ERR_error_string_n(code, text, sizeof text);
    why = concat("TLS: ", std::string_view(text));
  } else if (code == 0 && error != kZeroReturn && system_error != 0) {
    why = std::strerror(system_error);
  }
  return Status(StatusCode::kPeerLost, why);
}

}  // namespace hvd::net
