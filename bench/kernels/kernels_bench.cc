// Speed of the element-wise kernels in each level of memory, beside Gloo's in the same run.
// Usage: hvd_bench_kernels [--quick] [--json FILE]
//
// out = a + b (or out = a), three arrays of the stated size. GB/s counts the bytes of one array.
// Rounds alternate: ours, peer, ours, peer, ...; a ratio is the median over rounds of (our speed /
// the peer's in that round), because the machine's own speed drifts.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "peer_kernels.h"
#include "reduce/half.h"
#include "reduce/kernels.h"

namespace hvd::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Level {
  const char* name;
  size_t array_bytes;
};
constexpr Level kLevels[] = {{"L1", 8 << 10}, {"L2", 128 << 10}, {"DRAM", 64 << 20}};

struct Effort {
  int rounds;
  std::chrono::duration<double> block;  // how long one contestant runs before the other's turn
};
constexpr Effort kFull{41, std::chrono::milliseconds(5)};
constexpr Effort kQuick{9, std::chrono::milliseconds(2)};

struct Case {
  std::string name;
  size_t array_bytes;
  std::function<void()> ours;
  const char* peer_name;
  std::function<void()> peer;  // may be empty
  std::optional<double> goal;  // least ratio promised
};
struct Row {
  std::string name;
  double ours;  // GB/s
  std::string peer_name;
  std::optional<double> peer;
  std::optional<double> ratio;
  std::optional<double> goal;
};

// Three arrays, aligned as frameworks align tensors, no two at the same place in a page; filled
// once and never grown by the sums.
class Arrays {
 public:
  explicit Arrays(size_t bytes)
      : stride_(bytes + 4096 + 256), memory_(3 * stride_ / sizeof(Line)) {}
  void fill(DType dtype) {
    for (int array = 0; array < 3; ++array) {
      for (size_t i = 0; i < (stride_ - 4096) / dtype_bytes(dtype); ++i) {
        const float value =
            0.25f + static_cast<float>((i * 7 + static_cast<size_t>(array)) % 97) / 64;
        store(dtype, array, i, value);
      }
    }
  }
  void* at(int array) { return memory_[static_cast<size_t>(array) * stride_ / sizeof(Line)].bytes; }

 private:
  void store(DType dtype, int array, size_t i, float value) {
    const double wide = value;
    const uint16_t half =
        dtype == DType::kFloat16 ? float_to_float16(value) : float_to_bfloat16(value);
    const void* from = &half;
    if (dtype == DType::kFloat32) from = &value;
    if (dtype == DType::kFloat64) from = &wide;
    const size_t size = dtype_bytes(dtype);
    std::memcpy(static_cast<std::byte*>(at(array)) + i * size, from, size);
  }

  struct alignas(64) Line {
    std::byte bytes[64];
  };
  size_t stride_;  // a multiple of a line
  std::vector<Line> memory_;
};

