// What each file of the binding adds to the module muster._library. Each is called once, while the module is imported.
#pragma once

#include <nanobind/nanobind.h>

namespace muster::python {

// Adds equality by value, which answers NotImplemented to anything else. What is equal by value has no hash of its own.
template <typename T>
void BindEquality(nanobind::class_<T>& bound) {
  bound.def(
      "__eq__", [](const T& self, const T& other) { return self == other; }, nanobind::is_operator(),
      nanobind::sig("def __eq__(self, other: object, /) -> bool"));
  bound.attr("__hash__") = nanobind::none();
}

void BindErrors();  // muster::Error becomes the exception of muster/errors.py that has its code
void BindCluster(nanobind::module_& module);      // ClusterSpec, TaskConfig
void BindRules(nanobind::module_& module);        // what the classes of muster/rules.py are checked with
void BindCheckpoints(nanobind::module_& module);  // CheckpointReader

}  // namespace muster::python
