// Every dtype, operation, number of sources and outputs, size, alignment and aliasing of reduce().
#include <algorithm>
#include <cstring>

#include "plain_reference.h"

namespace hvd {
namespace {

using plain::Bytes;
using plain::Fenced;
using plain::Values;

constexpr size_t kCounts[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 100, 1000, 4097};

// Which output is which source: none, output i is source i, or output i is the i-th source from the
// end.
enum class Aliasing { kNone, kForward, kBackward };

struct Case {
  DType dtype;
  ReduceOp op;
  size_t count;
  unsigned output_count;
  Aliasing aliasing;
  size_t misalignment;
  Scale post;
};

std::string text(const Kernels& table, const Case& c, size_t source_count) {
  return std::string(table.name) + " " + std::string(dtype_name(c.dtype)) + " " +
         std::string(reduce_op_name(c.op)) + " count " + std::to_string(c.count) + " sources " +
         std::to_string(source_count) + " outputs " + std::to_string(c.output_count) +
         " aliasing " + std::to_string(static_cast<int>(c.aliasing)) + " misalignment " +
         std::to_string(c.misalignment);
}

// Runs one case on fresh copies of `sources` and checks everything that may and may not change.
void check(const Kernels& table, const Case& c, const std::vector<Bytes>& sources,
           const Bytes& expected) {
  std::vector<Fenced> inputs;
  std::vector<const void*> source_pointers;
  for (size_t s = 0; s < sources.size(); ++s)
    inputs.emplace_back(sources[s], c.misalignment * (s + 1));
  for (const Fenced& input : inputs) source_pointers.push_back(input.data());
  std::vector<Fenced> fresh;
  fresh.reserve(c.output_count);
  std::vector<void*> outputs;
  std::vector<bool> overwritten(sources.size(), false);
  for (unsigned o = 0; o < c.output_count; ++o) {
    if (c.aliasing == Aliasing::kNone || o >= sources.size()) {
      fresh.emplace_back(sources[0].size(), c.misalignment * (o + 3));
      outputs.push_back(fresh.back().data());
    } else {
      const size_t s = c.aliasing == Aliasing::kForward ? o : sources.size() - 1 - o;
      outputs.push_back(inputs[s].data());
      overwritten[s] = true;
    }
  }

  table.reduce({.dtype = c.dtype,
                .op = c.op,
                .count = c.count,
                .sources = source_pointers.data(),
                .source_count = static_cast<unsigned>(sources.size()),
                .outputs = outputs.data(),
                .output_count = c.output_count,
                .post = c.post});

  for (void* output : outputs) {
    ASSERT_TRUE(plain::same_numbers(c.dtype, expected, output)) << text(table, c, sources.size());
  }
  for (size_t s = 0; s < inputs.size(); ++s) {
    ASSERT_TRUE(inputs[s].fences_intact()) << text(table, c, sources.size());
    if (overwritten[s]) continue;
    ASSERT_EQ(inputs[s].content(), sources[s]) << text(table, c, sources.size());
  }
  for (const Fenced& output : fresh) {
    ASSERT_TRUE(output.fences_intact()) << text(table, c, sources.size());
  }
}

std::vector<Bytes> random_sources(DType dtype, size_t sources, size_t count) {
  std::vector<Bytes> result;
  for (size_t s = 0; s < sources; ++s) {
    result.push_back(plain::random_elements(dtype, count, 17 * count + s, Values::kSpecial));
  }
  return result;
}

class ReduceOfDtype : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Dtypes, ReduceOfDtype, ::testing::ValuesIn(plain::all_dtypes()),
                         [](const auto& test) { return std::string(dtype_name(test.param)); });

TEST_P(ReduceOfDtype, EqualsTheReferenceForEveryShapeAndAliasing) {
  for (const size_t source_count : {1, 2, 3, 4, 5, 8}) {
    for (const size_t count : kCounts) {
      const auto sources = random_sources(GetParam(), source_count, count);
      for (const ReduceOp op : plain::kOps) {
        const Bytes expected = plain::reduce(GetParam(), op, sources, Scale{});
        for (const Kernels* table : plain::all_tables()) {
          for (const unsigned outputs : {1u, 2u, static_cast<unsigned>(source_count)}) {
            for (const auto aliasing : {Aliasing::kNone, Aliasing::kForward, Aliasing::kBackward}) {
              const size_t misalignment = (count + outputs + source_count) % 2;
              const Case c{GetParam(), op, count, outputs, aliasing, misalignment, Scale{}};
              ASSERT_NO_FATAL_FAILURE(check(*table, c, sources, expected));
            }
          }
        }
      }
    }
  }
}

TEST_P(ReduceOfDtype, AppliesThePostScaleOnceToTheResult) {
  const Scale scales[] = {{1.0, 3}, {0.5, 1}, {2.5, 4}, {2.0, 2}, {-1e30, 1}, {0.0, 1}};
  for (const size_t source_count : {1, 2, 3, 4, 8}) {
    for (const size_t count : {1, 7, 16, 33, 1000}) {
      const auto sources = random_sources(GetParam(), source_count, count);
      for (const ReduceOp op : plain::kOps) {
        for (const Scale& post : scales) {
          const Bytes expected = plain::reduce(GetParam(), op, sources, post);
          for (const Kernels* table : plain::all_tables()) {
            for (const unsigned outputs : {1u, static_cast<unsigned>(source_count)}) {
              const Case c{GetParam(), op, count, outputs, Aliasing::kForward, 1, post};
              ASSERT_NO_FATAL_FAILURE(check(*table, c, sources, expected))
                  << "factor " << post.factor << " divisor " << post.divisor;
            }
          }
        }
      }
    }
  }
}

// With at most one NaN among the sources of an element the NaN's own bits are fixed too.
TEST_P(ReduceOfDtype, GivesTheSameBitsFromEveryTable) {
  constexpr size_t kCount = 4097;
  std::vector<Bytes> sources;
  sources.push_back(plain::random_elements(GetParam(), kCount, 1, Values::kSpecial));
  sources.push_back(plain::random_elements(GetParam(), kCount, 2, Values::kOrdinary));
  sources.push_back(plain::random_elements(GetParam(), kCount, 3, Values::kOrdinary));
  const void* pointers[] = {sources[0].data(), sources[1].data(), sources[2].data()};
  for (const ReduceOp op : plain::kOps) {
    for (const Scale& post : {Scale{}, Scale{1.0, 3}, Scale{0.3, 1}}) {
      std::vector<Bytes> results;
      for (const Kernels* table : plain::all_tables()) {
        Bytes& result = results.emplace_back(sources[0].size());
        void* output = result.data();
        table->reduce({.dtype = GetParam(),
                       .op = op,
                       .count = kCount,
                       .sources = pointers,
                       .source_count = 3,
                       .outputs = &output,
                       .output_count = 1,
                       .post = post});
      }
      for (const Bytes& result : results) EXPECT_EQ(result, results.back()) << reduce_op_name(op);
    }
  }
}

// How a tensor is cut into pieces must not show in the result.
TEST_P(ReduceOfDtype, GivesTheSameBitsInPieces) {
  constexpr size_t kCount = 1000;
  const size_t size = dtype_bytes(GetParam());
  const auto sources = random_sources(GetParam(), 3, kCount);
  for (const ReduceOp op : plain::kOps) {
    const Bytes expected = plain::reduce(GetParam(), op, sources, Scale{1.0, 3});
    for (const Kernels* table : plain::all_tables()) {
      Bytes result(sources[0].size());
      for (size_t begin = 0, step = 1; begin < kCount; begin += step, ++step) {
        const void* pieces[3];
        for (int s = 0; s < 3; ++s) pieces[s] = sources[s].data() + begin * size;
        void* output = result.data() + begin * size;
        table->reduce({.dtype = GetParam(),
                       .op = op,
                       .count = std::min(step, kCount - begin),
                       .sources = pieces,
                       .source_count = 3,
                       .outputs = &output,
                       .output_count = 1,
                       .post = {1.0, 3}});
      }
      EXPECT_TRUE(plain::same_numbers(GetParam(), expected, result.data())) << table->name;
    }
  }
}

TEST(Reduce, WrapsIntegers) {
  for (const Kernels* table : plain::all_tables()) {
    int8_t a[] = {127, -128, 100}, b[] = {1, -1, 100};
    const void* sources[] = {a, b};
    void* output = a;

    table->reduce({.dtype = DType::kInt8,
                   .op = ReduceOp::kSum,
                   .count = 3,
                   .sources = sources,
                   .source_count = 2,
                   .outputs = &output,
                   .output_count = 1,
                   .post = {}});

    EXPECT_EQ(a[0], -128);
    EXPECT_EQ(a[1], 127);
    EXPECT_EQ(a[2], -56);
  }
}

// 2048 + 1 is not a float16; in float32 the two ones survive and are rounded once, together.
TEST(Reduce, AccumulatesFloat16InFloat32) {
  for (const Kernels* table : plain::all_tables()) {
    for (const size_t count : {1, 40}) {
      const std::vector<uint16_t> large(count, 0x6800), one(count, 0x3c00);
      std::vector<uint16_t> result(count);
      const void* sources[] = {large.data(), one.data(), one.data()};
      void* output = result.data();

      table->reduce({.dtype = DType::kFloat16,
                     .op = ReduceOp::kSum,
                     .count = count,
                     .sources = sources,
                     .source_count = 3,
                     .outputs = &output,
                     .output_count = 1,
                     .post = {}});

      EXPECT_EQ(result, std::vector<uint16_t>(count, 0x6801)) << table->name;
    }
  }
}

TEST(ReduceDeathTest, RefusesOperationsThatAreNotElementWise) {
  const float one = 1;
  float result = 0;
  const void* source = &one;
  void* output = &result;
  for (const ReduceOp op : {ReduceOp::kAverage, ReduceOp::kAdasum}) {
    ReduceArgs args;
    args.op = op;
    args.count = 1;
    args.sources = &source;
    args.source_count = 1;
    args.outputs = &output;
    args.output_count = 1;
    EXPECT_DEATH(kernels().reduce(args), "");
  }
}

TEST(KernelTables, EndWithTheBaselineAndBeginWithTheBest) {
  const auto tables = plain::all_tables();

  ASSERT_FALSE(tables.empty());
  EXPECT_EQ(tables.front(), &kernels());
  EXPECT_EQ(tables.back(), &baseline_kernels());
}

}  // namespace
}  // namespace hvd
