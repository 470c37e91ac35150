#include "ours.h"

#include "error.h"

namespace hvd::bench {

void expect_ok(hvd_status status, const char* what) {
  if (status == HVD_OK) [[likely]]
    return;
  throw BenchError(std::string(what) + ": " + hvd_status_name(status) + ": " + hvd_last_error());
}

void expect_ok(const Status& status, const char* what) {
  if (status.is_ok()) [[likely]]
    return;
  throw BenchError(std::string(what) + ": " + status.message());
}

Request::Request(hvd_kind kind, Tensor tensor, int32_t wire_dtype)
    : name_(std::move(tensor.name)), shape_{static_cast<int64_t>(tensor.count)} {
  hvd_request_init(&request_);
  request_.kind = kind;
  request_.dtype = HVD_FLOAT32;
  request_.reduce_op = HVD_OP_SUM;
  request_.wire_dtype = wire_dtype;
  request_.ndim = 1;
  request_.shape = shape_.data();
  request_.input = tensor.input;
  request_.output = tensor.output;
  request_.name = name_.c_str();
}

Prepared::Prepared(std::span<const hvd_request> requests) : prepared_(nullptr, hvd_prepared_free) {
  hvd_prepared* prepared = nullptr;
  expect_ok(hvd_prepare(requests.data(), requests.size(), &prepared), "prepare");
  prepared_.reset(prepared);
}

SharedBuffer::SharedBuffer(size_t count) {
  void* data = nullptr;
  expect_ok(hvd_buffer_alloc(count * sizeof(float), &data), "shared buffer");
  data_.reset(data);
}

Ours::Ours(const Place& place) {
  auto group = collective::shared_memory::BareGroup::join(
      {.rank = place.rank, .size = place.size, .job_id = place.job_id + "-bare"});
  expect_ok(group.status(), "bare group");
  bare_ = std::move(*group);

  const std::string job_id = place.job_id + "-engine";
  hvd_init_options options;
  hvd_init_options_init(&options);
  options.topology = {.rank = place.rank,
                      .size = place.size,
                      .local_rank = place.rank,
                      .local_size = place.size,
                      .cross_rank = 0,
                      .cross_size = 1};
  options.job_id = job_id.c_str();
  expect_ok(hvd_init(&options), "init");
}

Ours::~Ours() { (void)hvd_shutdown(); }

float* Ours::bare_shared_floats(size_t count) {
  auto data = bare_->alloc(count * sizeof(float));
  expect_ok(data.status(), "bare shared buffer");
  return static_cast<float*>(*data);
}

}  // namespace hvd::bench
