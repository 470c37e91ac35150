// program.h - what the ranks of an explored job do, as a value and as text.
//
//   "np=2 cap=1 : g1 B B g1? | B B g1 g1?"
//
// A part per rank; words in order. A word submits an operation: a letter for its kind and a digit
// for its name (see Kind below), then "!" if the rank waits for it at once. "g1?" waits for what
// was submitted as g1 before; "*" waits for everything. "T2" is rank 0's proposal to tune the
// channel otherwise (world.cc has the list). "hosts=2" deals the ranks out to hosts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hvd::explore {

enum class Kind : char {
  kAllreduce = 'r',      // one element
  kEager = 'e',          // allreduce of some hundred bytes: beside the record
  kLarge = 'l',          // allreduce of more than is ever deposited
  kEmpty = 'z',          // allreduce of nothing
  kUnnamed = 'u',        // allreduce without a name; the digit is its size
  kGroup = 'G',          // allreduce of two tensors as one operation: names 1a and 1b
  kPart = 'p',           // allreduce of tensor 1a alone: no partner of G1
  kAllgather = 'g',      // one row from rank 0 and none from others
  kBroadcast = 'b',      // from rank 0
  kAlltoall = 't',       // a row for each
  kReducescatter = 's',  // a row for each
  kBarrier = 'B',
  kJoin = 'J',
  kAddSet = 'P',     // opens a process set of all ranks; words behind it run there as "+r1"
  kRemoveSet = 'Q',  // removes it; another one may be opened in its memory
};

struct Word {
  enum class What { kSubmit, kWait, kWaitAll, kTune } what = What::kSubmit;
  Kind kind = Kind::kAllreduce;
  int name = 0;
  bool waits = false;
  bool in_second_set = false;

  bool operator==(const Word&) const = default;
};
bool changes_sets(const Word& word);

struct Program {
  int ranks = 2;
  int hosts = 1;
  int capacity = 1024;
  std::vector<std::vector<Word>> words;  // per rank

  bool operator==(const Program&) const = default;
};

std::string to_text(const Word& word);
std::string to_text(const Program& program);
// Null: the text is no program.
std::optional<Program> parse(const std::string& text);

struct Shape {
  int ranks = 2;
  int hosts = 1;
  int capacity = 2;
  int windows = 3;  // parts that all ranks go through one after the other
  int batch = 3;    // operations in the first half of a window, and in the second, at most
  // A rank waits for a window when it has submitted the next one: records of both are in flight.
  bool overlaps = false;
  std::string_view kinds = "rrreelzugbtsB";  // as often as they are drawn
  bool joins = false;
  bool sets = false;          // a second set is opened
  bool removes_sets = false;  // and removed again, and so on
  bool groups = true;
  bool tunes = false;  // rank 0 proposes another tuning now and then
  bool late = false;   // a tensor that some ranks submit in the first window and others in the last
};
// A program in which no rank can wait for another for ever: in each window a rank submits the first
// batch before it waits for anything of it, and the second before it waits for that or goes on.
Program random_program(uint64_t seed, const Shape& shape);

// Smaller programs that might fail in the same way, simplest first.
std::vector<Program> simpler(const Program& program);

}  // namespace hvd::explore
