// The library as a front end meets it: loaded at run time, at size 1, with nothing in the
// environment.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <horovod/hvd.h>
#include <stdlib.h>

#include <string>
#include <utility>

namespace hvd::package {
namespace {

class LoadedLibrary : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK",
                             "HOROVOD_LOCAL_SIZE", "HOROVOD_CROSS_RANK", "HOROVOD_CROSS_SIZE"}) {
      unsetenv(name);
    }
    library_ = dlopen(HVD_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
  }

  void TearDown() override { close_library(); }
  void close_library() {
    if (void* const library = std::exchange(library_, nullptr)) dlclose(library);
  }

  template <class Function>
  Function* find(const char* name) {
    void* address = dlsym(library_, name);
    EXPECT_NE(address, nullptr) << dlerror();
    return reinterpret_cast<Function*>(address);
  }

  std::string last_error() { return find<decltype(hvd_last_error)>("hvd_last_error")(); }

 private:
  void* library_ = nullptr;
};

TEST_F(LoadedLibrary, HasTheInterfaceVersionOfTheHeader) {
  EXPECT_EQ(find<decltype(hvd_abi_version)>("hvd_abi_version")(), HVD_ABI_VERSION);
}

TEST_F(LoadedLibrary, AnswersMinusOneBeforeInitAndAfterShutdown) {
  auto* init = find<decltype(hvd_init)>("hvd_init");
  auto* shutdown = find<decltype(hvd_shutdown)>("hvd_shutdown");
  auto* rank = find<decltype(hvd_rank)>("hvd_rank");
  auto* size = find<decltype(hvd_size)>("hvd_size");

  EXPECT_EQ(rank(), -1);
  EXPECT_EQ(size(), -1);
  ASSERT_EQ(init(nullptr), HVD_OK) << last_error();
  EXPECT_EQ(rank(), 0);
  EXPECT_EQ(size(), 1);
  ASSERT_EQ(shutdown(), HVD_OK) << last_error();
  EXPECT_EQ(rank(), -1);
  EXPECT_EQ(size(), -1);
}

TEST_F(LoadedLibrary, StartsAgainAfterShutdown) {
  auto* init = find<decltype(hvd_init)>("hvd_init");
  auto* shutdown = find<decltype(hvd_shutdown)>("hvd_shutdown");
  auto* is_initialized = find<decltype(hvd_is_initialized)>("hvd_is_initialized");

  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(init(nullptr), HVD_OK) << last_error();
    EXPECT_EQ(is_initialized(), 1);
    ASSERT_EQ(shutdown(), HVD_OK) << last_error();
    EXPECT_EQ(is_initialized(), 0);
  }
}

TEST_F(LoadedLibrary, RefusesToSubmitBeforeInitAndSaysSo) {
  auto* barrier = find<decltype(hvd_barrier)>("hvd_barrier");

  EXPECT_EQ(barrier(0, HVD_FOREVER), HVD_PRECONDITION_ERROR);
  EXPECT_NE(last_error(), "");
}

// What it does at exit of the process, such as MPI_Finalize, must still be there. A suite, and so a
// process, of its own: a library that was used in this one is held by the destructors of the
// thread.
class ClosedLibrary : public LoadedLibrary {};

TEST_F(ClosedLibrary, IsStillThere) {
  close_library();

  void* again = dlopen(HVD_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(again, nullptr);
  dlclose(again);
}

}  // namespace
}  // namespace hvd::package
