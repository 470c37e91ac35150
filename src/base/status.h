// status.h - failure as a value.
// Status is OK or a code with a message; Result<T> is a T or a failed Status. Both [[nodiscard]].
// Messages start lower case, have no final full stop, and say who, what, expected, got.
// Pure values; any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace hvd {

enum class StatusCode : int {
#define HVD_STATUS_CODE(name, c_name, value, text) k##name = value,
#include "base/status_codes.def"
#undef HVD_STATUS_CODE
};

// For codes that come from elsewhere.
inline constexpr StatusCode kLastStatusCode = StatusCode::kRemoved;

const char* status_code_text(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message)
      : code_(code), message_(std::make_shared<const std::string>(std::move(message))) {}
  static Status ok() { return {}; }

  bool is_ok() const { return code_ == StatusCode::kOk; }
  explicit operator bool() const { return is_ok(); }
  StatusCode code() const { return code_; }
  const std::string& message() const {
    static const std::string kEmpty;
    return message_ == nullptr ? kEmpty : *message_;
  }
  bool operator==(const Status& other) const {
    return code_ == other.code_ && message() == other.message();
  }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::shared_ptr<const std::string>
      message_;  // shared by copies; null when OK, so that success costs nothing
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}            // NOLINT: implicit on purpose
  Result(Status failure) : status_(std::move(failure)) {}  // NOLINT: implicit on purpose

  bool is_ok() const { return value_.has_value(); }
  explicit operator bool() const { return is_ok(); }
  const Status& status() const { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }

 private:
  std::optional<T> value_;
  Status status_;
};

inline Status invalid_argument(std::string m) {
  return {StatusCode::kInvalidArgument, std::move(m)};
}
inline Status precondition_error(std::string m) {
  return {StatusCode::kPreconditionError, std::move(m)};
}
inline Status unknown_error(std::string m) { return {StatusCode::kUnknownError, std::move(m)}; }
inline Status corrupted(std::string m) { return {StatusCode::kCorrupted, std::move(m)}; }

// "<what>: <text of errno>"
Status errno_status(const std::string& what, int error_number);

// HVD_ASSERT is a statement about our code, never about input. It stops the process in every build.
[[noreturn]] void assertion_failed(const char* condition, const char* why, const char* file,
                                   int line);

}  // namespace hvd

#define HVD_ASSERT(condition, why)        \
  (static_cast<bool>(condition) ? void(0) \
                                : ::hvd::assertion_failed(#condition, why, __FILE__, __LINE__))

#define HVD_TRY(expression)                                                   \
  do {                                                                        \
    if (::hvd::Status hvd_try_status = (expression); !hvd_try_status.is_ok()) \
      return hvd_try_status;                                                  \
  } while (false)

#define HVD_CONCAT_INNER(a, b) a##b
#define HVD_CONCAT(a, b) HVD_CONCAT_INNER(a, b)
#define HVD_TRY_ASSIGN(declaration, expression) \
  HVD_TRY_ASSIGN_IMPL(HVD_CONCAT(hvd_try_result_, __LINE__), declaration, expression)
#define HVD_TRY_ASSIGN_IMPL(temporary, declaration, expression) \
  auto temporary = (expression);                                \
  if (!temporary.is_ok()) return temporary.status();            \
  declaration = std::move(*temporary)
