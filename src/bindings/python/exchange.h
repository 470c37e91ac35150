// exchange.h - a store written in Python, as the core asks for it during init. The core asks on the
// thread of the init; the caller's thread, which has the GIL, calls the Python object.
#pragma once

#include "bindings/python/api.h"

#include "bindings/python/waiting.h"
#include "horovod/hvd.h"

namespace hvd::python {

// The object has set(key: str, value: bytes) and get(key: str, seconds: float) -> bytes or None,
// which means that the time is over. What it raises ends the init, and its caller sees it. It may
// have remove(key: str), whose errors count for nothing.
class Exchange {
 public:
  // `store` lives as long as the conversation's caller waits: it is a borrowed argument of init.
  Exchange(PyObject* store, Conversation& conversation)
      : store_(store), conversation_(conversation) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  hvd_exchange functions();
  // For hvd_init_options::exchange_remove; `context` is that of the functions.
  static void remove(void* context, const char* key);

 private:
  int32_t set(const char* key, const void* value, size_t bytes);
  int32_t get(const char* key, void* buffer, size_t capacity, size_t* bytes, int64_t timeout_ns);

  PyObject* store_;
  Conversation& conversation_;
};

}  // namespace hvd::python
