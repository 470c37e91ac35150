// c_api.h - a request of the C ABI together with everything it points to, for short tests.
// Thread: one. A Call must outlive the operation it describes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "horovod/hvd.h"
#include "tests/support/process_ranks.h"
#include "tests/support/reference.h"

namespace hvd::testing {

// Times of the C interface are in nanoseconds.
inline constexpr int64_t kMillisecond = 1'000'000;
inline constexpr int64_t kSecond = 1000 * kMillisecond;

// Owns name, shape and splits; borrows the buffers. Setters return *this for chaining.
class Call {
 public:
  Call(hvd_kind kind, std::string name, hvd_dtype dtype, std::vector<int64_t> shape)
      : name_(std::move(name)), shape_(std::move(shape)) {
    hvd_request_init(&request_);
    request_.kind = kind;
    request_.dtype = dtype;
    request_.reduce_op = HVD_OP_SUM;
  }

  Call& input(const void* data) { return request_.input = data, *this; }
  Call& output(void* data) { return request_.output = data, *this; }
  Call& in_place(void* data) { return input(data).output(data); }
  Call& op(int32_t reduce_op) { return request_.reduce_op = reduce_op, *this; }
  Call& scale(double pre, double post) {
    request_.prescale = pre;
    request_.postscale = post;
    return *this;
  }
  Call& wire(int32_t dtype) { return request_.wire_dtype = dtype, *this; }
  Call& set(int32_t id) { return request_.process_set = id, *this; }
  Call& root(int32_t rank) { return request_.root_rank = rank, *this; }
  Call& splits(std::vector<int32_t> values) { return splits_ = std::move(values), *this; }
  Call& progress(hvd_progress value) { return request_.progress = value, *this; }
  Call& on_complete(hvd_callback callback, void* context) {
    request_.on_complete = callback;
    request_.callback_context = context;
    return *this;
  }
  Call& allocate(hvd_allocate function, void* context) {
    request_.allocate = function;
    request_.allocate_context = context;
    return *this;
  }
  // For what the setters do not allow.
  hvd_request& raw() { return request_; }

  // Points into this Call.
  hvd_request request() const {
    hvd_request request = request_;
    request.name = name_.empty() ? nullptr : name_.c_str();
    request.shape = shape_.data();
    request.ndim = static_cast<int32_t>(shape_.size());
    request.splits = splits_.empty() ? nullptr : splits_.data();
    request.splits_count = static_cast<int32_t>(splits_.size());
    return request;
  }
  hvd_status run(int64_t timeout_ns = HVD_FOREVER) const {
    const hvd_request full = request();
    return hvd_run(&full, timeout_ns);
  }
  hvd_status submit(hvd_handle* handle) const {
    const hvd_request full = request();
    return hvd_submit(&full, handle);
  }
  // For operations whose submission cannot fail in the test.
  hvd_handle submitted() const {
    hvd_handle handle = 0;
    EXPECT_EQ(submit(&handle), HVD_OK) << hvd_last_error();
    return handle;
  }

 private:
  std::string name_;
  std::vector<int64_t> shape_;
  std::vector<int32_t> splits_;
  hvd_request request_ = {};
};

// Memory for a tensor: of this process alone, or where all ranks of the host reach it.
enum class Placement { kPrivate, kShared };
class TestBuffer {
 public:
  // `offset_bytes` shifts the tensor against the alignment of the memory.
  TestBuffer(Placement placement, size_t bytes, size_t offset_bytes = 0)
      : bytes_(bytes), offset_bytes_(offset_bytes) {
    if (placement == Placement::kShared) {
      EXPECT_EQ(hvd_buffer_alloc(bytes + offset_bytes + 1, &shared_), HVD_OK) << hvd_last_error();
    } else {
      private_.resize(bytes + offset_bytes + 1);
    }
  }
  ~TestBuffer() {
    if (shared_ != nullptr) {
      EXPECT_EQ(hvd_buffer_free(shared_), HVD_OK) << hvd_last_error();
    }
  }
  TestBuffer(const TestBuffer&) = delete;
  TestBuffer& operator=(const TestBuffer&) = delete;

  std::byte* data() {
    auto* base = shared_ != nullptr ? static_cast<std::byte*>(shared_) : private_.data();
    return base + offset_bytes_;
  }
  void fill(const Bytes& values) { std::copy(values.begin(), values.end(), data()); }
  Bytes bytes() { return Bytes(data(), data() + bytes_); }

 private:
  size_t bytes_, offset_bytes_;
  Bytes private_;
  void* shared_ = nullptr;
};

inline Call allreduce_call(std::string name, hvd_dtype dtype, Bytes& values) {
  const auto count = static_cast<int64_t>(values.size() / element_bytes(dtype));
  return Call(HVD_ALLREDUCE, std::move(name), dtype, {count}).in_place(values.data());
}

// A float tensor reduced in place, the most common case.
inline Call float_allreduce(std::string name, std::vector<float>& values) {
  return Call(HVD_ALLREDUCE, std::move(name), HVD_FLOAT32, {static_cast<int64_t>(values.size())})
      .in_place(values.data());
}

// Every member of a set brings ones.
inline void expect_set_sum(int32_t id, const std::string& name, size_t count = 100) {
  std::vector<float> values(count, 1.0f);
  ASSERT_EQ(float_allreduce(name, values).set(id).run(), HVD_OK) << hvd_last_error();
  EXPECT_EQ(values, std::vector<float>(count, static_cast<float>(hvd_process_set_size(id))));
}

// What tensor `index` of a finished handle produced, copied.
inline Bytes output_bytes(hvd_handle handle, size_t index = 0) {
  hvd_output output = {};
  output.struct_size = sizeof(output);
  EXPECT_EQ(hvd_get_output(handle, index, &output), HVD_OK) << hvd_last_error();
  const auto* first = static_cast<const std::byte*>(output.data);
  return output.bytes == 0 ? Bytes() : Bytes(first, first + output.bytes);
}

// Every rank of the job has the same bytes. Collective; uses values 0..size-1 of the board.
inline void expect_same_on_all_ranks(RankProcess& rank, const Bytes& values) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const std::byte value : values) hash = (hash ^ static_cast<uint8_t>(value)) * 1099511628211u;
  rank.board().set(rank.rank(), static_cast<int64_t>(hash));
  ASSERT_EQ(hvd_barrier(0, HVD_FOREVER), HVD_OK) << hvd_last_error();
  for (int r = 0; r < rank.size(); ++r) {
    EXPECT_EQ(rank.board().get(r), static_cast<int64_t>(hash)) << "rank " << r << " differs";
  }
  ASSERT_EQ(hvd_barrier(0, HVD_FOREVER), HVD_OK) << hvd_last_error();
}

// Waits, checks success and releases.
inline void finish(hvd_handle handle) {
  EXPECT_EQ(hvd_wait(handle, HVD_FOREVER), HVD_OK) << hvd_last_error();
  EXPECT_EQ(hvd_release(handle), HVD_OK) << hvd_last_error();
}

inline hvd_stats stats_now() {
  hvd_stats stats = {};
  stats.struct_size = sizeof(stats);
  EXPECT_EQ(hvd_get_stats(&stats), HVD_OK) << hvd_last_error();
  return stats;
}

}  // namespace hvd::testing
