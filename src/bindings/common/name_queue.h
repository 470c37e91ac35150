// name_queue.h - calls with the same name, one after the other.
//
// The core takes a name once at a time. A framework may run an operation again before its last
// execution has ended (iterations of a loop, a function called twice), so the later ones wait here,
// first come first served.
#pragma once

#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace hvd::bindings {

class Call;

// Thread: any.
class NameQueue {
 public:
  // Never destroyed: calls may end while the process does.
  static NameQueue& instance();

  // True: the name is free, and now the call's. False: some call's end will submit this one.
  bool enter(Call& call);

  // The call has ended. Returns the one to submit next, or null. A call that is not at the head,
  // which never was in the queue, changes nothing.
  Call* leave(Call& call);

 private:
  NameQueue() = default;

  std::mutex mutex_;
  std::unordered_map<std::string, std::vector<Call*>>
      waiting_;  // the head of each is with the core
};

}  // namespace hvd::bindings
