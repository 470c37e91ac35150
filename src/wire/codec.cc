#include "wire/codec.h"

#include <bit>
#include <concepts>
#include <string_view>

#include "base/text.h"
#include "wire/limits.h"

// Layout, all little endian:
//   u8 version, u8 kind, u8 reduce op, i32 wire dtype, i32 root rank, i32 device,
//   u64 prescale bits, u64 postscale bits,
//   u32 count + i32 ranks, u32 count + tensors
//   tensor: u32 length + name, u8 dtype, u32 count + i64 dimensions, u32 count + i32 splits
// Every value has exactly one encoding, so equal requests are equal byte strings.

namespace hvd::wire {
namespace {

constexpr uint8_t kVersion = 1;
constexpr size_t kCountBytes = sizeof(uint32_t);
constexpr size_t kHeaderBytes = 3 * sizeof(uint8_t) + 3 * sizeof(int32_t) + 2 * sizeof(uint64_t);
constexpr size_t kLeastTensorBytes = 3 * kCountBytes + sizeof(uint8_t);

class Writer {
 public:
  explicit Writer(size_t bytes) : out_(bytes) {}

  template <std::unsigned_integral T>
  void put(T value) {
    std::byte* to = out_.data() + at_;
    for (size_t i = 0; i < sizeof(T); ++i) to[i] = static_cast<std::byte>(value >> (8 * i));
    at_ += sizeof(T);
  }
  void put_int(int32_t value) { put(static_cast<uint32_t>(value)); }
  void put_count(size_t count) { put(static_cast<uint32_t>(count)); }
  void put_double(double value) { put(std::bit_cast<uint64_t>(value)); }
  void put_text(std::string_view text) {
    put_count(text.size());
    for (char c : text) put(static_cast<uint8_t>(c));
  }
  void put_ints(const std::vector<int32_t>& values) {
    put_count(values.size());
    for (int32_t value : values) put_int(value);
  }

  std::vector<std::byte> finish() && {
    HVD_ASSERT(at_ == out_.size(), "encoded_bytes counts what encode writes");
    return std::move(out_);
  }

 private:
  std::vector<std::byte> out_;
  size_t at_ = 0;
};

// Remembers the first failure; from then on every read gives zero or nothing, so that decoding
// needs no branch per field and still ends at once.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> message) : message_(message) {}

  bool is_ok() const { return failure_.is_ok(); }
  const Status& status() const { return failure_; }
  size_t offset() const { return at_; }
  size_t remaining() const { return message_.size() - at_; }
  void enter_tensor(size_t index) { tensor_ = static_cast<int64_t>(index); }
  void leave_tensors() { tensor_ = -1; }

  template <std::unsigned_integral T>
  T take(std::string_view field) {
    if (!has(field, sizeof(T))) return 0;
    const std::byte* from = message_.data() + at_;
    T value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) {
      value = static_cast<T>(value | static_cast<T>(static_cast<T>(from[i]) << (8 * i)));
    }
    at_ += sizeof(T);
    return value;
  }
  int32_t take_int(std::string_view field) { return static_cast<int32_t>(take<uint32_t>(field)); }
  double take_double(std::string_view field) {
    return std::bit_cast<double>(take<uint64_t>(field));
  }

  // A code below `end`.
  uint8_t take_code(std::string_view field, int end) {
    const size_t start = at_;
    const uint8_t code = take<uint8_t>(field);
    if (code < end) return code;
    refuse(field, start, concat("a code below ", end), code);
    return 0;
  }

  // How many items follow: within `limit`, and no more than the rest of the message can hold.
  size_t take_count(std::string_view field, size_t limit, size_t item_bytes) {
    const size_t start = at_;
    const size_t count = take<uint32_t>(field);
    if (count > limit) {
      refuse(field, start, concat("a count of at most ", limit), count);
    } else if (count > remaining() / item_bytes) {
      refuse(field, start,
             concat("at most ", remaining() / item_bytes, " items in the remaining ", remaining(),
                    " bytes"),
             count);
    }
    return is_ok() ? count : 0;
  }

  std::string take_text(std::string_view field, size_t limit) {
    const size_t length = take_count(field, limit, 1);
    const char* from = reinterpret_cast<const char*>(message_.data() + at_);
    at_ += length;
    return length == 0 ? std::string() : std::string(from, length);
  }
  std::vector<int32_t> take_ints(std::string_view field, size_t limit) {
    std::vector<int32_t> values(take_count(field, limit, sizeof(int32_t)));
    for (int32_t& value : values) value = take_int(field);
    return values;
  }

