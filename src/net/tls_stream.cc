#include "net/tls_stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/parse.h"
#include "base/text.h"
#include "base/thread_annotations.h"
#include "net/openssl.h"

namespace hvd::net {
namespace {

using openssl::Functions;

// Constants of OpenSSL's interface, which never change.
constexpr int kControlMode = 33, kSetReadAhead = 41, kSetMinVersion = 123, kSetMaxVersion = 124;
constexpr long kTls13 = 0x0304, kPartialWrites = 1, kMovingBuffers = 2;
constexpr int kVerifyPeer = 1;
constexpr int kErrorSsl = 1, kWantRead = 2, kWantWrite = 3, kZeroReturn = 6;
constexpr unsigned long kReasonMask = 0x7fffff, kUnexpectedEnd = 294;
constexpr int kUpdateOwnKey = 0;  // the other end changes its own when it is time
constexpr int kBioFlush = 11, kBioRead = 1, kBioWrite = 2, kBioRetry = 8;
constexpr int kBioType = 0x0400 | 100;  // a source and sink, number of our own
constexpr unsigned char kAes128GcmSha256[] = {0x13, 0x01};
constexpr char kSuiteName[] = "TLS_AES_128_GCM_SHA256";
constexpr unsigned char kIdentity[] = "horovod";

constexpr size_t kRecordBytes = 16 << 10;
// Several records for one system call.
constexpr size_t kReadBufferBytes = 4 * (kRecordBytes + 256);

class TlsStream;
TlsStream* stream_of(const Functions& f, const openssl::Ssl* ssl) {
  return static_cast<TlsStream*>(f.SSL_get_ex_data(ssl, 0));
}

class TlsStream final : public Stream {
 public:
  TlsStream(const Functions& functions, UniqueFd socket, std::string peer, const Key& key,
            const TlsOptions& options)
      : f_(functions),
        socket_(std::move(socket)),
        peer_(std::move(peer)),
        key_(key),
        options_(options) {}
  ~TlsStream() override {
    if (ssl_ != nullptr) f_.SSL_free(ssl_);  // with its BIO
  }

  Status open(openssl::Context* context, const openssl::BioMethod* method, TlsRole role)
      HVD_EXCLUDES(mutex_);

  Result<size_t> send(std::span<const iovec> parts) override HVD_EXCLUDES(mutex_);
  Result<size_t> receive(std::span<const iovec> parts) override HVD_EXCLUDES(mutex_);
  bool has_buffered() const override HVD_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return !failure_.is_ok() || (is_open_ && !is_dry_ && f_.SSL_has_pending(ssl_) != 0);
  }
  int descriptor() const override { return socket_.get(); }
  const std::string& peer() const override { return peer_; }

  // The pre-shared key as OpenSSL wants it: the session of an imaginary earlier connection.
  openssl::Session* make_session(openssl::Ssl* ssl) const;

 private:
  // OK: OpenSSL wants the socket to be ready first.
  Status outcome(int result) HVD_REQUIRES(mutex_);
  size_t stage(std::span<const iovec> parts, size_t skip) HVD_REQUIRES(mutex_);
  void renew_key() HVD_REQUIRES(mutex_);
  Status greet() HVD_REQUIRES(mutex_);

