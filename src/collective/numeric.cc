#include "collective/numeric.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "shm/job_layout.h"

namespace hvd::collective {
namespace {

// Elements that need another form than the user's are formed here, a block at a time, within L1.
constexpr size_t kBlockElements = 1024;
struct Scratch {
  alignas(64) std::byte slot_form[kBlockElements * 8];
  alignas(64) std::byte result[kBlockElements * 8];
};
// On the heap: a library that is loaded at run time gets little memory for thread-local variables.
Scratch& scratch() {
  thread_local const std::unique_ptr<Scratch> memory = std::make_unique<Scratch>();
  return *memory;
}

void put_block(const Numeric& n, std::byte* slot, const std::byte* in, size_t count) {
  const Kernels& k = kernels();
  if (in == nullptr) {
    std::memset(slot, 0, count * n.slot_bytes());
  } else if (n.slot_dtype != n.dtype) {
    k.narrow(n.slot_dtype, slot, reinterpret_cast<const float*>(in), count, n.pre);
  } else {
    k.scale(n.dtype, slot, in, count, n.pre);
  }
}

void get_block(const Numeric& n, std::byte* out, const std::byte* slot, size_t count) {
  if (n.slot_dtype != n.dtype) {
    kernels().widen(n.slot_dtype, reinterpret_cast<float*>(out), slot, count, Scale{});
  } else {
    std::memcpy(out, slot, count * n.element_bytes());
  }
}

void combine_plain(const Numeric& n, const Combine& args) {
  const void* sources[shm::kMaxRanks];
  for (unsigned r = 0; r < args.rank_count; ++r) sources[r] = args.slots[r];
  sources[args.own] = args.in;
  void* outputs[2] = {args.out, args.slot_out};
  ReduceArgs reduce{n.dtype, n.op, args.count, sources, args.rank_count, outputs, 2, n.post};
  if (args.slot_out == nullptr) reduce.output_count = 1;
  kernels().reduce(reduce);
}

}  // namespace

void put(const Numeric& n, std::byte* slot, const std::byte* in, size_t count) {
  if (in != nullptr && n.is_plain()) {
    kernels().copy_to_shared(slot, in, count * n.element_bytes());
    return;
  }
  put_block(n, slot, in, count);
}

void get(const Numeric& n, std::byte* out, const std::byte* slot, size_t count) {
  if (out == nullptr) return;
  if (n.slot_dtype == n.dtype) {
    kernels().copy_from_shared(out, slot, count * n.element_bytes());
    return;
  }
  get_block(n, out, slot, count);
}

void combine(const Numeric& n, const Combine& args) {
  if (n.is_plain() && args.in != nullptr && args.out != nullptr) return combine_plain(n, args);
  Numeric slot_form = n;
  slot_form.dtype = n.slot_dtype;
  slot_form.pre = Scale{};
  for (size_t at = 0; at < args.count; at += kBlockElements) {
    const size_t count = std::min(kBlockElements, args.count - at);
    put_block(n, scratch().slot_form,
              args.in == nullptr ? nullptr : args.in + at * n.element_bytes(), count);
    const std::byte* slots[shm::kMaxRanks];
    for (unsigned r = 0; r < args.rank_count; ++r) {
      slots[r] = r == args.own ? nullptr : args.slots[r] + at * n.slot_bytes();
    }
    Combine block = args;
    block.slots = slots;
    block.in = scratch().slot_form;
    block.out = scratch().result;
    block.slot_out = args.slot_out == nullptr ? nullptr : args.slot_out + at * n.slot_bytes();
    block.count = count;
    combine_plain(slot_form, block);
    if (args.out != nullptr)
      get_block(n, args.out + at * n.element_bytes(), scratch().result, count);
  }
}

}  // namespace hvd::collective
