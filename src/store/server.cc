#include "store/server.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <optional>
#include <utility>

#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "net/acceptor.h"
#include "net/packing.h"
#include "net/sealed_stream.h"
#include "net/tcp_stream.h"

namespace hvd::store {
namespace {

constexpr size_t kReadBytes = 64 << 10;

struct ClientLink {
  std::unique_ptr<net::Stream> stream;
  net::Hello hello;
  std::string in{}, out{};
  std::optional<std::string> awaited{};  // key it waits for
  bool watches_writing = false;
};

enum class Next { kKeep, kDrop };

}  // namespace

class Server::State {
 public:
  explicit State(const ServerLimits& limits) : limits_(limits), table_(limits.table) {}

  Status open(std::span<const net::Address> bind, const net::Key& key);
  void poll();
  Outcome set(uint64_t epoch, std::string_view key, std::string_view value);

  const net::Acceptor& acceptor() const { return *acceptor_; }
  int descriptor() const { return epoll_.get(); }
  Table& table() { return table_; }

 private:
  void admit(net::Accepted accepted);
  Next serve(ClientLink& client);
  Next read(ClientLink& client);
  Next read_requests(ClientLink& client);
  static Next dismiss(const ClientLink& client, const Status& why);
  Next obey(ClientLink& client, std::string_view body);
  Next write(ClientLink& client);
  void watch(ClientLink& client, int operation);

  ServerLimits limits_;
  Table table_;
  uint64_t newest_epoch_ = 0;
  UniqueFd epoll_;
  std::unique_ptr<net::Acceptor> acceptor_;
  std::list<ClientLink> clients_;
};

Status Server::State::open(std::span<const net::Address> bind, const net::Key& key) {
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.valid()) return errno_status("store: epoll", errno);
  HVD_TRY_ASSIGN(net::Listener listener, net::Listener::listen(bind));
  const auto judge = [this](const net::Hello& hello) {
    if (hello.purpose != kStorePurpose) return net::Verdict::kUnexpected;
    return clients_.size() < limits_.clients ? net::Verdict::kWelcome : net::Verdict::kTooMany;
  };
  HVD_TRY_ASSIGN(acceptor_, net::Acceptor::create(std::move(listener), key, {}, judge));
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, acceptor_->descriptor(), &event) != 0) {
    return errno_status("store: epoll", errno);
  }
  return Status::ok();
}

void Server::State::poll() {
  for (net::Accepted& accepted : acceptor_->poll()) admit(std::move(accepted));
  epoll_event events[64];
  const int count = epoll_wait(epoll_.get(), events, 64, 0);
  for (int i = 0; i < count; ++i) {
    auto* client = static_cast<ClientLink*>(events[i].data.ptr);
    if (client == nullptr || serve(*client) == Next::kKeep) continue;
    clients_.remove_if([client](const ClientLink& one) { return &one == client; });
  }
}

void Server::State::admit(net::Accepted accepted) {
  if (clients_.size() >= limits_.clients) return;
  // Best effort: without it a client that vanishes only stays longer.
  (void)net::prepare_tcp_socket(accepted.socket.get(), {}).is_ok();
  auto stream = net::make_sealed_stream(std::move(accepted.socket), net::to_text(accepted.from),
                                        accepted.session_key, net::SealRole::kAcceptor);
  clients_.push_back({.stream = std::move(stream), .hello = accepted.hello});
  watch(clients_.back(), EPOLL_CTL_ADD);
}

void Server::State::watch(ClientLink& client, int operation) {
  client.watches_writing = !client.out.empty();
  // While an answer is under way no request is read, so a client cannot make us buffer.
  epoll_event event{.events = client.watches_writing ? EPOLLOUT : EPOLLIN,
                    .data = {.ptr = &client}};
  (void)!epoll_ctl(epoll_.get(), operation, client.stream->descriptor(), &event);
}

Next Server::State::serve(ClientLink& client) {
  if (!client.out.empty() && write(client) == Next::kDrop) return Next::kDrop;
  return client.out.empty() ? read(client) : Next::kKeep;
}

