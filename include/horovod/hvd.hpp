// hvd.hpp - the C++ face of the Horovod core: typed calls, owner types and exceptions over hvd.h.
// Header only, C++17 or later; link the shared library. Every function may be called from any
// thread. A failure throws horovod::Error with the status and the core's text. Calls without
// "async" block as long as every peer lives. Buffers given to an asynchronous call stay valid until
// it is complete.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#if __has_include(<version>)
#include <version>
#endif
#ifdef __cpp_lib_span
#include <span>
#endif

#include "horovod/hvd.h"

namespace horovod {

// ---- errors and types ----------------------------------------------------------------------

// What every failing call throws; status() is the code of hvd.h, what() says who, what and why.
class Error : public std::runtime_error {
 public:
  Error(hvd_status status, const std::string& text) : std::runtime_error(text), status_(status) {}
  hvd_status status() const noexcept { return status_; }

 private:
  hvd_status status_;
};

// 16-bit floats as the core stores them; bring your own arithmetic.
struct float16 {
  uint16_t bits;
};
struct bfloat16 {
  uint16_t bits;
};

enum class ReduceOp : int32_t {
  kAverage = HVD_OP_AVERAGE,
  kSum = HVD_OP_SUM,
  kAdasum = HVD_OP_ADASUM,
  kMin = HVD_OP_MIN,
  kMax = HVD_OP_MAX,
  kProduct = HVD_OP_PRODUCT
};

inline constexpr std::chrono::nanoseconds kForever{HVD_FOREVER};

namespace detail {

inline void check(hvd_status status) {
  if (status != HVD_OK) throw Error(status, hvd_last_error());
}

// -1: the core has no such type.
template <typename T>
constexpr int dtype_code() {
  if constexpr (std::is_same_v<T, float>) {
    return HVD_FLOAT32;
  } else if constexpr (std::is_same_v<T, double>) {
    return HVD_FLOAT64;
  } else if constexpr (std::is_same_v<T, float16>) {
    return HVD_FLOAT16;
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    return HVD_BFLOAT16;
  } else if constexpr (std::is_same_v<T, bool>) {
    return HVD_BOOL;
  } else if constexpr (std::is_integral_v<T>) {
    if constexpr (sizeof(T) == 1) return std::is_signed_v<T> ? HVD_INT8 : HVD_UINT8;
    if constexpr (sizeof(T) == 2) return std::is_signed_v<T> ? HVD_INT16 : HVD_UINT16;
    if constexpr (sizeof(T) == 4) return std::is_signed_v<T> ? HVD_INT32 : -1;
    if constexpr (sizeof(T) == 8) return std::is_signed_v<T> ? HVD_INT64 : -1;
    return -1;
  } else {
    return -1;
  }
}

}  // namespace detail

template <typename T>
inline constexpr bool is_dtype_v = detail::dtype_code<std::remove_cv_t<T>>() >= 0;

// The core's code of a C++ type: dtype_of_v<float> is HVD_FLOAT32.
template <typename T>
inline constexpr hvd_dtype dtype_of_v = [] {
  static_assert(is_dtype_v<T>, "the core has no element type for this C++ type");
  return static_cast<hvd_dtype>(detail::dtype_code<std::remove_cv_t<T>>());
}();

// ---- life cycle
// ----------------------------------------------------------------------------------

// How a Session starts. The defaults take rank, size and job from the launcher's environment.
struct SessionOptions {
  hvd_topology topology = HVD_TOPOLOGY_INIT;
  std::string job_id;
  std::vector<std::vector<int32_t>> process_sets;  // static sets; they get the ids 1, 2, ...
  bool dynamic_process_sets = false;
  hvd_progress progress = HVD_PROGRESS_DEFAULT;
  hvd_exchange exchange = {};  // a store that the ranks share; see hvd.h
};

// The membership of this process in the job: init when built, shutdown when destroyed. One at a
// time; futures, prepared operations and shared buffers are destroyed before it.
class Session {
 public:
  explicit Session(const SessionOptions& options = SessionOptions()) {
    hvd_init_options raw;
    hvd_init_options_init(&raw);
    raw.topology = options.topology;
    raw.progress = options.progress;
    raw.exchange = options.exchange;
    raw.dynamic_process_sets = options.dynamic_process_sets ? 1 : 0;
    if (!options.job_id.empty()) raw.job_id = options.job_id.c_str();
    std::vector<int32_t> ranks;
    std::vector<int32_t> sizes;
    for (const auto& set : options.process_sets) {
      ranks.insert(ranks.end(), set.begin(), set.end());
      sizes.push_back(static_cast<int32_t>(set.size()));
    }
    raw.process_set_ranks = ranks.data();
    raw.process_set_sizes = sizes.data();
    raw.process_set_count = static_cast<int32_t>(sizes.size());
    detail::check(hvd_init(&raw));
  }
  ~Session() { static_cast<void>(hvd_shutdown()); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int rank() const noexcept { return hvd_rank(); }
  int size() const noexcept { return hvd_size(); }
  int local_rank() const noexcept { return hvd_local_rank(); }
  int local_size() const noexcept { return hvd_local_size(); }
  int cross_rank() const noexcept { return hvd_cross_rank(); }
  int cross_size() const noexcept { return hvd_cross_size(); }
};

// A set of ranks that runs operations of its own. A value: copies name the same set.
class ProcessSet {
 public:
  constexpr ProcessSet() noexcept = default;  // all ranks
  constexpr explicit ProcessSet(int32_t id) noexcept : id_(id) {}