  template <typename Got>
  void refuse(std::string_view field, size_t offset, std::string_view expected, Got got) {
    if (!is_ok()) return;
    const std::string tensor = tensor_ < 0 ? std::string() : concat("tensor ", tensor_, ' ');
    failure_ = corrupted(concat("request message: ", tensor, field, " at byte ", offset,
                                ": expected ", expected, ", got ", got));
    at_ = message_.size();
  }

 private:
  bool has(std::string_view field, size_t bytes) {
    if (remaining() >= bytes) return true;
    refuse(field, at_, concat(bytes, " more bytes"), remaining());
    return false;
  }

  std::span<const std::byte> message_;
  size_t at_ = 0;
  int64_t tensor_ = -1;
  Status failure_;
};

void put_tensor(Writer& writer, const TensorSpec& tensor) {
  writer.put_text(tensor.name);
  writer.put(static_cast<uint8_t>(tensor.dtype));
  writer.put_count(tensor.shape.size());
  for (int64_t dimension : tensor.shape) writer.put(static_cast<uint64_t>(dimension));
  writer.put_ints(tensor.splits);
}

void take_tensor(Reader& reader, TensorSpec& tensor) {
  tensor.name = reader.take_text("name", kMaxNameBytes);
  tensor.dtype = static_cast<DType>(reader.take_code("dtype", kDTypeCount));
  tensor.shape.resize(reader.take_count("dimensions", kMaxDimensions, sizeof(int64_t)));
  for (int64_t& dimension : tensor.shape) {
    dimension = static_cast<int64_t>(reader.take<uint64_t>("dimension"));
  }
  tensor.splits = reader.take_ints("splits", kMaxRanks);
}

int32_t take_wire_dtype(Reader& reader) {
  const size_t start = reader.offset();
  const int32_t code = reader.take_int("wire dtype");
  if (code >= -1 && code < kDTypeCount) return code;
  reader.refuse("wire dtype", start, concat("-1 or a code below ", kDTypeCount), code);
  return -1;
}

void take_version(Reader& reader) {
  const uint8_t version = reader.take<uint8_t>("version");
  if (version != kVersion) reader.refuse("version", 0, concat(kVersion), version);
}

void take_tensors(Reader& reader, std::vector<TensorSpec>& tensors) {
  tensors.resize(reader.take_count("tensors", kMaxTensorsPerRequest, kLeastTensorBytes));
  for (size_t i = 0; i < tensors.size() && reader.is_ok(); ++i) {
    reader.enter_tensor(i);
    take_tensor(reader, tensors[i]);
  }
  reader.leave_tensors();
}

}  // namespace

size_t encoded_bytes(const Request& request) {
  size_t bytes = kHeaderBytes + 2 * kCountBytes + request.ranks.size() * sizeof(int32_t);
  for (const TensorSpec& tensor : request.tensors) {
    bytes += kLeastTensorBytes + tensor.name.size() + tensor.shape.size() * sizeof(int64_t) +
             tensor.splits.size() * sizeof(int32_t);
  }
  return bytes;
}

std::vector<std::byte> encode(const Request& request) {
  Writer writer(encoded_bytes(request));
  writer.put(kVersion);
  writer.put(static_cast<uint8_t>(request.kind));
  writer.put(static_cast<uint8_t>(request.reduce_op));
  writer.put_int(request.wire_dtype);
  writer.put_int(request.root_rank);
  writer.put_int(request.device);
  writer.put_double(request.prescale);
  writer.put_double(request.postscale);
  writer.put_ints(request.ranks);
  writer.put_count(request.tensors.size());
  for (const TensorSpec& tensor : request.tensors) put_tensor(writer, tensor);
  return std::move(writer).finish();
}

Result<Request> decode(std::span<const std::byte> message) {
  Reader reader(message);
  if (message.size() > kMaxMessageBytes) {
    reader.refuse("length", 0, concat("at most ", kMaxMessageBytes, " bytes"), message.size());
  }
  Request request;
  take_version(reader);
  request.kind = static_cast<Kind>(reader.take_code("kind", kKindCount));
  request.reduce_op = static_cast<ReduceOp>(reader.take_code("reduce op", kReduceOpCount));
  request.wire_dtype = take_wire_dtype(reader);
  request.root_rank = reader.take_int("root rank");
  request.device = reader.take_int("device");
  request.prescale = reader.take_double("prescale");
  request.postscale = reader.take_double("postscale");
  request.ranks = reader.take_ints("ranks", kMaxRanks);
  take_tensors(reader, request.tensors);
  if (reader.is_ok() && reader.remaining() > 0) {
    reader.refuse("end", reader.offset(), "no more bytes", reader.remaining());
  }
  if (!reader.is_ok()) return reader.status();
  return request;
}

}  // namespace hvd::wire
