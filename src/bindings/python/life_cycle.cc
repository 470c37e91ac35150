// init, shutdown, and where this process stands.
#include "bindings/python/life_cycle.h"

#include <atomic>
#include <memory>
#include <vector>

#include "bindings/python/arguments.h"
#include "bindings/python/completions.h"
#include "bindings/python/errors.h"
#include "bindings/python/exchange.h"
#include "bindings/python/functions.h"
#include "bindings/python/handles.h"
#include "bindings/python/waiting.h"

namespace hvd::python {
namespace {

// Read by deleters on any thread; they need no more than a number that changes.
std::atomic<uint64_t> this_life{0};

// An init that Ctrl-C interrupted is still inside the core, and shutdown would wait for it.
std::atomic<int> running_inits{0};

// What an init needs, independent of Python objects: it may outlive an interrupted caller.
struct InitOptions {
  hvd_init_options options{};
  std::string job_id;
  std::vector<int32_t> ranks;
  std::vector<int32_t> sizes;
  std::vector<int32_t> mpi_ranks;
};

void read_topology(Reader& reader, hvd_topology& out) {
  if (reader.is_none(0)) return;
  Numbers numbers;
  reader.numbers(0, numbers);
  if (reader.failed()) return;
  if (numbers.count() != 6) {
    reader.reject("topology: expected 6 numbers, got %R", reader.object(0));
    return;
  }
  const int32_t* const n = numbers.data();
  out = {n[0], n[1], n[2], n[3], n[4], n[5]};
}

void read_sets(Reader& reader, PyObject* sets, InitOptions& init) {
  reader.for_each(sets, [&](PyObject* set) {
    Numbers ranks;
    reader.to_list(set, ranks);
    if (reader.failed()) return;
    init.ranks.insert(init.ranks.end(), ranks.data(), ranks.data() + ranks.count());
    init.sizes.push_back(ranks.count());
  });
  init.options.process_set_ranks = init.ranks.data();
  init.options.process_set_sizes = init.sizes.data();
  init.options.process_set_count = static_cast<int32_t>(init.sizes.size());
}

std::shared_ptr<InitOptions> read_options(Reader& reader) {
  auto init = std::make_shared<InitOptions>();
  hvd_init_options_init(&init->options);
  read_topology(reader, init->options.topology);
  if (const char* job_id = reader.text(1)) {
    init->job_id = job_id;
    init->options.job_id = init->job_id.c_str();
  }
  read_sets(reader, reader.object(2), *init);
  init->options.dynamic_process_sets = reader.flag(3) ? 1 : 0;
  init->options.progress = reader.int32(4);
  return init;
}

std::shared_ptr<InitOptions> read_mpi_options(Reader& reader) {
  auto init = std::make_shared<InitOptions>();
  hvd_init_options_init(&init->options);
  if (!reader.is_none(0)) init->options.mpi_comm = reader.address(0);
  Numbers ranks;
  reader.numbers(1, ranks);
  if (reader.failed()) return init;
  init->mpi_ranks.assign(ranks.data(), ranks.data() + ranks.count());
  init->options.mpi_ranks = init->mpi_ranks.data();
  init->options.mpi_rank_count = ranks.count();
  read_sets(reader, reader.object(2), *init);
  return init;
}

// `store` is a borrowed object that the ranks meet through, or null.
PyObject* start(const std::shared_ptr<InitOptions>& options, PyObject* store = nullptr) {
  if (hvd_is_initialized() != 0) Py_RETURN_NONE;
  running_inits.fetch_add(1);
  // Its own thread, because it waits for the other ranks and takes no deadline.
  const auto answer = call_interruptibly([options, store](Conversation& conversation) {
    Exchange exchange(store, conversation);
    if (store != nullptr) {
      options->options.exchange = exchange.functions();
      options->options.exchange_remove = Exchange::remove;
    }
    const hvd_status status = hvd_init(&options->options);
    if (status == HVD_OK) {
      this_life.fetch_add(1);
      Completions::instance().open();
    }
    running_inits.fetch_sub(1);
    return static_cast<int32_t>(status);
  });
  if (!answer) return nullptr;
  if (answer->value == HVD_OK) Py_RETURN_NONE;
  return raise(static_cast<hvd_status>(answer->value), answer->error.c_str());
}

}  // namespace

uint64_t current_life() { return this_life.load(std::memory_order_acquire); }

PyObject* init(Arguments arguments) {
  Reader reader(arguments);
  const auto options = read_options(reader);
  PyObject* const store = reader.is_none(5) ? nullptr : reader.object(5);
  return reader.failed() ? nullptr : start(options, store);
}

PyObject* init_mpi(Arguments arguments) {
  Reader reader(arguments);
  const auto options = read_mpi_options(reader);
  return reader.failed() ? nullptr : start(options);
}

PyObject* shutdown(Arguments) {
  if (running_inits.load() != 0) Py_RETURN_NONE;
  Handles::instance().shutdown_begins();
  this_life.fetch_add(1);  // first: a deleter that comes later finds nothing to free
  const hvd_status status = without_gil([] { return hvd_shutdown(); });
  Completions::instance().close();
  Handles::instance().shutdown_ends();
  return none_or_raise(status);
}

PyObject* is_initialized(Arguments) { return PyBool_FromLong(hvd_is_initialized()); }
PyObject* rank(Arguments) { return PyLong_FromLong(hvd_rank()); }
PyObject* size(Arguments) { return PyLong_FromLong(hvd_size()); }
PyObject* local_rank(Arguments) { return PyLong_FromLong(hvd_local_rank()); }
PyObject* local_size(Arguments) { return PyLong_FromLong(hvd_local_size()); }
PyObject* cross_rank(Arguments) { return PyLong_FromLong(hvd_cross_rank()); }
PyObject* cross_size(Arguments) { return PyLong_FromLong(hvd_cross_size()); }
PyObject* mpi_threads(Arguments) { return PyLong_FromLong(hvd_mpi_threads()); }
PyObject* is_homogeneous(Arguments) { return PyBool_FromLong(hvd_is_homogeneous() == 1 ? 1 : 0); }

}  // namespace hvd::python
