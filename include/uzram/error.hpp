// Error codes and results.
//
// Role: the vocabulary in which every layer reports failure; it lies below all layers.
// Data path: functions return `Errc`, never throw, never allocate.
// Set-up and control: functions return `Result<T>`; an `Error` is a code, the errno that caused it
// (0 when there is none) and a message for people that names what was given, what was expected and
// what to do.
// Threads: plain values.
#pragma once

#include <cassert>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace uzram {

// What can go wrong on the data path and at set-up. The comment names the errno a block device
// would report.
enum class [[nodiscard]] Errc : std::uint8_t{
    ok = 0,
    invalid_argument,  // EINVAL: not sector-aligned, empty, an unknown operation or option value
    out_of_range,      // EINVAL or ENOSPC: the range ends beyond the device
    no_space,          // ENOSPC: over mem_limit, or no memory to be had; the old content stands
    corrupt,           // EIO: stored data did not decode, or does not have its checksum
    read_only,         // EPERM
    unsupported,       // ENOTSUP
    busy,              // EBUSY
    exists,            // EEXIST
    not_found,         // ENOENT
    incompressible,    // codec only: the result does not fit the room given
    system,            // a system call failed; Error::saved_errno says how
};

// The name of the errno that stands for `code`, such as "ENOSPC".
std::string_view errno_name(Errc code) noexcept;
// A short description of `code` in words.
std::string_view describe(Errc code) noexcept;

struct Error {
  Errc code = Errc::system;
  int saved_errno = 0;
  std::string message;
};

// Makes an Error of code `system` with `context: strerror(errno_value)`.
Error system_error(std::string_view context, int errno_value);

// A value or an Error, with the member names of std::expected.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  // REQUIRES: has_value().
  T& value() & noexcept { return *std::get_if<0>(&state_); }
  const T& value() const& noexcept { return *std::get_if<0>(&state_); }
  T&& value() && noexcept { return std::move(*std::get_if<0>(&state_)); }
  T& operator*() & noexcept { return value(); }
  const T& operator*() const& noexcept { return value(); }
  T&& operator*() && noexcept { return std::move(*this).value(); }
  T* operator->() noexcept { return &value(); }
  const T* operator->() const noexcept { return &value(); }

  // REQUIRES: !has_value().
  [[nodiscard]] const Error& error() const& noexcept { return *std::get_if<1>(&state_); }
  [[nodiscard]] Error&& error() && noexcept { return std::move(*std::get_if<1>(&state_)); }

 private:
  std::variant<T, Error> state_;
};

// A Result without a value.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error)
      : error_(std::move(error)), failed_(true) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool has_value() const noexcept { return !failed_; }
  explicit operator bool() const noexcept { return has_value(); }
  [[nodiscard]] const Error& error() const& noexcept {
    assert(failed_);
    return error_;
  }
  [[nodiscard]] Error&& error() && noexcept { return std::move(error_); }

 private:
  Error error_{};
  bool failed_ = false;
};

}  // namespace uzram
