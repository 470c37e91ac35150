// hello.cc - the smallest job: who am I, and one allreduce.
// Run it with two processes: horovodrun -np 2 ./hello
#include <cstdio>
#include <vector>

#include "horovod/hvd.hpp"

int main() {
  try {
    const horovod::Session session;
    std::vector<float> values = {static_cast<float>(session.rank()), 1.0f};
    horovod::Options sum;
    sum.op = horovod::ReduceOp::kSum;

    horovod::allreduce(values, sum);

    std::printf("rank %d of %d: the ranks add up to %g, and %g of them took part\n", session.rank(),
                session.size(), values[0], values[1]);
    return 0;
  } catch (const horovod::Error& error) {
    std::fprintf(stderr, "hello: %s\n", error.what());
    return 1;
  }
}
