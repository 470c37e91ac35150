// ours.h - the library as a benchmark uses it: C ABI requests with the memory they point to, and a
// started job. Failures become BenchError with the library's own text.
#pragma once

#include <horovod/hvd.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collective/shared_memory/bare_group.h"

namespace hvd::bench {

void expect_ok(hvd_status status, const char* what);
void expect_ok(const Status& status, const char* what);

// One float32 request over a flat tensor of `count` elements. The request points into this object.
class Request {
 public:
  struct Tensor {
    std::string name;
    size_t count = 0;
    const float* input = nullptr;
    float* output = nullptr;
  };
  Request(hvd_kind kind, Tensor tensor, int32_t wire_dtype = -1);
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  const hvd_request& get() const { return request_; }

 private:
  std::string name_;
  std::array<int64_t, 1> shape_;
  hvd_request request_;
};

// A submission that was validated and looked up once; one tensor or a group.
class Prepared {
 public:
  explicit Prepared(std::span<const hvd_request> requests);
  void run() const { expect_ok(hvd_prepared_run(prepared_.get(), HVD_FOREVER), "prepared run"); }

 private:
  std::unique_ptr<hvd_prepared, decltype(&hvd_prepared_free)> prepared_;
};

// A float buffer in the shared memory of the C ABI, freed with the object.
class SharedBuffer {
 public:
  explicit SharedBuffer(size_t count);
  float* data() const { return static_cast<float*>(data_.get()); }

 private:
  struct Free {
    void operator()(void* data) const { (void)hvd_buffer_free(data); }
  };
  std::unique_ptr<void, Free> data_;
};

// Both layers, started: the bare collectives, and the engine behind the C ABI. Needs one thread.
class Ours {
 public:
  struct Place {
    int rank = 0;
    int size = 1;
    std::string job_id;
  };
  explicit Ours(const Place& place);
  ~Ours();
  Ours(const Ours&) = delete;
  Ours& operator=(const Ours&) = delete;

  collective::shared_memory::BareGroup& bare() { return *bare_; }
  float* bare_shared_floats(size_t count);  // lives as long as this object

 private:
  std::unique_ptr<collective::shared_memory::BareGroup> bare_;
};

}  // namespace hvd::bench
