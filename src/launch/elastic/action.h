// action.h - what is to be done in an elastic job, and why. Pure values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "elastic/message.h"

namespace hvd::launch {

enum class ActionKind {
  kStart,   // a worker on a host
  kAssign,  // tell a worker its place in the new world
  kRemove,  // tell a worker that there is no place for it
  kBreak,   // tell a worker that its world has lost somebody
  kNews,    // tell a worker what has changed outside
  kKill,    // a worker that does not go by itself
  kSay,     // nothing but the reason
  kEnd,     // the job is over
};

struct Action {
  ActionKind kind = ActionKind::kSay;
  int32_t worker = -1;
  std::string host = {};       // kStart
  int32_t slot = 0;            // kStart: of the host
  elastic::Assign place = {};  // kAssign
  uint64_t epoch = 0;          // kBreak
  uint32_t changes = 0;        // kNews
  int exit_code = 0;           // kEnd; 0: it went well
  std::string event = {};      // one word for the event log; empty: not worth a line there
  std::string reason = {};     // for people
};
using Actions = std::vector<Action>;

}  // namespace hvd::launch
