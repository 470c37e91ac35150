// The table of plugin.h on Gloo. Nothing throws out of here.
#include <dlfcn.h>
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/alltoallv.h>
#include <gloo/broadcast.h>
#include <gloo/config.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "gloo/plugin.h"
#include "plugins/gloo/group.h"

struct hvd_gloo_device {
  std::shared_ptr<gloo::transport::Device> device;
};
struct hvd_gloo_group : hvd_gloo::Group {
  using hvd_gloo::Group::Group;
};

namespace {

void say(hvd_gloo_error* error, const char* text) {
  if (error == nullptr) return;
  const size_t length = std::min(std::strlen(text), sizeof error->text - 1);
  std::memcpy(error->text, text, length);
  error->text[length] = '\0';
}

// Gloo writes to connections whose other end may have gone, and does not ask for an error in place
// of SIGPIPE, which ends a process that has not said otherwise. The thread of a device inherits it.
class WithoutPipeSignal {
 public:
  WithoutPipeSignal() {
    sigset_t pending;
    was_pending_ = sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~WithoutPipeSignal() {
    const timespec at_once{};
    while (!was_pending_ && sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutPipeSignal(const WithoutPipeSignal&) = delete;
  WithoutPipeSignal& operator=(const WithoutPipeSignal&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool was_pending_ = false;
};

template <typename Fn>
bool guarded(hvd_gloo_error* error, const Fn& fn) {
  const WithoutPipeSignal quiet;
  try {
    fn();
    return true;
  } catch (const std::exception& thrown) {
    say(error, thrown.what());
  } catch (...) {
    say(error, "unknown exception");
  }
  return false;
}

// One collective of a group.
template <typename Fn>
hvd_gloo_result run(hvd_gloo_group* group, hvd_gloo_error* error, const Fn& fn) {
  const bool is_done = guarded(error, [&] {
    group->begin();
    fn(group->next_tag());
    group->finish();
  });
  return is_done ? HVD_GLOO_OK : HVD_GLOO_FAILED;
}

const char* description() {
  static const std::string text = [] {
    Dl_info info{};
    const auto* const function = reinterpret_cast<const void*>(
        static_cast<void (*)(gloo::BroadcastOptions&)>(gloo::broadcast));
    const bool is_found = dladdr(function, &info) != 0 && info.dli_fname != nullptr;
    return "Gloo " + std::to_string(GLOO_VERSION_MAJOR) + "." + std::to_string(GLOO_VERSION_MINOR) +
           "." + std::to_string(GLOO_VERSION_PATCH) + ", " +
           (is_found ? info.dli_fname : "of unknown origin");
  }();
  return text.c_str();
}

hvd_gloo_device* open_device(const char* address, hvd_gloo_error* error) {
  hvd_gloo_device* out = nullptr;
  guarded(error, [&] {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = address;
    out = new hvd_gloo_device{gloo::transport::tcp::CreateDevice(attributes)};
  });
  return out;
}

void close_device(hvd_gloo_device* device) {
  guarded(nullptr, [&] { delete device; });
}

hvd_gloo_group* open_group(hvd_gloo_device* device, int32_t rank, int32_t size,
                           int64_t time_limit_ms, hvd_gloo_error* error) {
  hvd_gloo_group* out = nullptr;
  guarded(error, [&] {
    out = new hvd_gloo_group(device->device, rank, size, std::chrono::milliseconds(time_limit_ms));
  });
  return out;
}

size_t address_for(hvd_gloo_group* group, int32_t peer, void* out, size_t capacity) {
  size_t length = 0;
  guarded(nullptr, [&] {
    const std::vector<char> bytes = group->address_for(peer);
    if (bytes.size() > capacity) return;
    std::memcpy(out, bytes.data(), bytes.size());
    length = bytes.size();
  });
  return length;
}

hvd_gloo_result connect(hvd_gloo_group* group, const void* const* addresses, const size_t* lengths,
                        hvd_gloo_error* error) {
  return guarded(error, [&] { group->connect(addresses, lengths); }) ? HVD_GLOO_OK
                                                                     : HVD_GLOO_FAILED;
}

void abort_calls(hvd_gloo_group* group, const char* why) {
  guarded(nullptr, [&] { group->abort(why); });
}

void close_group(hvd_gloo_group* group) {
  guarded(nullptr, [&] { delete group; });
}

// Gloo wants a type for the size of its elements alone.
template <typename Element>
void set_buffers(gloo::AllreduceOptions& options, const hvd_gloo_allreduce_args& args) {
  auto* const out = static_cast<Element*>(args.out);
  auto* const in = static_cast<Element*>(const_cast<void*>(args.in));
  if (in != out) options.setInput(in, args.count);
  options.setOutput(out, args.count);
}

hvd_gloo_result allreduce(hvd_gloo_group* group, const hvd_gloo_allreduce_args* args,
                          hvd_gloo_error* error) {
  return run(group, error, [&](uint32_t tag) {
    gloo::AllreduceOptions options(group->context());
    switch (args->element_bytes) {
      case 1:
        set_buffers<uint8_t>(options, *args);
        break;
      case 2:
        set_buffers<uint16_t>(options, *args);
        break;
      case 4:
        set_buffers<uint32_t>(options, *args);
        break;
      default:
        set_buffers<uint64_t>(options, *args);
    }
    options.setReduceFunction([args](void* out, const void* a, const void* b, size_t count) {
      args->reduce(args->state, out, a, b, count);
    });
    options.setTag(tag);
    gloo::allreduce(options);
  });
}

hvd_gloo_result allgather(hvd_gloo_group* group, const void* in, void* out, const uint64_t* bytes,
                          hvd_gloo_error* error) {
  return run(group, error, [&](uint32_t tag) {
    gloo::AllgathervOptions options(group->context());
    const auto size = static_cast<size_t>(group->context()->size);
    const auto me = static_cast<size_t>(group->context()->rank);
    options.setInput(static_cast<char*>(const_cast<void*>(in)), bytes[me]);
    options.setOutput(static_cast<char*>(out), std::vector<size_t>(bytes, bytes + size));
    options.setTag(tag);
    gloo::allgatherv(options);
  });
}

hvd_gloo_result broadcast(hvd_gloo_group* group, const void* in, void* out, uint64_t bytes,
                          int32_t root, hvd_gloo_error* error) {
  return run(group, error, [&](uint32_t tag) {
    gloo::BroadcastOptions options(group->context());
    if (group->context()->rank == root && in != out)
      options.setInput(static_cast<char*>(const_cast<void*>(in)), bytes);
    options.setOutput(static_cast<char*>(out), bytes);
    options.setRoot(root);
    options.setTag(tag);
    gloo::broadcast(options);
  });
}

hvd_gloo_result alltoall(hvd_gloo_group* group, const void* in, const uint64_t* send_bytes,
                         void* out, const uint64_t* receive_bytes, hvd_gloo_error* error) {
  return run(group, error, [&](uint32_t tag) {
    gloo::AlltoallvOptions options(group->context());
    const auto size = static_cast<size_t>(group->context()->size);
    options.setInput(static_cast<char*>(const_cast<void*>(in)),
                     std::vector<int64_t>(send_bytes, send_bytes + size));
    options.setOutput(static_cast<char*>(out),
                      std::vector<int64_t>(receive_bytes, receive_bytes + size));
    options.setTag(tag);
    gloo::alltoallv(options);
  });
}

constexpr hvd_gloo_plugin kTable = {.version = HVD_GLOO_PLUGIN_VERSION,
                                    .struct_size = sizeof(hvd_gloo_plugin),
                                    .description = description,
                                    .open_device = open_device,
                                    .close_device = close_device,
                                    .open_group = open_group,
                                    .address_for = address_for,
                                    .connect = connect,
                                    .abort = abort_calls,
                                    .close_group = close_group,
                                    .allreduce = allreduce,
                                    .allgather = allgather,
                                    .broadcast = broadcast,
                                    .alltoall = alltoall};

}  // namespace

extern "C" __attribute__((visibility("default"))) const hvd_gloo_plugin* hvd_gloo_plugin_table() {
  return &kTable;
}