  // Collective over all ranks of the job, members or not, in the same order everywhere.
  static ProcessSet add(const std::vector<int32_t>& ranks) {
    return ProcessSet(
        checked(hvd_process_set_add(ranks.data(), static_cast<int32_t>(ranks.size())), "add"));
  }
  // Collective like add(); not done by the destructor, because all ranks must agree on the moment.
  void remove() { checked(hvd_process_set_remove(id_), "remove"); }

  // Called by the members alone, with the same key and ranks, in any order relative to other calls.
  static ProcessSet meet(const std::string& key, const std::vector<int32_t>& ranks,
                         int64_t timeout_ns = HVD_FOREVER) {
    const int32_t id = hvd_process_set_meet(key.c_str(), ranks.data(),
                                            static_cast<int32_t>(ranks.size()), timeout_ns);
    if (id >= 0) return ProcessSet(id);
    throw Error(id == HVD_PROCESS_SET_ERROR_TIMED_OUT  ? HVD_TIMED_OUT
                : id == HVD_PROCESS_SET_ERROR_FULL     ? HVD_OUT_OF_MEMORY
                : id == HVD_PROCESS_SET_ERROR_SHUTDOWN ? HVD_SHUT_DOWN
                                                       : HVD_INVALID_ARGUMENT,
                hvd_last_error());
  }
  // Of a set that members met in: this rank uses it no more.
  void leave() { detail::check(hvd_process_set_leave(id_)); }

  int32_t id() const noexcept { return id_; }
  int rank() const { return checked(hvd_process_set_rank(id_), "rank"); }
  int size() const { return checked(hvd_process_set_size(id_), "size"); }
  bool included() const { return checked(hvd_process_set_included(id_), "included") == 1; }
  std::vector<int32_t> ranks() const {
    std::vector<int32_t> ranks(static_cast<std::size_t>(size()));
    checked(hvd_process_set_ranks(id_, ranks.data(), static_cast<int32_t>(ranks.size())), "ranks");
    return ranks;
  }

 private:
  static int32_t checked(int32_t value, const char* what) {
    if (value >= 0) return value;
    static const char* const kTexts[] = {
        "not initialized",       "needs dynamic process sets",
        "no such set",           "this rank is no member",
        "the job has shut down", "a set of these ranks exists already"};
    const bool known = value >= HVD_PROCESS_SET_ERROR_EXISTING_SET;
    throw Error(value == HVD_PROCESS_SET_ERROR_SHUTDOWN ? HVD_SHUT_DOWN : HVD_INVALID_ARGUMENT,
                std::string("process set ") + what + ": " +
                    (known ? kTexts[-1 - value] : "refused") + " (" + std::to_string(value) + ")");
  }

