#include "bindings/tensorflow/held_done.h"

#include <utility>

#include "bindings/common/stack_bounds.h"

namespace hvd::tensorflow {

HeldDone::HeldDone(TF_AsyncOpKernelDoneCallback* done) {
  if (bindings::is_on_my_stack(done)) {
    copy_ = *reinterpret_cast<const std::function<void()>*>(done);
  } else {
    raw_ = done;
  }
}

void HeldDone::run() {
  if (raw_ != nullptr) {
    api().RunAsyncOpKernelDoneCallback(std::exchange(raw_, nullptr));
    return;
  }
  // Emptied first: what it calls may end the life of this object.
  const std::function<void()> done = std::move(copy_);
  done();
}

}  // namespace hvd::tensorflow
