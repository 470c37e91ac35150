#include "tests/support/host_worker.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "base/fd.h"
#include "horovod/hvd.h"
#include "tests/support/c_api.h"
#include "tests/support/process_ranks.h"
#include "tests/support/reference.h"

namespace hvd::testing {
namespace {

// Hosts are combined one after the other, not in rank order: sums of floats round differently.
constexpr double kTolerance = 1e-4;

__attribute__((format(printf, 1, 2))) void say(const char* format, ...) {
  char text[4096];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  // In one piece: launchers mix the outputs of ranks.
  const std::string line = "rank " + std::to_string(hvd_rank()) + " " + text + "\n";
  [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, line.data(), line.size());
}

std::string numbered(const char* name, int64_t number) {
  return std::string(name) + "." + std::to_string(number);
}

// ---- operations

void expect_allreduces(hvd_dtype dtype, hvd_reduce_op op, size_t count) {
  const DataSpec spec{.rank = hvd_rank(), .dtype = dtype, .count = count, .salt = 3};
  const Bytes expected =
      reference_allreduce({.dtype = dtype, .op = op}, make_data_of_all(hvd_size(), spec));
  const double tolerance = dtype == HVD_FLOAT32 || dtype == HVD_FLOAT64 ? kTolerance : 0.02;
  const std::string name =
      "reduce." + std::string(dtype_text(dtype)) + numbered("", op) + numbered("", int64_t(count));
  Bytes first;
  for (int repeat = 0; repeat < 2; ++repeat) {  // negotiated, then from the cache
    Bytes data = make_data(spec);
    EXPECT_EQ(allreduce_call(name, dtype, data).op(op).run(), HVD_OK) << hvd_last_error();
    EXPECT_TRUE(close_to(dtype, expected, data, tolerance)) << name;
    if (repeat == 0) first = data;
    EXPECT_EQ(first, data) << name << ": the same values, other bits";
  }
}

void expect_allgather(int64_t base) {
  std::vector<Bytes> inputs;
  for (int r = 0; r < hvd_size(); ++r) {
    const auto count = static_cast<size_t>(base * ((r * 7 + 2) % 4));  // 0 for some ranks
    inputs.push_back(make_data({.rank = r, .count = count}));
  }
  const Bytes& mine = inputs[static_cast<size_t>(hvd_rank())];
  const hvd_handle handle = Call(HVD_ALLGATHER, numbered("gather", base), HVD_FLOAT32,
                                 {static_cast<int64_t>(mine.size() / 4)})
                                .input(mine.data())
                                .submitted();
  EXPECT_EQ(hvd_wait(handle, HVD_FOREVER), HVD_OK) << hvd_last_error();
  EXPECT_TRUE(same_bits(HVD_FLOAT32, reference_allgather(inputs), output_bytes(handle)));
  EXPECT_EQ(hvd_release(handle), HVD_OK);
}

void expect_broadcast(size_t count) {
  for (int root = 0; root < hvd_size(); ++root) {
    Bytes data = make_data({.rank = hvd_rank(), .count = count});
    const Call call = Call(HVD_BROADCAST, numbered("cast", root) + numbered("", int64_t(count)),
                           HVD_FLOAT32, {static_cast<int64_t>(count)})
                          .in_place(data.data())
                          .root(root);
    EXPECT_EQ(call.run(), HVD_OK) << hvd_last_error();
    EXPECT_TRUE(same_bits(HVD_FLOAT32, make_data({.rank = root, .count = count}), data));
  }
}

void expect_alltoall(int32_t base) {
  const int size = hvd_size();
  std::vector<std::vector<int32_t>> splits(static_cast<size_t>(size));
  std::vector<Bytes> inputs;
  for (int from = 0; from < size; ++from) {
    int64_t rows = 0;
    for (int to = 0; to < size; ++to) {
      splits[static_cast<size_t>(from)].push_back(base * ((from + 2 * to) % 3));
      rows += splits[static_cast<size_t>(from)].back();
    }
    inputs.push_back(make_data({.rank = from, .count = static_cast<size_t>(rows)}));
  }
  const auto me = static_cast<size_t>(hvd_rank());
  const hvd_handle handle = Call(HVD_ALLTOALL, numbered("swap", base), HVD_FLOAT32,
                                 {static_cast<int64_t>(inputs[me].size() / 4)})
                                .input(inputs[me].data())
                                .splits(splits[me])
                                .submitted();
  EXPECT_EQ(hvd_wait(handle, HVD_FOREVER), HVD_OK) << hvd_last_error();
  EXPECT_TRUE(same_bits(HVD_FLOAT32, reference_alltoall(inputs, splits, 4, hvd_rank()),
                        output_bytes(handle)));
  EXPECT_EQ(hvd_release(handle), HVD_OK);
}

void expect_reducescatter(int64_t rows) {
  const DataSpec spec{.rank = hvd_rank(), .count = static_cast<size_t>(rows) * 3};
  const Bytes expected = reference_reducescatter(
      {.reduce = {}, .rows = rows, .row_elements = 3, .receiver = hvd_rank()},
      make_data_of_all(hvd_size(), spec));
  const Bytes mine = make_data(spec);
  const hvd_handle handle =
      Call(HVD_REDUCESCATTER, numbered("scatter", rows), HVD_FLOAT32, {rows, 3})
          .input(mine.data())
          .submitted();
  EXPECT_EQ(hvd_wait(handle, HVD_FOREVER), HVD_OK) << hvd_last_error();
  EXPECT_TRUE(close_to(HVD_FLOAT32, expected, output_bytes(handle), kTolerance));
  EXPECT_EQ(hvd_release(handle), HVD_OK);
}

// Ranks have different numbers of batches; those that are through contribute zeros.
void expect_join() {
  for (int step = 0; step < 2 + hvd_rank(); ++step) {
    int workers = 0;
    for (int r = 0; r < hvd_size(); ++r) workers += step < 2 + r ? 1 : 0;
    std::vector<float> values(step % 2 == 0 ? 10 : 20000, 1.0f);
    EXPECT_EQ(float_allreduce(numbered("batch", step % 2), values).run(), HVD_OK)
        << hvd_last_error();
    EXPECT_EQ(values, std::vector<float>(values.size(), static_cast<float>(workers)));
  }
  int32_t last = -1;
  EXPECT_EQ(hvd_join(&last, HVD_FOREVER), HVD_OK) << hvd_last_error();
  EXPECT_EQ(last, hvd_size() - 1);
}

// The first and the last rank, which are on different hosts.
void expect_process_sets() {
  if (hvd_size() == 2) return;  // that is the set of all ranks
  std::vector<int32_t> ends{0, hvd_size() - 1};
  const int32_t id = hvd_process_set_add(ends.data(), static_cast<int32_t>(ends.size()));
  ASSERT_GT(id, 0) << hvd_last_error();
  if (hvd_process_set_included(id) == 1) {
    for (const size_t count : {size_t{10}, size_t{50000}}) {
      std::vector<float> values(count, 1.0f);
      EXPECT_EQ(float_allreduce(numbered("ends", int64_t(count)), values).set(id).run(), HVD_OK)
          << hvd_last_error();
      EXPECT_EQ(values, std::vector<float>(count, 2.0f));
    }
  }
  EXPECT_EQ(hvd_process_set_remove(id), id) << hvd_last_error();
}

void expect_group() {
  std::vector<float> small(10, 1.0f);
  std::vector<float> large(100000, 2.0f);
  const Call calls[] = {float_allreduce("group.small", small),
                        float_allreduce("group.large", large)};
  const hvd_request requests[] = {calls[0].request(), calls[1].request()};
  EXPECT_EQ(hvd_run_group(requests, 2, HVD_FOREVER), HVD_OK) << hvd_last_error();
  const auto size = static_cast<float>(hvd_size());
  EXPECT_EQ(small, std::vector<float>(10, size));
  EXPECT_EQ(large, std::vector<float>(100000, 2 * size));
}

void operations() {
  for (const hvd_dtype dtype : kAllDtypes) {
    for (const hvd_reduce_op op : {HVD_OP_SUM, HVD_OP_AVERAGE, HVD_OP_MIN, HVD_OP_MAX}) {
      expect_allreduces(dtype, op, 25);
    }
    expect_allreduces(dtype, HVD_OP_AVERAGE, 700);
    expect_allreduces(dtype, HVD_OP_SUM, 70001);
  }
  expect_allreduces(HVD_FLOAT32, HVD_OP_SUM, 1);
  expect_allreduces(HVD_FLOAT32, HVD_OP_SUM, 1000003);
  for (const size_t count : {size_t{13}, size_t{70001}}) {
    expect_allreduces(HVD_FLOAT32, HVD_OP_ADASUM, count);
    expect_broadcast(count);
  }
  for (const int base : {1, 30000}) {
    expect_allgather(base);
    expect_alltoall(base);
    expect_reducescatter(base);
  }
  expect_group();
  expect_join();
  expect_process_sets();
  EXPECT_EQ(hvd_barrier(0, HVD_FOREVER), HVD_OK) << hvd_last_error();
}

// ---- jobs that run for a while

// One more allreduce, whose sum everybody knows.
hvd_status reduce_once(std::vector<float>& values) {
  std::fill(values.begin(), values.end(), static_cast<float>(hvd_rank() + 1));
  const hvd_status status = float_allreduce("step", values).run();
  const int size = hvd_size();
  if (status == HVD_OK) {
    const auto sum = static_cast<float>(size * (size + 1) / 2);
    EXPECT_EQ(values.front(), sum);
    EXPECT_EQ(values.back(), sum);
  }
  return status;
}

void steps(int64_t count, size_t bytes) {
  std::vector<float> values(bytes / sizeof(float));
  for (int64_t step = 0; step < count; ++step) {
    EXPECT_EQ(reduce_once(values), HVD_OK) << hvd_last_error();
    if (step == 0) say("runs with pid %d.", getpid());
    if (::testing::UnitTest::GetInstance()->Failed()) return;
  }
  say("is done");
}

// The same processes form a second job, without the last one. One rank per host.
void resized(size_t bytes) {
  const int rank = hvd_rank(), size = hvd_size() - 1;
  steps(2, bytes);
  hvd_shutdown();
  if (rank == size) return;
  hvd_init_options options;
  hvd_init_options_init(&options);
  options.topology = {rank, size, 0, 1, rank, size};
  ASSERT_EQ(hvd_init(&options), HVD_OK) << hvd_last_error();
  EXPECT_EQ(hvd_size(), size);
  steps(2, bytes);
  say("of %d goes on with %d ranks", size + 1, hvd_size());
}

bool is_written_by_the_tuner(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) && line.find("Found by the autotuner") != std::string::npos;
}

// Rank 0 looks for the file now and then, and all ranks stop at the same step.
void until_tuned(const std::string& profile, size_t bytes) {
  constexpr int kLookEvery = 100;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(45);
  const auto sum = static_cast<float>(hvd_size() * (hvd_size() + 1) / 2);
  std::vector<float> large(bytes / sizeof(float)), small(500), stop(1);
  const auto reduce = [&](const char* name, std::vector<float>& values) {
    std::fill(values.begin(), values.end(), static_cast<float>(hvd_rank() + 1));
    EXPECT_EQ(float_allreduce(name, values).run(), HVD_OK) << hvd_last_error();
    EXPECT_EQ(std::count(values.begin(), values.end(), sum), std::ssize(values)) << name;
  };
  for (int step = 0; stop[0] == 0; ++step) {
    reduce("large", large);
    reduce("small", small);
    if (step % kLookEvery != 0) continue;
    const bool is_late = std::chrono::steady_clock::now() > end;
    stop[0] = hvd_rank() == 0 && (is_late || is_written_by_the_tuner(profile)) ? 1.0f : 0.0f;
    EXPECT_EQ(float_allreduce("stop", stop).run(), HVD_OK) << hvd_last_error();
    if (::testing::UnitTest::GetInstance()->Failed()) return;
  }
  say("stopped");
}

int say_failure(hvd_status status) {
  say("failed at %lld: %s: %s", static_cast<long long>(monotonic_ns()), hvd_status_name(status),
      hvd_last_error());
  return 1;
}

// What horovodrun sends the others when a rank has died must not keep them from telling.
void ignore_signals() {
  std::signal(SIGTERM, SIG_IGN);
  std::signal(SIGINT, SIG_IGN);
}

int until_failure(size_t bytes) {
  std::vector<float> values(bytes / sizeof(float));
  for (bool is_first = true;; is_first = false) {
    const hvd_status status = reduce_once(values);
    if (status != HVD_OK) return say_failure(status);
    if (is_first) say("runs with pid %d.", getpid());
  }
}

// Until the test lets go of the file.
void wait_for_lock(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(file.valid()) << path;
  EXPECT_EQ(::flock(file.get(), LOCK_SH), 0);
}

// One rank ends in the middle of the job, or stops; the others go on until they are told.
int end_early(const std::string& how) {
  const bool is_code = how.starts_with("exit-") || how.starts_with("shutdown-");
  const int code = is_code ? std::stoi(how.substr(how.find('-') + 1)) : 0;
  if (how.starts_with("exit-")) ::_exit(code);
  if (how.starts_with("shutdown-")) return code;
  std::raise(how == "stop" ? SIGSTOP : SIGKILL);
  return 99;  // somebody let a stopped rank go on
}

int one_fails(int rank, const std::string& how) {
  std::vector<float> values(1000);
  EXPECT_EQ(reduce_once(values), HVD_OK) << hvd_last_error();
  if (hvd_rank() == rank) return end_early(how);
  return until_failure(values.size() * sizeof(float));
}

int wait_for_rank_0(const std::string& pipe) {
  std::vector<float> values(10000);
  EXPECT_EQ(reduce_once(values), HVD_OK) << hvd_last_error();
  say("runs with pid %d.", getpid());
  if (hvd_rank() == 0) {
    std::string line;
    std::ifstream input(pipe);
    std::getline(input, line);
  }
  if (const hvd_status status = hvd_barrier(0, HVD_FOREVER); status != HVD_OK)
    return say_failure(status);
  EXPECT_EQ(reduce_once(values), HVD_OK) << hvd_last_error();
  rusage used = {};
  getrusage(RUSAGE_SELF, &used);
  const auto milliseconds = [](const timeval& t) { return t.tv_sec * 1000 + t.tv_usec / 1000; };
  say("used %ld ms", milliseconds(used.ru_utime) + milliseconds(used.ru_stime));
  return ::testing::UnitTest::GetInstance()->Failed() ? 1 : 0;
}

// What somebody would have unpickled.
void expect_object(const Bytes& expected, const Bytes& got) {
  if (got != expected) say("got a wrong object");
  EXPECT_TRUE(got == expected);
}

// Objects as front ends send them: bytes, of which everybody knows what they should be.
Bytes object_of(int rank, int64_t step, size_t bytes) {
  const std::string text = "object " + std::to_string(step) + " of rank " + std::to_string(rank) +
                           ": " + std::string(kObjectMark) + "; ";
  Bytes out(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(text[i % text.size()]);
  return out;
}

int objects(int64_t count, size_t bytes) {
  std::vector<float> values(bytes / sizeof(float));
  for (int64_t step = 0; step < count; ++step) {
    const int root = static_cast<int>(step % hvd_size());
    Bytes object = hvd_rank() == root ? object_of(root, step, bytes) : Bytes(bytes);
    hvd_status status =
        Call(HVD_BROADCAST, numbered("object", step), HVD_UINT8, {static_cast<int64_t>(bytes)})
            .in_place(object.data())
            .root(root)
            .run();
    if (status != HVD_OK) return say_failure(status);
    expect_object(object_of(root, step, bytes), object);
    status = reduce_once(values);
    if (status != HVD_OK) return say_failure(status);
    if (step == 0) say("runs with pid %d.", getpid());
  }
  say("has all objects");
  return ::testing::UnitTest::GetInstance()->Failed() ? 1 : 0;
}

int run_role(const std::string& role, const std::vector<std::string>& words) {
  const auto number = [&](size_t index) { return std::stoll(words.at(index)); };
  if (role == "operations") {
    operations();
    say("has checked every operation");
  } else if (role == "steps") {
    steps(number(0), static_cast<size_t>(number(1)));
  } else if (role == "resized") {
    resized(static_cast<size_t>(number(0)));
  } else if (role == "tuned") {
    until_tuned(words.at(0), static_cast<size_t>(number(1)));
  } else if (role == "objects") {
    ignore_signals();
    return objects(number(0), static_cast<size_t>(number(1)));
  } else if (role == "until-failure") {
    return until_failure(static_cast<size_t>(number(0)));
  } else if (role == "stubborn") {
    ignore_signals();
    const int code = until_failure(static_cast<size_t>(number(0)));
    if (words.size() > 1) wait_for_lock(words[1]);
    return code;
  } else if (role == "one-fails") {
    return one_fails(static_cast<int>(number(0)), words.at(1));
  } else if (role == "wait") {
    ignore_signals();
    return wait_for_rank_0(words.at(0));
  } else {
    std::fprintf(stderr, "there is no role '%s'\n", role.c_str());
    return 2;
  }
  return ::testing::UnitTest::GetInstance()->Failed() ? 1 : 0;
}

}  // namespace

std::optional<int> run_as_rank(int argc, char** argv) {
  if (argc < 3 || std::strcmp(argv[1], kRankFlag) != 0) return std::nullopt;
  hvd_init_options options;
  hvd_init_options_init(&options);
  options.dynamic_process_sets = 1;
  if (const hvd_status status = hvd_init(&options); status != HVD_OK) {
    std::fprintf(stderr, "init failed: %s: %s\n", hvd_status_name(status), hvd_last_error());
    return 1;
  }
  const int code = run_role(argv[2], {argv + 3, argv + argc});
  hvd_shutdown();
  return code;
}

}  // namespace hvd::testing
