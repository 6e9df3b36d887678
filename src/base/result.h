// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value, or an Error that says what, where and what to do next. For wrong input and environment;
// our own bugs are LOCKSTEP_CHECK. Member names follow std::expected.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>

namespace lockstep {

// For code that decides by it; people read the text.
enum class ErrorCode { kInvalidInput, kNotFound, kPermission, kIo, kUnsupported, kUsage };

struct Error {
  ErrorCode code = ErrorCode::kInvalidInput;
  std::string text;   // what is wrong and what to do next, one line
  std::string where;  // file, or file:offset; may be empty
  std::string message() const { return where.empty() ? text : where + ": " + text; }
};

inline Error usage_error(std::string text, std::string where = {}) {
  return {ErrorCode::kUsage, std::move(text), std::move(where)};
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)
  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  // The value of an error throws std::bad_variant_access, and so does the error of a value: ask first.
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), failed_(true) {}  // NOLINT(google-explicit-constructor)
  bool has_value() const { return !failed_; }
  explicit operator bool() const { return has_value(); }
  const Error& error() const { return error_; }

 private:
  Error error_;
  bool failed_ = false;
};

#define LOCKSTEP_CONCAT_(a, b) a##b
#define LOCKSTEP_CONCAT(a, b) LOCKSTEP_CONCAT_(a, b)
// LOCKSTEP_TRY(expr): return the error of a Result<void>. LOCKSTEP_ASSIGN(decl, expr): the same, or bind the
// value.
#define LOCKSTEP_TRY(expr)                                                \
  do {                                                                    \
    if (auto try_result = (expr); !try_result) return try_result.error(); \
  } while (0)
#define LOCKSTEP_ASSIGN(decl, expr)                                                           \
  auto LOCKSTEP_CONCAT(assign_, __LINE__) = (expr);                                           \
  if (!LOCKSTEP_CONCAT(assign_, __LINE__)) return LOCKSTEP_CONCAT(assign_, __LINE__).error(); \
  decl = std::move(LOCKSTEP_CONCAT(assign_, __LINE__)).value()

// An invariant of ours; stays on in release builds.
#define LOCKSTEP_CHECK(condition)                                                                      \
  do {                                                                                                 \
    if (!(condition)) {                                                                                \
      std::fprintf(stderr, "lockstep: internal error: %s at %s:%d\n", #condition, __FILE__, __LINE__); \
      std::abort();                                                                                    \
    }                                                                                                  \
  } while (0)

}  // namespace lockstep
