#include "tests/explore/expected.h"

#include <cstring>

#include "base/text.h"
#include "engine/engine.h"

namespace hvd::explore {
namespace {

size_t count_of(const Word& word, int rank, int ranks) {
  switch (word.kind) {
    case Kind::kAllreduce:
    case Kind::kPart:
      return 1;
    case Kind::kBroadcast:
      return 3;
    case Kind::kGroup:
      return 2;
    case Kind::kEager:
      return 60;
    case Kind::kLarge:
      return 2100;
    case Kind::kUnnamed:
      return static_cast<size_t>(word.name) + 1;
    case Kind::kAllgather:
      return rank == 0 ? 1 : 0;
    case Kind::kAlltoall:
    case Kind::kReducescatter:
      return static_cast<size_t>(ranks);
    default:
      return 0;
  }
}

// Different for everything that could be mixed up.
int32_t value_of(const Word& word, int rank, int phase, int occurrence, size_t element) {
  return 1 + static_cast<int32_t>(element % 7) + 10 * rank + 100 * word.name + 1000 * occurrence +
         20000 * phase + (word.in_second_set ? 500000 : 0) +
         1000000 * (static_cast<int32_t>(word.kind) % 32);
}

}  // namespace

Call::Call(const Word& word, int rank, int ranks, int phase, int occurrence) : word_(word) {
  const size_t count = count_of(word, rank, ranks);
  for (size_t i = 0; i < count; ++i) input_.push_back(value_of(word, rank, phase, occurrence, i));
  const std::string name = concat(static_cast<char>(word.kind), word.name);
  if (word.kind == Kind::kGroup) {
    names_ = {concat("G", word.name, "a"), concat("G", word.name, "b")};
  } else if (word.kind == Kind::kPart) {
    names_ = {concat("G", word.name, "a")};
  } else if (word.kind == Kind::kBarrier) {
    names_ = {std::string(engine::kBarrierName)};
  } else if (word.kind != Kind::kJoin && !changes_sets(word)) {
    names_ = {word.kind == Kind::kUnnamed ? "" : name};
  }
  shape_ = {static_cast<int64_t>(names_.empty() ? 0 : count / names_.size())};
  if (word.kind == Kind::kAlltoall) splits_.assign(static_cast<size_t>(ranks), 1);
  for (int32_t member = 0; word.kind == Kind::kAddSet && member < ranks; ++member)
    set_ranks_.push_back(member);
  // The one that is open, whatever its number is (Rank::begin_internal).
  if (word.kind == Kind::kRemoveSet) set_ranks_ = {1};
}

void Call::set_buffers(const int32_t* input, int32_t* output) {
  const bool is_reduction = word_.kind != Kind::kAllgather && word_.kind != Kind::kAlltoall &&
                            word_.kind != Kind::kReducescatter;
  for (size_t i = 0; i < names_.size(); ++i) {
    engine::TensorArg tensor;
    tensor.name = names_[i];
    tensor.dtype = word_.kind == Kind::kBarrier ? DType::kUint8 : DType::kInt32;
    tensor.shape = shape_;
    tensor.splits = splits_;
    tensor.input = input + i;
    tensor.output = is_reduction ? output + i : nullptr;
    tensors_.push_back(tensor);
  }
}

engine::Submission Call::submission() const {
  engine::Submission s;
  switch (word_.kind) {
    case Kind::kAllgather:
      s.kind = wire::Kind::kAllgather;
      break;
    case Kind::kBroadcast:
      s.kind = wire::Kind::kBroadcast;
      break;
    case Kind::kAlltoall:
      s.kind = wire::Kind::kAlltoall;
      break;
    case Kind::kReducescatter:
      s.kind = wire::Kind::kReducescatter;
      break;
    case Kind::kBarrier:
      s.kind = wire::Kind::kBarrier;
      break;
    case Kind::kJoin:
      s.kind = wire::Kind::kJoin;
      break;
    case Kind::kAddSet:
      s.kind = wire::Kind::kProcessSetAdd;
      break;
    case Kind::kRemoveSet:
      s.kind = wire::Kind::kProcessSetRemove;
      break;
    default:
      s.kind = wire::Kind::kAllreduce;
      break;
  }
  if (s.kind == wire::Kind::kBroadcast) s.root_rank = 0;
  s.tensors = tensors_;
  s.ranks = set_ranks_;
  return s;
}

Expected::Expected(const Program& program) : ranks_(program.ranks) {
  std::map<int, std::pair<bool, bool>> groupings;
  for (size_t rank = 0; rank < program.words.size(); ++rank) {
    std::map<std::tuple<bool, Kind, int>, int> seen;
    int phase = 0;
    for (const Word& word : program.words[rank]) {
      if (word.what != Word::What::kSubmit) continue;
      const int occurrence = seen[{word.in_second_set, word.kind, word.name}]++;
      takes_part_[{word.in_second_set, word.kind, word.name, phase, occurrence}] |= 1u << rank;
      if (word.kind == Kind::kGroup) groupings[word.name].first = true;
      removes_sets_ = removes_sets_ || word.kind == Kind::kRemoveSet;
      if (word.kind == Kind::kPart) groupings[word.name].second = true;
      if (word.kind != Kind::kJoin) continue;
      ++phase;
      seen.clear();
    }
  }
  for (const auto& [name, grouped] : groupings)
    has_other_groupings_ = has_other_groupings_ || (grouped.first && grouped.second);
}

std::vector<int32_t> Expected::result(int rank, const Word& word, int phase, int occurrence) const {
  const auto value = [&](int of, size_t element) {
    return value_of(word, of, phase, occurrence, element);
  };
  const auto found =
      takes_part_.find({word.in_second_set, word.kind, word.name, phase, occurrence});
  const uint32_t members = found == takes_part_.end() ? 0 : found->second;
  const auto sum = [&](size_t element) {
    int32_t total = 0;
    for (int of = 0; of < ranks_; ++of) total += (members >> of & 1) != 0 ? value(of, element) : 0;
    return total;
  };
  std::vector<int32_t> expected;
  switch (word.kind) {
    case Kind::kAllgather:
      expected = {value(0, 0)};
      break;
    case Kind::kAlltoall:
      for (int of = 0; of < ranks_; ++of) expected.push_back(value(of, static_cast<size_t>(rank)));
      break;
    case Kind::kReducescatter:
      expected = {sum(static_cast<size_t>(rank))};
      break;
    case Kind::kBroadcast:
      for (size_t i = 0; i < count_of(word, rank, ranks_); ++i) expected.push_back(value(0, i));
      break;
    default:
      for (size_t i = 0; i < count_of(word, rank, ranks_); ++i) expected.push_back(sum(i));
  }
  return expected;
}

std::string Expected::complaint(int rank, const Word& word, int phase, int occurrence,
                                const Answer& answer) const {
  const std::string who =
      concat(to_text(word), " (", occurrence, ". time, after ", phase, " joins)");
  if (!answer.status.is_ok()) {
    const bool may_be_refused = has_other_groupings_ &&
                                (word.kind == Kind::kGroup || word.kind == Kind::kPart) &&
                                answer.status.code() == StatusCode::kPreconditionError;
    const bool may_be_aborted =
        removes_sets_ && word.in_second_set && answer.status.code() == StatusCode::kAborted;
    return may_be_refused || may_be_aborted ? ""
                                            : concat(who, " failed: ", answer.status.message());
  }
  if (word.kind == Kind::kBarrier || word.kind == Kind::kJoin || changes_sets(word)) return "";
  const std::vector<int32_t> expected = result(rank, word, phase, occurrence);
  std::vector<int32_t> got = answer.output;
  const bool core_allocated = word.kind == Kind::kAllgather || word.kind == Kind::kAlltoall ||
                              word.kind == Kind::kReducescatter;
  if (core_allocated) {
    got.resize(answer.bytes / sizeof(int32_t));
    if (!got.empty()) std::memcpy(got.data(), answer.data, answer.bytes);
  }
  if (got == expected) return "";
  const auto text = [](const std::vector<int32_t>& values) {
    std::string all;
    for (size_t i = 0; i < values.size() && i < 4; ++i) all += concat(i > 0 ? " " : "", values[i]);
    return all;
  };
  return concat(who, " gave ", text(got), ", expected ", text(expected));
}

}  // namespace hvd::explore
