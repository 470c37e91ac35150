// reduce_loop.h - the loops of reduce(): all sources in, one result to all outputs, one pass.
// Each element is loaded from every source before it is stored anywhere, so an output may equal a
// source. Internal linkage (see half.h). Pure; any thread.
#pragma once

#include <type_traits>

#include "reduce/combine_ops.h"
#include "reduce/formats.h"

namespace hvd {
namespace {

// Where to read and write. With the counts known the pointers live in registers.
template <unsigned kSources, unsigned kOutputs>
struct FixedStreams {
  static constexpr size_t kBlockBytes = kLineBytes;
  const char* sources[kSources];
  char* outputs[kOutputs];

  explicit FixedStreams(const ReduceArgs& args) {
    for (unsigned s = 0; s < kSources; ++s) sources[s] = static_cast<const char*>(args.sources[s]);
    for (unsigned o = 0; o < kOutputs; ++o) outputs[o] = static_cast<char*>(args.outputs[o]);
  }
  static constexpr unsigned source_count() { return kSources; }
  static constexpr unsigned output_count() { return kOutputs; }
  const char* source(unsigned s) const { return sources[s]; }
  char* output(unsigned o) const { return outputs[o]; }
};

// Every source is also an output, in the same order: half as many pointers.
template <unsigned kSources>
struct InPlaceStreams {
  static constexpr size_t kBlockBytes = kLineBytes;
  char* buffers[kSources];

  explicit InPlaceStreams(const ReduceArgs& args) {
    for (unsigned s = 0; s < kSources; ++s) buffers[s] = static_cast<char*>(args.outputs[s]);
  }
  static constexpr unsigned source_count() { return kSources; }
  static constexpr unsigned output_count() { return kSources; }
  const char* source(unsigned s) const { return buffers[s]; }
  char* output(unsigned o) const { return buffers[o]; }
};

// Any counts. The pointers are read again for each block, hence the longer block.
struct AnyStreams {
  static constexpr size_t kBlockBytes = 2 * kLineBytes;
  const void* const* sources;
  void* const* outputs;
  unsigned sources_count;
  unsigned outputs_count;

  explicit AnyStreams(const ReduceArgs& args)
      : sources(args.sources),
        outputs(args.outputs),
        sources_count(args.source_count),
        outputs_count(args.output_count) {}
  unsigned source_count() const { return sources_count; }
  unsigned output_count() const { return outputs_count; }
  const char* source(unsigned s) const { return static_cast<const char*>(sources[s]); }
  char* output(unsigned o) const { return static_cast<char*>(outputs[o]); }
};

template <class Format, class Op, bool kScaled, class Streams>
class ReduceLoop {
 public:
  ReduceLoop(const Streams& streams, const typename Format::Post* post)
      : streams_(streams), post_(post) {}

  [[gnu::always_inline]] void run(size_t bytes) const {
    if (bytes >= Streams::kBlockBytes) {
      sweep<Streams::kBlockBytes / Format::kPackBytes>(bytes);
    } else if (bytes >= Format::kPackBytes) {
      sweep<1>(bytes);
    } else {
      for (size_t at = 0; at < bytes; at += Format::kElementBytes) one(at);
    }
  }

 private:
  template <int kPacks>
  struct Block {
    typename Format::Pack packs[kPacks];
  };

  template <int kPacks>
  [[gnu::always_inline]] Block<kPacks> block_at(size_t at) const {
    Block<kPacks> block;
    for (int p = 0; p < kPacks; ++p) {
      block.packs[p] = Format::load(streams_.source(0) + at + p * Format::kPackBytes);
    }
    for (unsigned s = 1; s < streams_.source_count(); ++s) {
      const char* source = streams_.source(s) + at;
      for (int p = 0; p < kPacks; ++p) {
        block.packs[p] = Format::template combine<Op>(
            block.packs[p], Format::load(source + p * Format::kPackBytes));
      }
    }
    if constexpr (kScaled) {
      for (int p = 0; p < kPacks; ++p) block.packs[p] = Format::scaled(block.packs[p], *post_);
    }
    return block;
  }

  template <int kPacks>
  [[gnu::always_inline]] void store_at(size_t at, const Block<kPacks>& block) const {
    for (unsigned o = 0; o < streams_.output_count(); ++o) {
      char* output = streams_.output(o) + at;
      for (int p = 0; p < kPacks; ++p) {
        Format::store(output + p * Format::kPackBytes, block.packs[p]);
      }
    }
  }

