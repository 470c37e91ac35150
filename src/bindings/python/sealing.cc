// Sealed bytes for connections that Python makes: the channel of runner/common/service. The key
// belongs to one direction of one connection, and the number to one piece of it.
#include "bindings/python/functions.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "bindings/python/waiting.h"
#include "net/keys/aead.h"

namespace hvd::python {
namespace {

// No value: a Python exception is set. Valid as long as the argument.
std::optional<std::span<const uint8_t>> bytes_of(PyObject* object) {
  char* begin = nullptr;
  Py_ssize_t count = 0;
  if (PyBytes_AsStringAndSize(object, &begin, &count) != 0) return std::nullopt;
  return std::span(reinterpret_cast<const uint8_t*>(begin), static_cast<size_t>(count));
}

std::optional<net::Key> key_of(PyObject* object) {
  const auto bytes = bytes_of(object);
  if (!bytes) return std::nullopt;
  if (bytes->size() != net::kKeyBytes) {
    PyErr_Format(PyExc_ValueError, "a key has %zu bytes, got %zu", net::kKeyBytes, bytes->size());
    return std::nullopt;
  }
  return net::Key(bytes->first<net::kKeyBytes>());
}

std::optional<net::AeadNonce> nonce_of(PyObject* object) {
  const uint64_t number = PyLong_AsUnsignedLongLong(object);
  if (PyErr_Occurred() != nullptr) return std::nullopt;
  net::AeadNonce nonce{};
  std::memcpy(nonce.data(), &number, sizeof number);
  return nonce;
}

// Calls make(key, nonce, bytes) with what seal() and unseal() are given.
template <typename Make>
PyObject* with_arguments(Arguments arguments, const Make& make) {
  const auto key = key_of(arguments[0]);
  if (!key) return nullptr;
  const auto nonce = nonce_of(arguments[1]);
  if (!nonce) return nullptr;
  const auto bytes = bytes_of(arguments[2]);
  if (!bytes) return nullptr;
  return make(*key, *nonce, *bytes);
}

// Uninitialized bytes that nobody else knows yet.
PyObject* new_bytes(size_t count) {
  return PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(count));
}

uint8_t* begin_of(PyObject* bytes) { return reinterpret_cast<uint8_t*>(PyBytes_AsString(bytes)); }

}  // namespace

PyObject* seal(Arguments arguments) {
  return with_arguments(arguments,
                        [](const net::Key& key, const net::AeadNonce& nonce,
                           std::span<const uint8_t> plain) -> PyObject* {
                          PyObject* const out = new_bytes(plain.size() + net::kTagBytes);
                          if (out == nullptr) return nullptr;
                          const std::span<uint8_t> body(begin_of(out), plain.size());
                          const net::Tag tag = without_gil([&] {
                            std::copy(plain.begin(), plain.end(), body.begin());
                            return net::seal(key, nonce, {}, body);
                          });
                          std::copy(tag.begin(), tag.end(), begin_of(out) + plain.size());
                          return out;
                        });
}

PyObject* unseal(Arguments arguments) {
  return with_arguments(arguments,
                        [](const net::Key& key, const net::AeadNonce& nonce,
                           std::span<const uint8_t> sealed) -> PyObject* {
                          if (sealed.size() < net::kTagBytes) Py_RETURN_NONE;
                          const auto cipher = sealed.first(sealed.size() - net::kTagBytes);
                          net::Tag tag;
                          std::copy_n(sealed.last<net::kTagBytes>().begin(), tag.size(),
                                      tag.begin());
                          PyObject* const out = new_bytes(cipher.size());
                          if (out == nullptr) return nullptr;
                          // An empty result is an object that all share, so it is not written to.
                          const std::span<uint8_t> body(begin_of(out), cipher.size());
                          const bool is_good = without_gil([&] {
                            std::copy(cipher.begin(), cipher.end(), body.begin());
                            return net::unseal(key, nonce, {}, body, tag);
                          });
                          if (is_good) return out;
                          Py_DECREF(out);
                          Py_RETURN_NONE;
                        });
}

}  // namespace hvd::python