double seconds_for(const std::function<void()>& work, int repeats) {
  const auto begin = Clock::now();
  for (int i = 0; i < repeats; ++i) work();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

int repeats_for(const std::function<void()>& work, std::chrono::duration<double> block) {
  int repeats = 1;
  while (seconds_for(work, repeats) < block.count() && repeats < (1 << 24)) repeats *= 2;
  return repeats;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Row measure(const Case& c, const Effort& effort) {
  const auto speed = [&](const std::function<void()>& work, int repeats) {
    return static_cast<double>(c.array_bytes) * repeats / seconds_for(work, repeats) / 1e9;
  };
  const int our_repeats = repeats_for(c.ours, effort.block);
  const int peer_repeats = c.peer ? repeats_for(c.peer, effort.block) : 0;
  std::vector<double> ours, peer, ratios;
  for (int round = 0; round < effort.rounds; ++round) {
    ours.push_back(speed(c.ours, our_repeats));
    if (!c.peer) continue;
    peer.push_back(speed(c.peer, peer_repeats));
    ratios.push_back(ours.back() / peer.back());
  }
  Row row{c.name, median(ours), c.peer_name, {}, {}, c.goal};
  if (c.peer) {
    row.peer = median(peer);
    row.ratio = median(ratios);
  }
  return row;
}

Case sum_case(DType dtype, const Level& level, Arrays& arrays) {
  const size_t count = level.array_bytes / dtype_bytes(dtype);
  const PeerKernel peer = peer_sum(dtype);
  Case c{std::string(dtype_name(dtype)) + " sum " + level.name,
         level.array_bytes,
         {},
         peer.peer,
         {},
         {}};
  c.ours = [dtype, count, &arrays] {
    const void* sources[] = {arrays.at(0), arrays.at(1)};
    void* output = arrays.at(2);
    kernels().reduce({.dtype = dtype,
                      .op = ReduceOp::kSum,
                      .count = count,
                      .sources = sources,
                      .source_count = 2,
                      .outputs = &output,
                      .output_count = 1,
                      .post = {}});
  };
  if (peer.run != nullptr) {
    c.peer = [run = peer.run, count, &arrays] {
      run(arrays.at(2), arrays.at(0), arrays.at(1), count);
    };
  }
  if (dtype == DType::kFloat16 && std::strcmp(level.name, "L2") == 0) c.goal = 20.0;
  return c;
}

Case copy_case(const Level& level, Arrays& arrays) {
  const PeerKernel peer = peer_copy();
  const size_t bytes = level.array_bytes;
  return {std::string("copy ") + level.name,
          bytes,
          [bytes, &arrays] { kernels().copy_to_shared(arrays.at(2), arrays.at(0), bytes); },
          peer.peer,
          [run = peer.run, bytes, &arrays] { run(arrays.at(2), arrays.at(0), nullptr, bytes); },
          {}};
}

void print(const Row& row) {
  std::printf("%-20s %10.2f", row.name.c_str(), row.ours);
  if (row.ratio) std::printf(" %10.2f %-7s x%.2f", *row.peer, row.peer_name.c_str(), *row.ratio);
  if (row.goal)
    std::printf("  goal x%g: %s", *row.goal, *row.ratio >= *row.goal ? "met" : "MISSED");
  std::printf("\n");
}

nlohmann::json to_json(const Row& row) {
  nlohmann::json json = {{"case", row.name},
                         {"unit", "GB/s"},
                         {"ours", row.ours},
                         {"peers", nlohmann::json::object()},
                         {"ratios", nlohmann::json::object()}};
  if (row.ratio) {
    json["peers"][row.peer_name] = *row.peer;
    json["ratios"][row.peer_name] = *row.ratio;
  }
  if (row.goal) json["goal"] = *row.goal;
  return json;
}

std::vector<Row> run_all(const Effort& effort) {
  std::printf("table '%s'\n%-20s %10s %10s\n", kernels().name, "case", "GB/s", "peer GB/s");
  std::vector<Row> rows;
  const auto add = [&](const Case& c) {
    rows.push_back(measure(c, effort));
    print(rows.back());
  };
  for (const Level& level : kLevels) {
    Arrays arrays(level.array_bytes);
    for (const DType dtype :
         {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
      arrays.fill(dtype);
      add(sum_case(dtype, level, arrays));
    }
    add(copy_case(level, arrays));
  }
  return rows;
}

int main_of(const std::vector<std::string>& arguments) {
  Effort effort = kFull;
  std::string json_path;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--quick") {
      effort = kQuick;
    } else if (arguments[i] == "--json" && i + 1 < arguments.size()) {
      json_path = arguments[++i];
    } else {
      std::fprintf(stderr, "usage: hvd_bench_kernels [--quick] [--json FILE]; got '%s'\n",
                   arguments[i].c_str());
      return 2;
    }
  }
  nlohmann::json document = {{"bench", "kernels"}, {"rows", nlohmann::json::array()}};
  for (const Row& row : run_all(effort)) document["rows"].push_back(to_json(row));
  if (json_path.empty()) return 0;
  std::ofstream file(json_path);
  file << document.dump(2) << "\n";
  file.close();
  if (!file) {
    std::fprintf(stderr, "cannot write '%s'\n", json_path.c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace hvd::bench

int main(int argc, char** argv) { return hvd::bench::main_of({argv + 1, argv + argc}); }
