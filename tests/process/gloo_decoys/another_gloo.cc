// Another Gloo in the process, such as the one inside torch, whose symbols everybody sees. Whoever
// is bound to it finds out.
#include <cstdio>
#include <cstdlib>

namespace {
[[noreturn]] void complain(const char* what) {
  std::fprintf(stderr, "bound to another Gloo: %s\n", what);
  std::abort();
}
}  // namespace

namespace gloo {
class AllreduceOptions;
class AlltoallvOptions;
class BroadcastOptions;
class Context;
void allreduce(const AllreduceOptions&) { complain("allreduce"); }
void alltoallv(AlltoallvOptions&) { complain("alltoallv"); }
void broadcast(BroadcastOptions&) { complain("broadcast"); }
namespace transport::tcp {
struct attr;
class Loop {
 public:
  void run();
};
void Loop::run() { complain("tcp::Loop::run"); }
}  // namespace transport::tcp
}  // namespace gloo