Next Server::State::read(ClientLink& client) {
  do {
    const size_t before = client.in.size();
    client.in.resize(before + kReadBytes);
    const iovec part{client.in.data() + before, kReadBytes};
    const auto got = client.stream->receive({&part, 1});
    client.in.resize(before + (got.is_ok() ? *got : 0));
    if (!got) return dismiss(client, got.status());
    if (read_requests(client) == Next::kDrop) return Next::kDrop;
    // What the stream has taken from the socket already wakes nobody.
  } while (client.out.empty() && client.stream->has_buffered());
  return Next::kKeep;
}

// A client that goes is nothing new; one whose bytes were changed on the way is.
Next Server::State::dismiss(const ClientLink& client, const Status& why) {
  if (why.code() == StatusCode::kCorrupted) {
    HVD_LOG(kWarning, "store: dropped rank ", client.hello.rank, ": ", why.message());
  }
  return Next::kDrop;
}

Next Server::State::read_requests(ClientLink& client) {
  // A client sends one request and waits for its answer.
  if (client.awaited && !client.in.empty()) return Next::kDrop;
  net::Unpacker in(client.in);
  const auto length = in.get<uint32_t>();
  if (!in.is_good()) return Next::kKeep;
  if (length > kMostFrameBytes) return Next::kDrop;
  if (client.in.size() < sizeof length + length) return Next::kKeep;
  const std::string body = client.in.substr(sizeof length, length);
  client.in.erase(0, sizeof length + length);
  if (!client.in.empty()) return Next::kDrop;
  client.in.shrink_to_fit();
  return obey(client, body);
}

Next Server::State::obey(ClientLink& client, std::string_view body) {
  net::Unpacker in(body);
  const auto kind = static_cast<Kind>(in.get<uint8_t>());
  const std::string_view key = in.get_text();
  const bool is_known = kind == Kind::kSet || (kind == Kind::kGet && in.is_complete());
  if (!in.is_good() || key.size() > kMostKeyBytes || !is_known) {
    client.out = answer_of(Outcome::kBadRequest, "the request makes no sense");
  } else if (kind == Kind::kSet) {
    client.out = answer_of(set(client.hello.epoch, key, in.rest()));
  } else if (const std::string* value = table_.find(client.hello.epoch, key)) {
    client.out = answer_of(Outcome::kOk, *value);
  } else {
    client.awaited = key;
    return Next::kKeep;
  }
  return write(client);
}

Outcome Server::State::set(uint64_t epoch, std::string_view key, std::string_view value) {
  // Whoever is in an epoch has seen everybody in the one before; nobody reads older ones.
  if (epoch > newest_epoch_) {
    newest_epoch_ = epoch;
    table_.forget_before(epoch - 1);
  }
  const Outcome outcome = table_.set(epoch, key, value);
  if (outcome != Outcome::kOk) return outcome;
  for (ClientLink& client : clients_) {
    if (client.hello.epoch != epoch || client.awaited != key) continue;
    client.awaited.reset();
    client.out = answer_of(Outcome::kOk, value);
    // A failure shows again when its descriptor is looked at; dropping here would pull the list
    // from under the caller.
    (void)write(client);
  }
  return outcome;
}

Next Server::State::write(ClientLink& client) {
  size_t done = 0;
  while (done < client.out.size()) {
    const iovec part{client.out.data() + done, client.out.size() - done};
    const auto sent = client.stream->send({&part, 1});
    if (!sent) return Next::kDrop;
    if (*sent == 0) break;
    done += *sent;
  }
  client.out.erase(0, done);
  if (client.watches_writing == client.out.empty()) watch(client, EPOLL_CTL_MOD);
  return Next::kKeep;
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::listen(std::vector<net::Address> bind, const net::Key& key,
                                               const ServerLimits& limits) {
  auto state = std::make_unique<State>(limits);
  HVD_TRY(state->open(bind, key));
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

int Server::descriptor() const { return state_->descriptor(); }
void Server::poll() { state_->poll(); }
const net::Visitors& Server::visitors() const { return state_->acceptor().visitors(); }
std::vector<net::Address> Server::addresses() const { return state_->acceptor().addresses(); }

Outcome Server::set(uint64_t epoch, std::string_view key, std::string_view value) {
  return state_->set(epoch, key, value);
}

const std::string* Server::find(uint64_t epoch, std::string_view key) const {
  return state_->table().find(epoch, key);
}

void Server::forget_epochs_before(uint64_t epoch) { state_->table().forget_before(epoch); }

}  // namespace hvd::store
