#include <nanobind/stl/string.h>

#include <exception>
#include <string>

#include "absl/status/status.h"
#include "muster/train/threads/error.h"
#include "python/binding/binding.h"

namespace muster::python {
namespace {

// muster/errors.py chooses the class, so that the classes are Python's own and typed there.
void SetPythonError(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    const nanobind::object exception = nanobind::module_::import_("muster.errors")
                                           .attr("of_status")(absl::StatusCodeToString(error.status().code()),
                                                              error.what(), static_cast<int>(error.exit_code()));
    PyErr_SetObject(exception.type().ptr(), exception.ptr());
  }
}

}  // namespace

void BindErrors() { nanobind::register_exception_translator(SetPythonError); }

}  // namespace muster::python
