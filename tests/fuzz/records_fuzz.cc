// What is read behind the handshake of the rendezvous: records of a sealed stream as somebody on
// the way may write them, requests to a store and its answers by a peer of another version, and
// values that others left in a store. Every input ends in a value that was really sent, or in an
// error.
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/fd.h"
#include "bootstrap/roster.h"
#include "bootstrap/sealed_store.h"
#include "net/acceptor.h"
#include "net/dialler.h"
#include "net/sealed_stream.h"
#include "store/client.h"
#include "store/protocol.h"
#include "store/server_thread.h"

namespace {

using namespace hvd;

void require(bool condition) {
  if (!condition) std::abort();
}

const net::Key& key() {
  static const net::Key one(std::array<uint8_t, net::kKeyBytes>{42});
  return one;
}
Deadline patience() { return Deadline::after(std::chrono::seconds(5)); }
net::Address loopback() { return *net::parse_host("127.0.0.1", 0); }

// Nobody who lacks the key can write a record.
void read_records(std::string_view bytes) {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0) return;
  UniqueFd attacker(fds[0]);
  const auto stream =
      net::make_sealed_stream(UniqueFd(fds[1]), "rank 1", key(), net::SealRole::kAcceptor);
  (void)!send(attacker.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  attacker.reset();
  char out[100];
  const iovec part{out, sizeof out};
  for (;;) {
    const auto got = stream->receive({&part, 1});
    if (!got) break;
    require(*got == 0 && !stream->has_buffered());
  }
}

void send_all(net::Stream& stream, std::string_view bytes) {
  while (!bytes.empty()) {
    const iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    const auto sent = stream.send({&part, 1});
    if (!sent) return;
    bytes.remove_prefix(*sent);
    pollfd room{stream.descriptor(), POLLOUT, 0};
    if (!bytes.empty() && poll(&room, 1, 1000) != 1) return;
  }
}

// Requests that a client with the key may send: the server answers or drops it, and goes on.
void ask(std::string_view bytes) {
  static const auto server =
      *store::ServerThread::start(*store::Server::listen({loopback()}, key()));
  {
    const auto connected = net::dial("the store", server->addresses(), key(),
                                     {.purpose = store::kStorePurpose}, patience());
    if (!connected) return;
    const auto stream = net::make_sealed_stream(std::move((*connected)->socket), "the store",
                                                (*connected)->session_key, net::SealRole::kDialler);
    send_all(*stream, bytes);
  }
  store::Client client(server->addresses(), key(), {.epoch = 1});
  require(client.set("alive", "yes", patience()).is_ok());
  require(*client.get("alive", patience()) == "yes");
}

// A server that answers everything with the same bytes.
class FalseServer {
 public:
  static FalseServer& get() {
    static FalseServer one;
    return one;
  }
  void set_answer(std::string_view bytes) {
    const std::lock_guard lock(mutex_);
    answer_ = bytes;
  }
  std::vector<net::Address> addresses() const { return acceptor_->addresses(); }

 private:
  FalseServer() {
    const net::Address where = loopback();
    acceptor_ = *net::Acceptor::create(*net::Listener::listen({&where, 1}), key(), {},
                                       [](const net::Hello&) { return net::Verdict::kWelcome; });
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        pollfd item{acceptor_->descriptor(), POLLIN, 0};
        poll(&item, 1, 100);
        for (net::Accepted& one : acceptor_->poll()) {
          const auto stream = net::make_sealed_stream(std::move(one.socket), "client",
                                                      one.session_key, net::SealRole::kAcceptor);
          send_all(*stream, answer());
        }
      }
    });
  }
  std::string answer() {
    const std::lock_guard lock(mutex_);
    return answer_;
  }

  std::mutex mutex_;
  std::string answer_;
  std::unique_ptr<net::Acceptor> acceptor_;
  std::jthread thread_;
};

void hear(std::string_view bytes) {
  FalseServer& server = FalseServer::get();
  server.set_answer(bytes);
  store::Client client(server.addresses(), key(), {});
  const auto value = client.get("key", Deadline::after(std::chrono::milliseconds(200)));
  if (value) require(bytes.find(*value) != std::string_view::npos);
}

void read_sealed(std::string_view bytes) {
  require(!bootstrap::unseal_value(key(), "name", bytes).is_ok());
  const auto mine =
      bootstrap::unseal_value(key(), "name", bootstrap::seal_value(key(), "name", {1}, bytes));
  require(mine.is_ok() && *mine == bytes);
  const auto member = bootstrap::decode_member(bytes);
  if (member) require(*bootstrap::decode_member(bootstrap::encode_member(*member)) == *member);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  constexpr void (*kTargets[])(std::string_view) = {read_records, ask, hear, read_sealed};
  kTargets[data[0] % std::size(kTargets)](bytes);
  return 0;
}
