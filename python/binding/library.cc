// The module muster._library: the C++ behind the Python package (docs/python_binding.md).
#include "muster/base/version.h"
#include "python/binding/binding.h"

NB_MODULE(_library, module) {
  module.attr("version") = muster::kMusterVersion;
  module.attr("compiler") = __VERSION__;
  muster::python::BindErrors();
  muster::python::BindCluster(module);
  muster::python::BindRules(module);
  muster::python::BindCheckpoints(module);
}
