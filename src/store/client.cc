#include "store/client.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "base/parse.h"
#include "base/text.h"
#include "net/dialler.h"
#include "net/sealed_stream.h"
#include "net/tcp_stream.h"
#include "store/protocol.h"

namespace hvd::store {
namespace {

// False: the deadline passed.
bool wait_for(int fd, short events, Deadline deadline) {
  for (;;) {
    pollfd item{fd, events, 0};
    const auto left = deadline.remaining(std::chrono::hours(1));
    const timespec span{static_cast<time_t>(left.count() / 1'000'000'000),
                        static_cast<long>(left.count() % 1'000'000'000)};
    const int rc = ppoll(&item, 1, &span, nullptr);
    if (rc > 0) return true;
    if (rc == 0 && deadline.passed()) return false;
  }
}

// Rank 0 may run the store and be the last to come; then all others wait for their next try.
constexpr net::DialOptions kDialOptions{.retry_at_most = std::chrono::milliseconds(20)};

// Connections that may break in one request. A store that is replaced breaks one; more are somebody
// on the way, whose changes make the store drop us.
constexpr int kMostBroken = 16;

Status out_of_time() { return Status(StatusCode::kTimedOut, "no answer in time"); }

}  // namespace

Client::Client(std::vector<net::Address> servers, const net::Key& key, const ClientOptions& options)
    : servers_(std::move(servers)), key_(key), options_(options) {}

Status Client::set(std::string_view key, std::string_view value, Deadline deadline) {
  if (key.size() > kMostKeyBytes || value.size() > kMostValueBytes) {
    return invalid_argument(concat("store: '", key.substr(0, 64), "' is too large: ", key.size(),
                                   " and ", value.size(), " bytes"));
  }
  auto answer = request(request_of(Kind::kSet, key, value), deadline);
  if (!answer) return blame(concat("store: setting '", key, "'"), answer.status());
  switch (static_cast<Outcome>(answer->at(0))) {
    case Outcome::kOk:
      return Status::ok();
    case Outcome::kOtherValue:
      return precondition_error(concat("store: '", key, "' has another value already"));
    case Outcome::kNoRoom:
      return Status(StatusCode::kOutOfMemory, concat("store: no room for '", key, "'"));
    case Outcome::kBadRequest:
      break;
  }
  return corrupted(concat("store: setting '", key, "': ", std::string_view(*answer).substr(1)));
}

Result<std::string> Client::get(std::string_view key, Deadline deadline) {
  auto answer = request(request_of(Kind::kGet, key), deadline);
  if (!answer) return blame(concat("store: getting '", key, "'"), answer.status());
  if (static_cast<Outcome>(answer->at(0)) != Outcome::kOk) {
    return corrupted(concat("store: getting '", key, "': ", std::string_view(*answer).substr(1)));
  }
  answer->erase(0, 1);
  return answer;
}

Result<std::string> Client::request(std::string_view frame, Deadline deadline) {
  for (int broken = 0;;) {
    if (stream_ == nullptr) HVD_TRY(connect(deadline));
    Status status = send(frame, deadline);
    if (status) {
      auto answer = receive(deadline);
      if (answer) return answer;
      status = answer.status();
    }
    // Whatever went wrong, the rest of this exchange must not be taken for the next one's.
    stream_.reset();
    if (status.code() != StatusCode::kPeerLost) return status;
    if (++broken == kMostBroken) {
      return Status(StatusCode::kPeerLost,
                    concat(status.message(), ", for the ", broken,
                           "th time before an answer came; does something between this host and "
                           "that one change what is sent?"));
    }
  }
}

Status Client::connect(Deadline deadline) {
  HVD_TRY(refusal_);
  const net::Hello hello{.epoch = options_.epoch, .rank = options_.rank, .purpose = kStorePurpose};
  auto connected = net::dial("the rendezvous store", servers_, key_, hello, deadline, kDialOptions);
  if (connected.status().code() == StatusCode::kPreconditionError) refusal_ = connected.status();
  HVD_TRY(connected.status());
  HVD_TRY(net::prepare_tcp_socket((*connected)->socket.get(), {}));
  stream_ = net::make_sealed_stream(
      std::move((*connected)->socket),
      concat("the rendezvous store at ", net::to_text((*connected)->address)),
      (*connected)->session_key, net::SealRole::kDialler);
  return Status::ok();
}

Status Client::send(std::string_view frame, Deadline deadline) {
  while (!frame.empty()) {
    if (!wait_for(stream_->descriptor(), POLLOUT, deadline)) return out_of_time();
    const iovec part{const_cast<char*>(frame.data()), frame.size()};
    HVD_TRY_ASSIGN(const size_t sent, stream_->send({&part, 1}));
    frame.remove_prefix(sent);
  }
  return Status::ok();
}

Result<std::string> Client::receive(Deadline deadline) {
  HVD_TRY_ASSIGN(const std::string head, receive_bytes(sizeof(uint32_t), deadline));
  const auto length = net::Unpacker(head).get<uint32_t>();
  if (length < 1 || length > kMostFrameBytes) {
    return corrupted(concat("an answer of ", length, " bytes, expected 1 to ", kMostFrameBytes));
  }
  return receive_bytes(length, deadline);
}

Result<std::string> Client::receive_bytes(size_t count, Deadline deadline) {
  std::string out(count, '\0');
  for (size_t done = 0; done < count;) {
    const iovec part{out.data() + done, count - done};
    HVD_TRY_ASSIGN(const size_t got, stream_->receive({&part, 1}));
    done += got;
    if (got == 0 && !wait_for(stream_->descriptor(), POLLIN, deadline)) return out_of_time();
  }
  return out;
}

}  // namespace hvd::store
