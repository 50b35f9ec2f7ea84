// Converts torch's exceptions: all code of muster that calls torch, or user code that does, goes through CatchTorch,
// and the callers above see an absl::Status. Thread-safe.
#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <new>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "muster/train/threads/error.h"

namespace muster {

// Returns the exception being handled as a Status: "<doing>: <message>", without torch's stack trace. Out of memory is
// ResourceExhausted; index, value and type errors are InvalidArgument; what torch doesn't implement is Unimplemented;
// an Error of muster's own façade, called by the user's code, keeps its Status; everything else is Unknown, which is
// never retried. Call it only inside a catch block.
inline absl::Status StatusFromException(absl::string_view doing) {
  const auto message = [doing](const char* what) {
    return absl::StrCat(doing, ": ", absl::StripAsciiWhitespace(what));
  };
  try {
    throw;
  } catch (const Error& error) {
    return error.status();
  } catch (const c10::OutOfMemoryError& error) {
    return absl::ResourceExhaustedError(message(error.what_without_backtrace()));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(message("out of memory"));
  } catch (const c10::NotImplementedError& error) {
    return absl::UnimplementedError(message(error.what_without_backtrace()));
  } catch (const c10::IndexError& error) {
    return absl::InvalidArgumentError(message(error.what_without_backtrace()));
  } catch (const c10::ValueError& error) {
    return absl::InvalidArgumentError(message(error.what_without_backtrace()));
  } catch (const c10::TypeError& error) {
    return absl::InvalidArgumentError(message(error.what_without_backtrace()));
  } catch (const c10::Error& error) {
    return absl::UnknownError(message(error.what_without_backtrace()));
  } catch (const std::exception& error) {
    return absl::UnknownError(message(error.what()));
  } catch (...) {
    return absl::UnknownError(message("an exception that is not a std::exception"));
  }
}

// Returns the result of `call()`, an absl::Status or absl::StatusOr<T>; an exception becomes a Status. `doing` says
// what was tried, e.g. "the loss function".
template <typename Call>
std::invoke_result_t<Call> CatchTorch(absl::string_view doing, Call&& call) {
  try {
    return std::forward<Call>(call)();
  } catch (...) {
    return StatusFromException(doing);
  }
}

}  // namespace muster
