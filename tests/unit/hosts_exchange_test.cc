// Allgather, broadcast, alltoall, reducescatter and fence over simulated hosts.
#include <gtest/gtest.h>

#include <atomic>

#include "tests/support/reference.h"
#include "tests/unit/hosts_support.h"

namespace hvd::testing {
namespace {

using collective::Exchange;
using collective::Work;
using collective::WorkKind;

class HostsExchange : public ::testing::TestWithParam<std::vector<int>> {
 protected:
  int size() const { return static_cast<int>(GetParam().size()); }
};

Bytes run_exchange(HostRank& rank, Exchange x, uint64_t out_bytes) {
  Bytes out(out_bytes, std::byte{0xee});
  x.out = out.data();
  Work work;
  work.reset(WorkKind::kExchange);
  work.exchanges.push_back(std::move(x));
  const Status status = rank.group.run(work);
  EXPECT_TRUE(status.is_ok()) << status.message();
  return out;
}

Exchange gather_of(const std::vector<Bytes>& blocks, int me) {
  Exchange x;
  x.same_block_for_all = true;
  x.in = blocks[static_cast<size_t>(me)].data();
  x.send_offset = {0};
  x.send_bytes = {blocks[static_cast<size_t>(me)].size()};
  uint64_t offset = 0;
  for (const Bytes& block : blocks) {
    x.receive_offset.push_back(offset);
    x.receive_bytes.push_back(block.size());
    offset += block.size();
    x.largest_block_bytes = std::max<uint64_t>(x.largest_block_bytes, block.size());
  }
  return x;
}

// Uneven, some empty; the largest spans several slots.
std::vector<Bytes> uneven_blocks(int size, size_t scale) {
  std::vector<Bytes> blocks;
  for (int m = 0; m < size; ++m) {
    const size_t count = m % 3 == 1 ? 0 : scale * static_cast<size_t>(m + 1) + 1;
    blocks.push_back(make_data({.rank = m, .dtype = HVD_UINT8, .count = count}));
  }
  return blocks;
}

TEST_P(HostsExchange, AllgatherPutsEveryBlockInItsPlace) {
  run_hosts(GetParam(), [&](HostRank& rank) {
    for (const size_t scale : {size_t{0}, size_t{7}, size_t{130001}}) {
      const auto blocks = uneven_blocks(rank.size, scale);
      const Bytes expected = reference_allgather(blocks);

      const Bytes out = run_exchange(rank, gather_of(blocks, rank.member), expected.size());

      EXPECT_TRUE(out == expected) << "member " << rank.member << " scale " << scale;
    }
  });
}

TEST_P(HostsExchange, ManyBlocksOfOneWorkFollowEachOther) {
  run_hosts(GetParam(),
            [&](HostRank& rank) {
              const std::vector<size_t> scales = {5, 0, 60000, 1};
              Work work;
              work.reset(WorkKind::kExchange);
              std::vector<Bytes> expected, out;
              std::vector<std::vector<Bytes>> blocks;
              for (const size_t scale : scales) blocks.push_back(uneven_blocks(rank.size, scale));
              for (const auto& all : blocks) {
                expected.push_back(reference_allgather(all));
                out.emplace_back(expected.back().size());
                work.exchanges.push_back(gather_of(all, rank.member));
                work.exchanges.back().out = out.back().data();
              }

              const Status status = rank.group.run(work);

              ASSERT_TRUE(status.is_ok()) << status.message();
              EXPECT_TRUE(out == expected);
            },
            {.buffer_bytes = 1});
}

TEST_P(HostsExchange, BroadcastReachesAllFromEveryRoot) {
  run_hosts(GetParam(), [&](HostRank& rank) {
    for (int root = 0; root < rank.size; ++root) {
      for (const size_t bytes : {size_t{1}, size_t{4099}, size_t{700001}}) {
        const Bytes block = make_data({.rank = root, .dtype = HVD_UINT8, .count = bytes});
        Exchange x;
        x.same_block_for_all = true;
        x.largest_block_bytes = bytes;
        x.in = root == rank.member ? block.data() : nullptr;
        x.send_offset = {0};
        x.send_bytes = {root == rank.member ? bytes : 0};
        x.receive_offset.assign(static_cast<size_t>(rank.size), 0);
        x.receive_bytes.assign(static_cast<size_t>(rank.size), 0);
        x.receive_bytes[static_cast<size_t>(root)] = bytes;

        EXPECT_TRUE(run_exchange(rank, std::move(x), bytes) == block)
            << "root " << root << " member " << rank.member;
      }
    }
  });
}

TEST_P(HostsExchange, AlltoallTakesEveryRowToItsReceiver) {
  constexpr size_t kRowBytes = 37;
  run_hosts(GetParam(), [&](HostRank& rank) {
    for (const int scale : {1, 2999}) {
      std::vector<std::vector<int32_t>> splits;
      std::vector<Bytes> inputs;
      for (int from = 0; from < rank.size; ++from) {
        size_t rows = 0;
        auto& row = splits.emplace_back();
        for (int to = 0; to < rank.size; ++to) {
          row.push_back((from * 5 + to * 3) % 4 * scale);
          rows += static_cast<size_t>(row.back());
        }
        inputs.push_back(make_data({.rank = from, .dtype = HVD_UINT8, .count = rows * kRowBytes}));
      }
      Exchange x;
      x.in = inputs[static_cast<size_t>(rank.member)].data();
      x.largest_block_bytes = static_cast<uint64_t>(3 * scale) * kRowBytes;
      uint64_t sent = 0, received = 0;
      for (int other = 0; other < rank.size; ++other) {
        const auto me = static_cast<size_t>(rank.member), o = static_cast<size_t>(other);
        x.send_offset.push_back(sent);
        x.send_bytes.push_back(static_cast<uint64_t>(splits[me][o]) * kRowBytes);
        sent += x.send_bytes.back();
        x.receive_offset.push_back(received);
        x.receive_bytes.push_back(static_cast<uint64_t>(splits[o][me]) * kRowBytes);
        received += x.receive_bytes.back();
      }

      const Bytes out = run_exchange(rank, std::move(x), received);

      EXPECT_TRUE(out == reference_alltoall(inputs, splits, kRowBytes, rank.member));
    }
  });
}

constexpr size_t kRowElements = 11;

Exchange scatter_of(const collective::Numeric& numeric, const Bytes& input, int64_t rows, int size,
                    int me) {
  Exchange x;
  x.reduces = true;
  x.numeric = numeric;
  x.in = input.data();
  const auto shares = reference_scatter_rows(rows, size);
  const uint64_t row_bytes = kRowElements * numeric.element_bytes();
  uint64_t offset = 0;
  for (const int64_t share : shares) {
    x.send_offset.push_back(offset);
    x.send_bytes.push_back(static_cast<uint64_t>(share) * row_bytes);
    offset += x.send_bytes.back();
    x.receive_offset.push_back(0);
    x.receive_bytes.push_back(static_cast<uint64_t>(shares[static_cast<size_t>(me)]) * row_bytes);
    x.largest_block_bytes = std::max(x.largest_block_bytes, x.send_bytes.back());
  }
  return x;
}

TEST_P(HostsExchange, ReducescatterGivesEachMemberItsSummedRows) {
  run_hosts(GetParam(), [&](HostRank& rank) {
    for (const int64_t rows : {int64_t{1}, int64_t{30}, int64_t{20011}}) {
      const size_t count = static_cast<size_t>(rows) * kRowElements;
      const auto inputs = make_data_of_all(rank.size, {.dtype = HVD_INT32, .count = count});
      const ScatterSpec spec{.reduce = {.dtype = HVD_INT32, .op = HVD_OP_SUM},
                             .rows = rows,
                             .row_elements = kRowElements,
                             .receiver = rank.member};
      collective::Numeric numeric;
      numeric.dtype = numeric.slot_dtype = DType::kInt32;
      const Bytes& mine = inputs[static_cast<size_t>(rank.member)];
      const Bytes expected = reference_reducescatter(spec, inputs);

      const Bytes out = run_exchange(rank, scatter_of(numeric, mine, rows, rank.size, rank.member),
                                     expected.size());

      EXPECT_TRUE(same_bits(HVD_INT32, expected, out)) << "rows " << rows;
    }
  });
}

TEST_P(HostsExchange, EqualRowsOfAReducescatterAreTheirOwnAverage) {
  run_hosts(GetParam(), [&](HostRank& rank) {
    for (const hvd_dtype dtype : {HVD_FLOAT16, HVD_FLOAT32, HVD_FLOAT64}) {
      for (const int64_t rows : {int64_t{30}, int64_t{20011}}) {
        const size_t count = static_cast<size_t>(rows) * kRowElements;
        const std::vector<Bytes> inputs(static_cast<size_t>(rank.size),
                                        make_data({.rank = 0, .dtype = dtype, .count = count}));
        const ScatterSpec spec{.reduce = {.dtype = dtype, .op = HVD_OP_AVERAGE},
                               .rows = rows,
                               .row_elements = kRowElements,
                               .receiver = rank.member};
        collective::Numeric numeric;
        numeric.dtype = numeric.slot_dtype = static_cast<DType>(dtype);
        numeric.post.divisor = rank.size;
        const Bytes expected = reference_reducescatter(spec, inputs);

        const Bytes out = run_exchange(
            rank, scatter_of(numeric, inputs[0], rows, rank.size, rank.member), expected.size());

        EXPECT_TRUE(same_bits(dtype, expected, out)) << dtype_text(dtype) << " rows " << rows;
      }
    }
  });
}

TEST_P(HostsExchange, AMemberWithoutOutputStillServesTheOthers) {
  const int dropped = size() - 1;
  run_hosts(GetParam(), [&](HostRank& rank) {
    const auto blocks = uneven_blocks(rank.size, 50000);
    const Bytes expected = reference_allgather(blocks);
    Exchange x = gather_of(blocks, rank.member);
    Bytes out(expected.size());
    x.out = rank.member == dropped ? nullptr : out.data();
    Work work;
    work.reset(WorkKind::kExchange);
    work.exchanges.push_back(std::move(x));

    const Status status = rank.group.run(work);

    ASSERT_TRUE(status.is_ok()) << status.message();
    EXPECT_TRUE(rank.member == dropped || out == expected);
  });
}

TEST_P(HostsExchange, FenceActsOncePerHostWhenAllHaveComeAndBeforeAnyoneLeaves) {
  const auto layout = collective::hosts::HostLayout::of(GetParam());
  std::atomic<int> came{0}, acted{0};
  run_hosts(GetParam(), [&](HostRank& rank) {
    for (int round = 1; round <= 20; ++round) {
      Work work;
      work.reset(WorkKind::kFence);
      work.leader_action = [&] {
        EXPECT_GE(came.load(), round * rank.size);
        acted.fetch_add(1);
        return Status::ok();
      };
      came.fetch_add(1);

      const Status status = rank.group.run(work);

      ASSERT_TRUE(status.is_ok()) << status.message();
      EXPECT_GE(acted.load(), round * layout.host_count());
    }
  });
  EXPECT_EQ(acted.load(), 20 * layout.host_count());
}

INSTANTIATE_TEST_SUITE_P(Layouts, HostsExchange, ::testing::ValuesIn(all_layouts()),
                         [](const auto& layout) {
                           std::string text = "Hosts" + layout_text(layout.param);
                           std::replace(text.begin(), text.end(), '+', '_');
                           return text;
                         });

}  // namespace
}  // namespace hvd::testing
