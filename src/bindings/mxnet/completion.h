// completion.h - how an operation tells MXNet's engine that it has ended.
//
// The engine hands over an object on its stack, three words that have never changed: copied, it can
// be used later, once, on any thread. An error is a pointer to a std::runtime_error, which the
// engine copies and throws at whoever reads a dependent array.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>

namespace hvd::mxnet {

class Completion {
 public:
  Completion() = default;
  explicit Completion(const void* on_complete) { std::memcpy(&raw_, on_complete, sizeof(raw_)); }

  // After this, what the operation refers to may be gone. `error` empty: it has succeeded.
  void run(const std::string& error) const {
    if (error.empty()) return raw_.function(raw_.engine, raw_.argument, nullptr);
    const std::runtime_error thrown(error);
    raw_.function(raw_.engine, raw_.argument, &thrown);
  }

 private:
  struct Raw {  // CallbackOnComplete
    void (*function)(void* engine, void* argument, const void* error);
    void* engine;
    void* argument;
  };
  Raw raw_ = {};
};

}  // namespace hvd::mxnet