  // The last block ends where the data ends and may overlap the one before. It is computed first,
  // while its sources are still untouched, and stored last.
  template <int kPacks>
  [[gnu::always_inline]] void sweep(size_t bytes) const {
    constexpr size_t kStep = kPacks * Format::kPackBytes;
    const size_t last = bytes - kStep;
    const Block<kPacks> last_block = block_at<kPacks>(last);
    size_t at = 0;
    if (last > kFetchAheadBytes) {
      // Only lines of this call are fetched: the next ones may be in use by their owner.
      for (; at < last - kFetchAheadBytes; at += kStep) {
        for (unsigned o = 0; o < streams_.output_count(); ++o) {
          for (size_t line = 0; line < kStep; line += kLineBytes) {
            fetch_for_write(streams_.output(o) + at + kFetchAheadBytes + line);
          }
        }
        store_at(at, block_at<kPacks>(at));
      }
    }
    for (; at < last; at += kStep) store_at(at, block_at<kPacks>(at));
    store_at(last, last_block);
  }

  [[gnu::always_inline]] void one(size_t at) const {
    typename Format::Scalar value = Format::load_one(streams_.source(0) + at);
    for (unsigned s = 1; s < streams_.source_count(); ++s) {
      value = Format::template combine<Op>(value, Format::load_one(streams_.source(s) + at));
    }
    if constexpr (kScaled) value = Format::scaled(value, *post_);
    for (unsigned o = 0; o < streams_.output_count(); ++o) {
      Format::store_one(streams_.output(o) + at, value);
    }
  }

  Streams streams_;
  const typename Format::Post* post_;
};

template <class Format, class Op, class Streams>
[[gnu::noinline]] void reduce_plain(const ReduceArgs& args) {
  ReduceLoop<Format, Op, false, Streams>(Streams(args), nullptr)
      .run(args.count * Format::kElementBytes);
}
template <class Format, class Op, class Streams>
[[gnu::noinline]] void reduce_scaled(const ReduceArgs& args, typename Format::Post post) {
  ReduceLoop<Format, Op, true, Streams>(Streams(args), &post)
      .run(args.count * Format::kElementBytes);
}

// Whether a sum of floats is divided, as mean_format.h does it. Where the divisor is a power of two
// its inverse is exact, and of two equal numbers so is the sum: a product gives the same bits.
[[maybe_unused]] inline bool is_quotient(const ReduceArgs& args) {
  const int64_t divisor = args.post.divisor;
  if (args.source_count <= 2 && (divisor & (divisor - 1)) == 0) return false;
  return divisor != 1 && args.post.factor != static_cast<double>(divisor);
}

template <class Format, class Op, class Streams>
[[gnu::always_inline]] inline void reduce_streams(const ReduceArgs& args) {
  if (args.post.factor == 1.0 && args.post.divisor == 1) {
    return reduce_plain<Format, Op, Streams>(args);
  }
  if constexpr (requires { typename Format::Mean; } && std::is_same_v<Op, Sum>) {
    using Mean = typename Format::Mean;
    if (is_quotient(args)) {
      return reduce_scaled<Mean, Op, Streams>(args, typename Mean::Post(args));
    }
  }
  const typename Format::Post post(args.post);
  if (post.is_identity()) return reduce_plain<Format, Op, Streams>(args);
  reduce_scaled<Format, Op, Streams>(args, post);
}

// What one entry of the table points to.
template <class Format, class Op>
void reduce_entry(const ReduceArgs& args) {
  reduce_streams<Format, Op, AnyStreams>(args);
}
// The same for combinations that are worth more code: sums of floats.
template <class Format, class Op>
void reduce_hot_entry(const ReduceArgs& args) {
  if (args.source_count == 2) {
    if (args.output_count == 1) return reduce_streams<Format, Op, FixedStreams<2, 1>>(args);
    if (args.output_count == 2) return reduce_streams<Format, Op, FixedStreams<2, 2>>(args);
  }
  reduce_streams<Format, Op, AnyStreams>(args);
}

template <class Format, class Op, unsigned kSources>
void reduce_counted(const ReduceArgs& args) {
  if (args.output_count == 1) return reduce_streams<Format, Op, FixedStreams<kSources, 1>>(args);
  bool in_place = args.output_count == kSources;
  for (unsigned s = 0; in_place && s < kSources; ++s) in_place = args.outputs[s] == args.sources[s];
  if (in_place) return reduce_streams<Format, Op, InPlaceStreams<kSources>>(args);
  reduce_streams<Format, Op, AnyStreams>(args);
}
// The hottest of all, the sum of float32: what 2, 3, 4 or 8 processes on a machine ask for.
template <class Format, class Op>
void reduce_hottest_entry(const ReduceArgs& args) {
  switch (args.source_count) {
    case 3:
      return reduce_counted<Format, Op, 3>(args);
    case 4:
      return reduce_counted<Format, Op, 4>(args);
    case 8:
      return reduce_counted<Format, Op, 8>(args);
    default:
      return reduce_hot_entry<Format, Op>(args);
  }
}

}  // namespace
}  // namespace hvd