  int32_t id_ = 0;
};

// ---- operations
// ----------------------------------------------------------------------------------

// What may differ from the default in one operation; a call ignores what does not apply to it.
struct Options {
  const char* name = nullptr;  // nullptr: matched by order among the unnamed operations of its kind
  ReduceOp op = ReduceOp::kAverage;
  double prescale = 1.0;
  double postscale = 1.0;
  ProcessSet process_set = {};
  int wire_dtype = -1;  // HVD_FLOAT16 or HVD_BFLOAT16: how float32 sums travel
  hvd_progress progress = HVD_PROGRESS_DEFAULT;
};

// What allgather and reducescatter return: `rows` rows one after the other.
template <typename T>
struct Rows {
  std::vector<T> values;
  int64_t rows = 0;
};

// What alltoall returns: rows ordered by sender; splits[i] of them came from rank i of the set.
template <typename T>
struct Exchanged {
  std::vector<T> values;
  std::vector<int32_t> splits;
};

namespace detail {

struct Shape {
  int64_t dims[2];
  int32_t ndim;
};

// Operations on rows see [count / row_elements, row_elements].
inline Shape rows_shape(std::size_t count, std::size_t row_elements) {
  if (row_elements == 1) return {{static_cast<int64_t>(count), 0}, 1};
  if (row_elements == 0 || count % row_elements != 0) {
    throw Error(HVD_INVALID_ARGUMENT, "expected whole rows of " + std::to_string(row_elements) +
                                          " elements, got " + std::to_string(count) + " elements");
  }
  return {{static_cast<int64_t>(count / row_elements), static_cast<int64_t>(row_elements)}, 2};
}

template <typename T>
hvd_request make_request(hvd_kind kind, const T* input, T* output, const Shape& shape,
                         const Options& options) {
  hvd_request request;
  hvd_request_init(&request);
  request.kind = kind;
  request.dtype = dtype_of_v<T>;
  request.ndim = shape.ndim;
  request.shape = shape.dims;
  request.input = input;
  request.output = output;
  request.reduce_op = static_cast<int32_t>(options.op);
  request.prescale = options.prescale;
  request.postscale = options.postscale;
  request.process_set = options.process_set.id();
  request.wire_dtype = options.wire_dtype;
  request.progress = options.progress;
  request.name = options.name;
  return request;
}

inline hvd_output output_of(hvd_handle handle) {
  hvd_output output = {};
  output.struct_size = sizeof(output);
  check(hvd_get_output(handle, 0, &output));
  return output;
}

template <typename T>
std::vector<T> values_of(const hvd_output& output) {
  static_assert(!std::is_same_v<T, bool>, "std::vector<bool> is no array: use uint8_t");
  const T* first = static_cast<const T*>(output.data);
  return output.bytes == 0 ? std::vector<T>()
                           : std::vector<T>(first, first + output.bytes / sizeof(T));
}

// How a finished operation becomes the value of its future.
template <typename Result>
struct Reader;
template <>
struct Reader<void> {
  static void read(hvd_handle) {}
};
template <>
struct Reader<int> {
  static int read(hvd_handle handle) { return output_of(handle).last_joined_rank; }
};
template <typename T>
struct Reader<Rows<T>> {
  static Rows<T> read(hvd_handle handle) {
    const hvd_output output = output_of(handle);
    return {values_of<T>(output), output.ndim > 0 ? output.shape[0] : 0};
  }
};
template <typename T>
struct Reader<Exchanged<T>> {
  static Exchanged<T> read(hvd_handle handle) {
    const hvd_output output = output_of(handle);
    return {values_of<T>(output),
            std::vector<int32_t>(output.received_splits,
                                 output.received_splits + output.received_splits_count)};
  }
};

}  // namespace detail

// An operation under way. Destroying it forgets the operation, which goes on: its buffers must then
// stay valid until the session ends.
template <typename Result>
class Future {
 public:
  Future() noexcept = default;
  explicit Future(hvd_handle handle) noexcept : handle_(handle) {}
  Future(Future&& other) noexcept : handle_(std::exchange(other.handle_, 0)) {}
  Future& operator=(Future&& other) noexcept {
    if (this != &other) {
      release();
      handle_ = std::exchange(other.handle_, 0);
    }
    return *this;
  }
  ~Future() { release(); }

  bool valid() const noexcept { return handle_ != 0; }
  hvd_handle handle() const noexcept { return handle_; }

  // True when the operation has ended, well or not; never blocks. The first call is always false.
  bool poll() const { return hvd_poll(handle_) != HVD_IN_PROGRESS; }
  // Blocks until the operation has ended; throws if it failed.
  void wait() const { detail::check(hvd_wait(handle_, HVD_FOREVER)); }
  // False when the time passed first; throws if the operation failed.
  bool wait_for(std::chrono::nanoseconds timeout) const {
    const hvd_status status = hvd_wait(handle_, timeout.count());
    if (status == HVD_TIMED_OUT) return false;
    detail::check(status);
    return true;
  }
  // Waits, hands over the result and forgets the operation, also when it throws.
  Result get() {
    const Future owned = std::move(*this);
    owned.wait();
    return detail::Reader<Result>::read(owned.handle_);
  }

 private:
  void release() noexcept {
    if (handle_ != 0) static_cast<void>(hvd_release(std::exchange(handle_, 0)));
  }