  const Functions& f_;
  UniqueFd socket_;
  const std::string peer_;
  const Key key_;
  const TlsOptions options_;
  mutable Mutex mutex_;
  openssl::Ssl* ssl_ = nullptr;
  Status failure_ HVD_GUARDED_BY(mutex_);
  // A record that OpenSSL could not write yet must be offered again unchanged, so it is kept here.
  std::array<char, kRecordBytes> staged_ HVD_GUARDED_BY(mutex_);
  size_t staged_bytes_ HVD_GUARDED_BY(mutex_) = 0;
  // Bytes that are written but were offered no more when they were: the next offer starts with
  // them.
  size_t ahead_ HVD_GUARDED_BY(mutex_) = 0;
  bool is_open_ HVD_GUARDED_BY(mutex_) = false;  // TLS's own first messages are through
  bool is_dry_ HVD_GUARDED_BY(mutex_) = false;   // what is here is no whole record
  uint64_t records_ HVD_GUARDED_BY(mutex_) = 0;  // under the key that is in use
  int number_ = -1;                              // of the socket, for the BIO
};

int bio_write(openssl::Bio* bio, const char* bytes, int count);
int bio_read(openssl::Bio* bio, char* bytes, int count);

// One for the process: settings that all streams share. Never freed, like the library.
struct Shared {
  const Functions* f = nullptr;
  openssl::Context* context = nullptr;
  openssl::BioMethod* method = nullptr;
  Status status{};
};

int use_session(openssl::Ssl* ssl, const void*, const unsigned char** identity, size_t* bytes,
                openssl::Session** out);
int find_session(openssl::Ssl* ssl, const unsigned char* identity, size_t bytes,
                 openssl::Session** out);

Shared make_shared_part() {
  Shared out;
  const auto functions = openssl::load();
  if (!functions) return Shared{.status = functions.status()};
  const Functions& f = **functions;
  out.f = &f;
  out.context = f.SSL_CTX_new(f.TLS_method());
  out.method = f.BIO_meth_new(kBioType, "horovod socket");
  if (out.context == nullptr || out.method == nullptr) {
    return Shared{.status = Status(StatusCode::kOutOfMemory, "HOROVOD_TLS: no memory")};
  }
  f.SSL_CTX_ctrl(out.context, kSetMinVersion, kTls13, nullptr);
  f.SSL_CTX_ctrl(out.context, kSetMaxVersion, kTls13, nullptr);
  f.SSL_CTX_ctrl(out.context, kControlMode, kPartialWrites | kMovingBuffers, nullptr);
  f.SSL_CTX_ctrl(out.context, kSetReadAhead, 1, nullptr);
  f.SSL_CTX_set_default_read_buffer_len(out.context, kReadBufferBytes);
  f.SSL_CTX_set_num_tickets(out.context, 0);  // nothing is ever resumed
  f.SSL_CTX_set_psk_use_session_callback(out.context, use_session);
  f.SSL_CTX_set_psk_find_session_callback(out.context, find_session);
  f.BIO_meth_set_write(out.method, bio_write);
  f.BIO_meth_set_read(out.method, bio_read);
  f.BIO_meth_set_ctrl(out.method, [](openssl::Bio*, int command, long, void*) -> long {
    return command == kBioFlush ? 1 : 0;
  });
  if (f.SSL_CTX_set_ciphersuites(out.context, kSuiteName) != 1) {
    return Shared{.status = precondition_error(concat("HOROVOD_TLS: OpenSSL has no ", kSuiteName))};
  }
  return out;
}

const Shared& shared_part() {
  static const Shared shared = make_shared_part();
  return shared;
}

// Our own BIO, because OpenSSL's would raise SIGPIPE.
int socket_result(openssl::Bio* bio, ssize_t result, int direction) {
  const Functions& f = *shared_part().f;
  f.BIO_clear_flags(bio, kBioRead | kBioWrite | kBioRetry);
  if (result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    f.BIO_set_flags(bio, direction | kBioRetry);
  }
  return static_cast<int>(result);
}

int socket_of(openssl::Bio* bio) {
  return *static_cast<const int*>(shared_part().f->BIO_get_data(bio));
}

int bio_write(openssl::Bio* bio, const char* bytes, int count) {
  return socket_result(
      bio, ::send(socket_of(bio), bytes, static_cast<size_t>(count), MSG_NOSIGNAL | MSG_DONTWAIT),
      kBioWrite);
}

int bio_read(openssl::Bio* bio, char* bytes, int count) {
  return socket_result(bio, ::recv(socket_of(bio), bytes, static_cast<size_t>(count), MSG_DONTWAIT),
                       kBioRead);
}

int use_session(openssl::Ssl* ssl, const void*, const unsigned char** identity, size_t* bytes,
                openssl::Session** out) {
  *out = stream_of(*shared_part().f, ssl)->make_session(ssl);
  *identity = kIdentity;
  *bytes = sizeof kIdentity - 1;
  return *out != nullptr ? 1 : 0;
}

int find_session(openssl::Ssl* ssl, const unsigned char* identity, size_t bytes,
                 openssl::Session** out) {
  const bool known = bytes == sizeof kIdentity - 1 && std::memcmp(identity, kIdentity, bytes) == 0;
  *out = known ? stream_of(*shared_part().f, ssl)->make_session(ssl) : nullptr;
  return 1;
}

openssl::Session* TlsStream::make_session(openssl::Ssl* ssl) const {
  openssl::Session* session = f_.SSL_SESSION_new();
  if (session == nullptr) return nullptr;
  const void* cipher = f_.SSL_CIPHER_find(ssl, kAes128GcmSha256);
  if (cipher != nullptr &&
      f_.SSL_SESSION_set1_master_key(session, key_.bytes().data(), key_.bytes().size()) == 1 &&
      f_.SSL_SESSION_set_cipher(session, cipher) == 1 &&
      f_.SSL_SESSION_set_protocol_version(session, static_cast<int>(kTls13)) == 1) {
    return session;
  }
  f_.SSL_SESSION_free(session);
  return nullptr;
}

Status TlsStream::open(openssl::Context* context, const openssl::BioMethod* method, TlsRole role) {
  const MutexLock lock(mutex_);
  ssl_ = f_.SSL_new(context);
  openssl::Bio* bio = ssl_ == nullptr ? nullptr : f_.BIO_new(method);
  if (bio == nullptr) return Status(StatusCode::kOutOfMemory, "TLS: no memory for a connection");
  number_ = socket_.get();
  f_.BIO_set_data(bio, &number_);
  f_.BIO_set_init(bio, 1);
  f_.SSL_set_bio(ssl_, bio, bio);
  f_.SSL_set_ex_data(ssl_, 0, this);
  if (role == TlsRole::kServer) {
    f_.SSL_set_accept_state(ssl_);
    return Status::ok();
  }
  // No certificate is ever right: a server that does not know the key gets no connection.
  f_.SSL_set_verify(ssl_, kVerifyPeer, nullptr);
  // The other end waits for the first message, and this one may well wait for the other before it
  // sends.
  f_.SSL_set_connect_state(ssl_);
  return greet();
}

// OK, but is_open_ is false: the other end has not answered yet.
Status TlsStream::greet() {
  if (is_open_) return Status::ok();
  f_.ERR_clear_error();
  errno = 0;
  const int result = f_.SSL_do_handshake(ssl_);
  is_open_ = result == 1;
  return outcome(result);
}

Status TlsStream::outcome(int result) {
  if (result == 1) return Status::ok();
  const int system_error = errno;
  const int error = f_.SSL_get_error(ssl_, result);
  if (error == kWantRead || error == kWantWrite) return Status::ok();
  std::string why = "the connection was closed";
  StatusCode kind = StatusCode::kPeerLost;
  const unsigned long code = error == kZeroReturn ? 0 : f_.ERR_get_error();
  if (code != 0 && (code & kReasonMask) != kUnexpectedEnd) {
    char text[256];
    f_.ERR_error_string_n(code, text, sizeof text);
    why = concat("TLS: ", std::string_view(text));
    // Between ends that have proven themselves only somebody on the way can have written it.
    if (error == kErrorSsl && is_open_) {
      kind = StatusCode::kCorrupted;
      why += ": bytes were changed on the way";
    }
  } else if (code == 0 && error != kZeroReturn && system_error != 0) {
    why = std::strerror(system_error);
  }
  return failure_ = Status(kind, concat(peer_, ": ", why));
}

// Only between records: one that OpenSSL keeps was made with the old key.
void TlsStream::renew_key() {
  if (records_ < options_.records_per_key) return;
  f_.ERR_clear_error();
  if (f_.SSL_key_update(ssl_, kUpdateOwnKey) == 1) records_ = 0;
}

// Copies what follows the first `skip` bytes of `parts`.
size_t TlsStream::stage(std::span<const iovec> parts, size_t skip) {
  size_t done = 0;
  for (const iovec& part : parts) {
    const size_t from = std::min(skip, part.iov_len);
    skip -= from;
    const size_t take = std::min(part.iov_len - from, staged_.size() - done);
    if (take > 0)
      std::memcpy(staged_.data() + done, static_cast<char*>(part.iov_base) + from, take);
    done += take;
  }
  return done;
}

// A record that was staged and refused is bytes that the caller still thinks it has to send, and
// offers again first thing; once it is through, that many bytes of the offer are done.
Result<size_t> TlsStream::send(std::span<const iovec> parts) {
  const MutexLock lock(mutex_);
  if (!failure_) return failure_;
  HVD_TRY(greet());
  if (!is_open_) return size_t{0};
  size_t offered = 0, done = 0;
  for (const iovec& part : parts) offered += part.iov_len;
  while (done < offered) {
    if (ahead_ > 0) {
      const size_t known = std::min(ahead_, offered - done);
      ahead_ -= known;
      done += known;
      continue;
    }
    if (staged_bytes_ == 0) {
      renew_key();
      staged_bytes_ = stage(parts, done);
    }
    size_t written = 0;
    f_.ERR_clear_error();
    errno = 0;
    const int result = f_.SSL_write_ex(ssl_, staged_.data(), staged_bytes_, &written);
    if (result != 1) {
      const Status status = outcome(result);
      if (!status && done == 0) return status;
      return done;
    }
    // All of it: a record is either written or kept whole.
    ++records_;
    ahead_ = written;
    std::memmove(staged_.data(), staged_.data() + written, staged_bytes_ - written);
    staged_bytes_ -= written;
  }
  return done;
}

Result<size_t> TlsStream::receive(std::span<const iovec> parts) {
  const MutexLock lock(mutex_);
  if (!failure_) return failure_;
  HVD_TRY(greet());
  if (!is_open_) return size_t{0};
  size_t done = 0;
  for (const iovec& part : parts) {
    for (size_t filled = 0; filled < part.iov_len;) {
      size_t got = 0;
      f_.ERR_clear_error();
      errno = 0;
      const int result = f_.SSL_read_ex(ssl_, static_cast<char*>(part.iov_base) + filled,
                                        part.iov_len - filled, &got);
      is_dry_ = result != 1;
      if (result != 1) {
        const Status status = outcome(result);
        if (!status && done == 0) return status;
        return done;
      }
      filled += got;
      done += got;
      // Asking for more than is here would only cost time; the caller comes again.
      if (f_.SSL_has_pending(ssl_) == 0) return done;
    }
  }
  return done;
}

}  // namespace

Status load_tls() { return shared_part().status; }

Result<std::unique_ptr<Stream>> make_tls_stream(UniqueFd socket, std::string peer,
                                                const Key& session_key, TlsRole role,
                                                const TlsOptions& options) {
  const Shared& shared = shared_part();
  HVD_TRY(shared.status);
  auto stream = std::make_unique<TlsStream>(*shared.f, std::move(socket), std::move(peer),
                                            session_key, options);
  HVD_TRY(stream->open(shared.context, shared.method, role));
  return std::unique_ptr<Stream>(std::move(stream));
}

}  // namespace hvd::net
