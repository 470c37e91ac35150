// Allreduce and Adasum over simulated hosts, against the plain reference.
#include <gtest/gtest.h>

#include <cstring>
#include <mutex>

#include "collective/small/combine_by_host.h"
#include "tests/support/reference.h"
#include "tests/unit/hosts_support.h"
#include "tune/tuning.h"

namespace hvd::testing {
namespace {

using collective::Work;
using collective::WorkKind;

// What all members computed, to be compared with each other.
class Outputs {
 public:
  explicit Outputs(size_t size) : outputs_(size) {}
  void put(int member, const Bytes& bytes) {
    const std::lock_guard lock(mutex_);
    outputs_[static_cast<size_t>(member)].push_back(bytes);
  }
  void expect_all_equal() const {
    for (size_t m = 1; m < outputs_.size(); ++m)
      EXPECT_TRUE(outputs_[m] == outputs_[0]) << "member " << m << " has other bits than member 0";
  }

 private:
  std::mutex mutex_;
  std::vector<std::vector<Bytes>> outputs_;
};

// Where sums are rounded once, in rank order, the bits are those of the reference.
bool rounds_once(const std::vector<int>& labels) {
  const auto layout = collective::hosts::HostLayout::of(labels);
  return layout.size() == layout.host_count() && layout.host_count() <= 8;
}

double tolerance_of(hvd_dtype dtype) {
  switch (dtype) {
    case HVD_FLOAT16:
      return 6e-3;
    case HVD_BFLOAT16:
      return 5e-2;
    case HVD_FLOAT32:
      return 2e-6;
    case HVD_FLOAT64:
      return 1e-14;
    default:
      return 0;
  }
}

struct Case {
  hvd_dtype dtype = HVD_FLOAT32;
  hvd_reduce_op op = HVD_OP_SUM;
  size_t count = 0;
  double prescale = 1.0, postscale = 1.0;
};

void prepare(Work& work, const Case& c, int size) {
  work.reset(c.op == HVD_OP_ADASUM ? WorkKind::kAdasum : WorkKind::kReduce);
  collective::Numeric& n = work.next_run().numeric;
  n.dtype = n.slot_dtype = static_cast<DType>(c.dtype);
  n.op = c.op == HVD_OP_AVERAGE ? ReduceOp::kSum : static_cast<ReduceOp>(c.op);
  n.pre = Scale{c.prescale, 1};
  n.post = Scale{c.postscale, c.op == HVD_OP_AVERAGE ? size : 1};
}

// Inputs of all members and what must come out, made once for all of them.
struct Expectation {
  std::vector<Bytes> inputs;
  Bytes result;
};
Expectation expect_of(const Case& c, int size) {
  Expectation e;
  e.inputs = make_data_of_all(size, {.dtype = c.dtype, .count = c.count});
  e.result = reference_allreduce(
      {.dtype = c.dtype, .op = c.op, .prescale = c.prescale, .postscale = c.postscale}, e.inputs);
  return e;
}

Bytes run_case(HostRank& rank, const Case& c, const Expectation& e) {
  const Bytes& in = e.inputs[static_cast<size_t>(rank.member)];
  Bytes out(in.size());
  Work work;
  prepare(work, c, rank.size);
  work.runs[0].add(in.data(), out.data(), c.count);
  const Status status = rank.group.run(work);
  EXPECT_TRUE(status.is_ok()) << status.message();
  return out;
}

void check_case(const Case& c, const Bytes& expected, const Bytes& out, bool exact) {
  const double tolerance = tolerance_of(c.dtype);
  EXPECT_TRUE(exact || tolerance == 0 ? same_bits(c.dtype, expected, out)
                                      : close_to(c.dtype, expected, out, tolerance))
      << dtype_text(c.dtype) << " op " << c.op << " count " << c.count;
}

class HostsReduce : public ::testing::TestWithParam<std::vector<int>> {
 protected:
  void run_cases(const std::vector<Case>& cases, bool exact,
                 const SocketSwitch::Options& options = {}) {
    Outputs outputs(GetParam().size());
    std::vector<Expectation> expected;
    for (const Case& c : cases)
      expected.push_back(expect_of(c, static_cast<int>(GetParam().size())));
    run_hosts(
        GetParam(),
        [&](HostRank& rank) {
          for (size_t i = 0; i < cases.size() && !rank.group.hosts().has_failed(); ++i) {
            const Bytes out = run_case(rank, cases[i], expected[i]);
            if (rank.member == 0) check_case(cases[i], expected[i].result, out, exact);
            outputs.put(rank.member, out);
          }
        },
        options);
    outputs.expect_all_equal();
  }
};

constexpr hvd_reduce_op kOps[] = {HVD_OP_AVERAGE, HVD_OP_SUM, HVD_OP_MIN, HVD_OP_MAX,
                                  HVD_OP_PRODUCT};

TEST_P(HostsReduce, EveryTypeAndOperationGivesTheReference) {
  std::vector<Case> cases;
  for (const hvd_dtype dtype : kAllDtypes) {
    for (const hvd_reduce_op op : kOps) {
      for (const size_t count : {size_t{0}, size_t{1}, size_t{37}, size_t{9001}})
        cases.push_back({.dtype = dtype, .op = op, .count = count});
    }
  }
  run_cases(cases, rounds_once(GetParam()));
}

TEST_P(HostsReduce, SizesAroundTheBordersOfBlocksGiveTheReference) {
  std::vector<Case> cases;
  constexpr size_t kSlot = 128 << 10;  // bytes: a slot of staging, a part of a block
  for (const size_t bytes : {kSlot, 2 * kSlot, 20 * kSlot}) {
    for (const int more : {-1, 0, 1}) {
      const size_t count = bytes / 4 + static_cast<size_t>(more);
      cases.push_back({.count = count});
    }
  }
  cases.push_back({.dtype = HVD_INT8, .count = 3 * kSlot + 5});
  cases.push_back({.dtype = HVD_BFLOAT16, .count = 5 * kSlot + 3});
  cases.push_back({.dtype = HVD_FLOAT64, .count = kSlot + 1});
  run_cases(cases, rounds_once(GetParam()));
}

TEST_P(HostsReduce, BlocksThatOverlapGiveTheReference) {
  std::vector<Case> cases;
  for (const size_t count : {1, 1000, 100001, 1000003}) cases.push_back({.count = count});
  cases.push_back({.dtype = HVD_BFLOAT16, .op = HVD_OP_AVERAGE, .count = 700001});
  cases.push_back({.dtype = HVD_INT64, .op = HVD_OP_MAX, .count = 200001});
  run_cases(cases, rounds_once(GetParam()), {.pace = collective::hosts::Pace::kDeep});
  run_cases(cases, rounds_once(GetParam()),
            {.buffer_bytes = 4096, .pace = collective::hosts::Pace::kDeep});
}

// Long enough that both paces are tried and one is chosen.
TEST_P(HostsReduce, MembersChangeTheirPaceTogether) {
  std::vector<Case> cases;
  for (int turn = 0; turn < 9; ++turn) {
    cases.push_back({.count = 300001});
    cases.push_back({.count = 5});
  }
  run_cases(cases, rounds_once(GetParam()));
}

// Chunks of which some lanes have no share, between others that overlap.
TEST_P(HostsReduce, TinyRunsBetweenLargeOnesDoNotHoldUpBlocksThatOverlap) {
  const std::vector<size_t> counts = {100000, 1, 1, 1, 1, 1, 1, 70001, 1, 2, 3};
  run_hosts(GetParam(),
            [&](HostRank& rank) {
              Work work;
              work.reset(WorkKind::kReduce);
              std::vector<std::vector<int32_t>> data;
              for (const size_t count : counts) {
                collective::Run& run = work.next_run();
                run.numeric.dtype = run.numeric.slot_dtype = DType::kInt32;
                data.emplace_back(count, rank.member + 1);
                run.add(data.back().data(), data.back().data(), count);
              }

              const Status status = rank.group.run(work);

              ASSERT_TRUE(status.is_ok()) << status.message();
              const int32_t sum = rank.size * (rank.size + 1) / 2;
              for (size_t i = 0; i < counts.size(); ++i)
                EXPECT_EQ(data[i], std::vector<int32_t>(counts[i], sum)) << "run " << i;
            },
            {.pace = collective::hosts::Pace::kDeep});
}

TEST_P(HostsReduce, ScaleFactorsAreAppliedOnce) {
  std::vector<Case> cases;
  for (const hvd_dtype dtype : {HVD_FLOAT32, HVD_FLOAT16, HVD_INT32, HVD_FLOAT64}) {
    for (const size_t count : {size_t{5}, size_t{100003}}) {
      cases.push_back({.dtype = dtype, .count = count, .prescale = 0.5, .postscale = 3.0});
      cases.push_back({.dtype = dtype, .op = HVD_OP_AVERAGE, .count = count, .prescale = 2.0});
    }
  }
  run_cases(cases, rounds_once(GetParam()));
}

TEST_P(HostsReduce, StreamsThatTakeFewBytesAtATimeGiveTheReference) {
  run_cases({{.count = 10}, {.count = 30001}, {.count = 3}, {.dtype = HVD_INT16, .count = 90001}},
            rounds_once(GetParam()), {.buffer_bytes = 1, .asks_before_ready = 50});
}

constexpr hvd_dtype kFloats[] = {HVD_FLOAT16, HVD_BFLOAT16, HVD_FLOAT32, HVD_FLOAT64};

// Runs a large float32 sum under each way to cut it.
void expect_same_bits_however_cut(const std::vector<int>& labels,
                                  const std::vector<collective::Cut>& cuts) {
  // A ring of 10 hosts has it in one block, or in three.
  const Case c{.count = 120011};
  const Expectation e = expect_of(c, static_cast<int>(labels.size()));
  run_hosts(labels, [&](HostRank& rank) {
    Bytes first;
    for (const collective::Cut& cut : cuts) {
      Work work;
      prepare(work, c, rank.size);
      work.cut = cut;
      const Bytes& in = e.inputs[static_cast<size_t>(rank.member)];
      Bytes out(in.size());
      work.runs[0].add(in.data(), out.data(), c.count);

      const Status status = rank.group.run(work);

      ASSERT_TRUE(status.is_ok()) << status.message();
      if (first.empty()) first = out;
      EXPECT_TRUE(out == first) << "chunk_bytes " << cut.chunk_bytes << ", part_bytes "
                                << cut.part_bytes;
    }
  });
}

// 0 (automatic) and every size that a tuning can have.
std::vector<uint32_t> levels_of(tune::Knob knob) {
  std::vector<uint32_t> levels = {0};
  for (const int64_t value : tune::info_of(knob).values)
    levels.push_back(static_cast<uint32_t>(value));
  return levels;
}

TEST_P(HostsReduce, NoSizeOfPartsOrChunksChangesABit) {
  std::vector<collective::Cut> cuts;
  for (const uint32_t bytes : levels_of(tune::Knob::kPartBytes))
    cuts.push_back({.part_bytes = bytes});
  for (const uint32_t bytes : levels_of(tune::Knob::kChunkBytes))
    cuts.push_back({.chunk_bytes = bytes});
  expect_same_bits_however_cut(GetParam(), cuts);
}

TEST(HostsRing, NoSizeOfChunksChangesABitOnHostsOfSeveralMembers) {
  std::vector<collective::Cut> cuts;
  for (const uint32_t bytes : levels_of(tune::Knob::kChunkBytes))
    cuts.push_back({.chunk_bytes = bytes});
  std::vector<int> labels;
  for (int member = 0; member < 18; ++member) labels.push_back(member / 2);
  expect_same_bits_however_cut(labels, cuts);
}

void expect_equal_numbers_unchanged(const std::vector<int>& labels) {
  run_hosts(labels, [&](HostRank& rank) {
    for (const hvd_dtype dtype : kFloats) {
      for (const size_t count : {size_t{1}, size_t{37}, size_t{9001}, size_t{300001}}) {
        const Case c{.dtype = dtype, .op = HVD_OP_AVERAGE, .count = count};
        const Bytes equal = make_data({.rank = 0, .dtype = dtype, .count = count});
        const Expectation e{std::vector<Bytes>(labels.size(), equal), equal};

        const Bytes out = run_case(rank, c, e);

        EXPECT_TRUE(same_bits(dtype, equal, out)) << dtype_text(dtype) << " count " << count;
      }
    }
  });
}

// Hosts of different size among them, and a ring.
TEST_P(HostsReduce, EqualNumbersAreTheirOwnAverage) { expect_equal_numbers_unchanged(GetParam()); }

TEST(HostsRing, EqualNumbersOnHostsOfSeveralMembersAreTheirOwnAverage) {
  std::vector<int> labels;
  for (int member = 0; member < 18; ++member) labels.push_back(member / 2);
  expect_equal_numbers_unchanged(labels);
}

// A rank that has all payloads combines them itself: not a bit may be different.
TEST_P(HostsReduce, SmallOperationsHaveTheBitsOfLargeOnes) {
  const auto layout = collective::hosts::HostLayout::of(GetParam());
  run_hosts(GetParam(), [&](HostRank& rank) {
    for (const hvd_dtype dtype : kFloats) {
      for (const hvd_reduce_op op : {HVD_OP_AVERAGE, HVD_OP_SUM}) {
        const Case c{.dtype = dtype, .op = op, .count = 5003, .prescale = 0.3, .postscale = 1.7};
        const Expectation e = expect_of(c, rank.size);
        Work work;
        prepare(work, c, rank.size);
        const collective::Numeric& n = work.runs[0].numeric;
        std::vector<Bytes> payloads;
        std::vector<const std::byte*> slots;
        for (const Bytes& input : e.inputs) {
          collective::put(n, payloads.emplace_back(input.size()).data(), input.data(), c.count);
          slots.push_back(payloads.back().data());
        }
        const auto me = static_cast<size_t>(rank.member);
        Bytes small(e.inputs[me].size());

        collective::small::combine_by_host(
            layout, n,
            {slots.data(), static_cast<unsigned>(rank.size), static_cast<unsigned>(me),
             e.inputs[me].data(), small.data(), nullptr, c.count});
        const Bytes large = run_case(rank, c, e);

        EXPECT_TRUE(same_bits(dtype, large, small)) << dtype_text(dtype) << " op " << op;
      }
    }
  });
}

TEST_P(HostsReduce, AdasumGivesTheReference) {
  std::vector<Case> cases;
  for (const hvd_dtype dtype : {HVD_FLOAT32, HVD_FLOAT64, HVD_FLOAT16}) {
    for (const size_t count : {size_t{1}, size_t{77}, size_t{50001}}) {
      cases.push_back({.dtype = dtype, .op = HVD_OP_ADASUM, .count = count, .prescale = 0.5});
    }
  }
  run_cases(cases, false);
}

// Group of tensors, some of them empty, two dtypes, in place; one member has joined.
TEST_P(HostsReduce, GroupsAreReducedPieceByPieceAndAJoinedMemberCountsAsZeros) {
  const std::vector<size_t> counts = {3, 0, 40000, 1, 17, 90001, 0};
  const auto joined = static_cast<int>(GetParam().size()) - 1;
  run_hosts(GetParam(), [&](HostRank& rank) {
    Work work;
    work.reset(WorkKind::kReduce);
    std::vector<Bytes> data, expected;
    std::vector<hvd_dtype> dtypes;
    for (const hvd_dtype dtype : {HVD_INT32, HVD_FLOAT32}) {
      collective::Run& run = work.next_run();
      run.numeric.dtype = run.numeric.slot_dtype = static_cast<DType>(dtype);
      for (size_t i = 0; i < counts.size(); ++i) {
        auto inputs = make_data_of_all(rank.size, {.dtype = dtype, .count = counts[i], .salt = i});
        std::fill(inputs.back().begin(), inputs.back().end(), std::byte{0});
        data.push_back(inputs[static_cast<size_t>(rank.member)]);
        expected.push_back(reference_allreduce({.dtype = dtype}, inputs));
        dtypes.push_back(dtype);
        std::byte* memory = rank.member == joined ? nullptr : data.back().data();
        run.add(memory, memory, counts[i]);
      }
    }

    const Status status = rank.group.run(work);

    ASSERT_TRUE(status.is_ok()) << status.message();
    for (size_t i = 0; i < data.size() && rank.member != joined; ++i) {
      EXPECT_TRUE(dtypes[i] == HVD_INT32 ? same_bits(dtypes[i], expected[i], data[i])
                                         : close_to(dtypes[i], expected[i], data[i], 2e-6))
          << "piece " << i;
    }
  });
}

TEST_P(HostsReduce, AWireTypeCarriesTheElements) {
  constexpr size_t kCount = 123457;
  Outputs outputs(GetParam().size());
  run_hosts(GetParam(), [&](HostRank& rank) {
    for (const DType wire : {DType::kFloat16, DType::kBfloat16}) {
      const auto inputs = make_data_of_all(rank.size, {.dtype = HVD_FLOAT32, .count = kCount});
      Bytes data = inputs[static_cast<size_t>(rank.member)];
      Work work;
      prepare(work, {.op = HVD_OP_AVERAGE, .count = kCount, .prescale = 0.25}, rank.size);
      work.runs[0].numeric.slot_dtype = wire;
      work.runs[0].add(data.data(), data.data(), kCount);

      const Status status = rank.group.run(work);

      ASSERT_TRUE(status.is_ok()) << status.message();
      outputs.put(rank.member, data);
      const Bytes expected = reference_allreduce(
          {.dtype = HVD_FLOAT32, .op = HVD_OP_AVERAGE, .prescale = 0.25}, inputs);
      EXPECT_TRUE(close_to(HVD_FLOAT32, expected, data, wire == DType::kFloat16 ? 2e-3 : 2e-2));
    }
  });
  outputs.expect_all_equal();
}

INSTANTIATE_TEST_SUITE_P(Layouts, HostsReduce, ::testing::ValuesIn(all_layouts()),
                         [](const auto& layout) {
                           std::string text = "Hosts" + layout_text(layout.param);
                           std::replace(text.begin(), text.end(), '+', '_');
                           return text;
                         });

}  // namespace
}  // namespace hvd::testing