  hvd_handle handle_ = 0;
};

namespace detail {

template <typename Result>
Future<Result> submit(const hvd_request& request) {
  hvd_handle handle = 0;
  check(hvd_submit(&request, &handle));
  return Future<Result>(handle);
}

}  // namespace detail

// Reduces `input` over all ranks into `output` of the same size on every rank.
template <typename T>
void allreduce(const T* input, T* output, std::size_t count, const Options& options = {}) {
  const detail::Shape shape = detail::rows_shape(count, 1);
  const hvd_request request = detail::make_request(HVD_ALLREDUCE, input, output, shape, options);
  detail::check(hvd_run(&request, HVD_FOREVER));
}
// In place, for anything with data() and size().
template <typename Container>
void allreduce(Container&& values, const Options& options = {}) {
  allreduce(values.data(), values.data(), values.size(), options);
}
// One value: returns the reduced one.
template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
T allreduce_value(T value, const Options& options = {}) {
  allreduce(&value, &value, 1, options);
  return value;
}

template <typename T>
[[nodiscard]] Future<void> allreduce_async(const T* input, T* output, std::size_t count,
                                           const Options& options = {}) {
  const detail::Shape shape = detail::rows_shape(count, 1);
  return detail::submit<void>(detail::make_request(HVD_ALLREDUCE, input, output, shape, options));
}
template <typename Container>
[[nodiscard]] Future<void> allreduce_async(Container&& values, const Options& options = {}) {
  return allreduce_async(values.data(), values.data(), values.size(), options);
}

// Copies the values of `root` (a global rank) to every rank.
template <typename Container>
void broadcast(Container&& values, int root, const Options& options = {}) {
  const detail::Shape shape = detail::rows_shape(values.size(), 1);
  hvd_request request =
      detail::make_request(HVD_BROADCAST, values.data(), values.data(), shape, options);
  request.root_rank = root;
  detail::check(hvd_run(&request, HVD_FOREVER));
}
template <typename Container>
[[nodiscard]] Future<void> broadcast_async(Container&& values, int root,
                                           const Options& options = {}) {
  const detail::Shape shape = detail::rows_shape(values.size(), 1);
  hvd_request request =
      detail::make_request(HVD_BROADCAST, values.data(), values.data(), shape, options);
  request.root_rank = root;
  return detail::submit<void>(request);
}

// Puts the rows of all ranks one after the other, in rank order; ranks may bring different numbers.
template <typename T>
[[nodiscard]] Future<Rows<T>> allgather_async(const T* input, std::size_t count,
                                              std::size_t row_elements = 1,
                                              const Options& options = {}) {
  const detail::Shape shape = detail::rows_shape(count, row_elements);
  return detail::submit<Rows<T>>(
      detail::make_request(HVD_ALLGATHER, input, static_cast<T*>(nullptr), shape, options));
}
template <typename T>
Rows<T> allgather(const std::vector<T>& input, std::size_t row_elements = 1,
                  const Options& options = {}) {
  return allgather_async(input.data(), input.size(), row_elements, options).get();
}

// Reduces (Average or Sum) and leaves each rank its share of the rows, the first ranks one row
// more.
template <typename T>
[[nodiscard]] Future<Rows<T>> reducescatter_async(const T* input, std::size_t count,
                                                  std::size_t row_elements = 1,
                                                  const Options& options = {}) {
  const detail::Shape shape = detail::rows_shape(count, row_elements);
  return detail::submit<Rows<T>>(
      detail::make_request(HVD_REDUCESCATTER, input, static_cast<T*>(nullptr), shape, options));
}
template <typename T>
Rows<T> reducescatter(const std::vector<T>& input, std::size_t row_elements = 1,
                      const Options& options = {}) {
  return reducescatter_async(input.data(), input.size(), row_elements, options).get();
}

// Sends splits[i] rows to rank i of the set, block after block; no splits: the same number to each.
template <typename T>
[[nodiscard]] Future<Exchanged<T>> alltoall_async(const T* input, std::size_t count,
                                                  const std::vector<int32_t>& splits = {},
                                                  std::size_t row_elements = 1,
                                                  const Options& options = {}) {
  const detail::Shape shape = detail::rows_shape(count, row_elements);
  hvd_request request =
      detail::make_request(HVD_ALLTOALL, input, static_cast<T*>(nullptr), shape, options);
  if (!splits.empty()) request.splits = splits.data();
  request.splits_count = static_cast<int32_t>(splits.size());
  return detail::submit<Exchanged<T>>(request);
}
template <typename T>
Exchanged<T> alltoall(const std::vector<T>& input, const std::vector<int32_t>& splits = {},
                      std::size_t row_elements = 1, const Options& options = {}) {
  return alltoall_async(input.data(), input.size(), splits, row_elements, options).get();
}

// Returns when every rank of the set has called it.
inline void barrier(ProcessSet set = {}) { detail::check(hvd_barrier(set.id(), HVD_FOREVER)); }

// This rank has no more data: contributes zeros to allreduces until all have joined. Returns the
// rank that joined last.
inline int join() {
  int32_t last = -1;
  detail::check(hvd_join(&last, HVD_FOREVER));
  return last;
}

// ---- several tensors as one operation
// --------------------------------------------------------------

// The tensors of a grouped or prepared allreduce, reduced in place. Keeps names, borrows the
// values.
class TensorList {
 public:
  template <typename Container>
  TensorList& add(std::string name, Container&& values) {
    using T = std::remove_reference_t<decltype(*values.data())>;
    items_.push_back(
        {std::move(name), dtype_of_v<T>, values.data(), static_cast<int64_t>(values.size())});
    return *this;
  }
  std::size_t size() const noexcept { return items_.size(); }

  // Valid while this list lives and does not change; options.name is not used.
  std::vector<hvd_request> requests(const Options& options) const {
    std::vector<hvd_request> requests;
    requests.reserve(items_.size());
    for (const Item& item : items_) {
      hvd_request request =
          detail::make_request<uint8_t>(HVD_ALLREDUCE, nullptr, nullptr, {}, options);
      request.dtype = item.dtype;
      request.input = item.values;
      request.output = item.values;
      request.shape = &item.count;
      request.ndim = 1;
      request.name = item.name.empty() ? nullptr : item.name.c_str();
      requests.push_back(request);
    }
    return requests;
  }

 private:
  struct Item {
    std::string name;
    hvd_dtype dtype;
    void* values;
    int64_t count;
  };
  std::vector<Item> items_;
};

// All or nothing: the tensors are reduced together when every rank has submitted the group.
inline void grouped_allreduce(const TensorList& tensors, const Options& options = {}) {
  const auto requests = tensors.requests(options);
  detail::check(hvd_run_group(requests.data(), requests.size(), HVD_FOREVER));
}
[[nodiscard]] inline Future<void> grouped_allreduce_async(const TensorList& tensors,
                                                          const Options& options = {}) {
  const auto requests = tensors.requests(options);
  hvd_handle handle = 0;
  detail::check(hvd_submit_group(requests.data(), requests.size(), &handle));
  return Future<void>(handle);
}

// A grouped allreduce that repeats every step: checked and looked up once, the quickest form.
class Prepared {
 public:
  explicit Prepared(const TensorList& tensors, const Options& options = {}) {
    const auto requests = tensors.requests(options);
    detail::check(hvd_prepare(requests.data(), requests.size(), &prepared_));
  }
  Prepared(Prepared&& other) noexcept : prepared_(std::exchange(other.prepared_, nullptr)) {}
  Prepared& operator=(Prepared&& other) noexcept {
    std::swap(prepared_, other.prepared_);
    return *this;
  }
  ~Prepared() {
    if (prepared_ != nullptr) hvd_prepared_free(prepared_);
  }

  void run() { detail::check(hvd_prepared_run(prepared_, HVD_FOREVER)); }
  [[nodiscard]] Future<void> submit() {
    hvd_handle handle = 0;
    detail::check(hvd_prepared_submit(prepared_, &handle));
    return Future<void>(handle);
  }
  // Other values of the same type and size for tensor `index`; not while it is in flight.
  template <typename Container>
  void set_values(std::size_t index, Container&& values) {
    detail::check(hvd_prepared_set_buffers(prepared_, index, values.data(), values.data()));
  }

 private:
  hvd_prepared* prepared_ = nullptr;
};

// ---- memory
// ----------------------------------------------------------------------------------------

// Zeroed values in memory that all ranks of the host see: reduced where they lie, without copies.
template <typename T>
class SharedBuffer {
 public:
  explicit SharedBuffer(std::size_t count) : size_(count) {
    static_assert(is_dtype_v<T>, "the core has no element type for this C++ type");
    if (count > SIZE_MAX / sizeof(T)) {
      throw Error(HVD_OUT_OF_MEMORY, "shared buffer of " + std::to_string(count) + " elements");
    }
    void* data = nullptr;
    detail::check(hvd_buffer_alloc(count * sizeof(T), &data));
    data_ = static_cast<T*>(data);
  }
  SharedBuffer(SharedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  SharedBuffer& operator=(SharedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~SharedBuffer() {
    if (data_ != nullptr) static_cast<void>(hvd_buffer_free(data_));
  }

  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  T& operator[](std::size_t index) noexcept { return data_[index]; }
  const T& operator[](std::size_t index) const noexcept { return data_[index]; }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }
#ifdef __cpp_lib_span
  std::span<T> span() noexcept { return {data_, size_}; }
#endif

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace horovod
