#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/checkpoint/checkpoint_reader.h"
#include "muster/train/threads/error.h"
#include "python/binding/binding.h"
#include "python/binding/tensors.h"

// Its parts can't be copied, which the compiler finds out only when it tries.
template <>
struct nanobind::detail::is_copy_constructible<muster::CheckpointReader> : std::false_type {};

namespace muster::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;  // NOLINT(google-build-using-namespace): "name"_a

using Reader = CheckpointReader;

std::unique_ptr<Reader> Open(const std::filesystem::path& path, bool verify_checksums) {
  const nb::gil_scoped_release released;
  const std::string found = ValueOrThrow(FindCheckpoint(PosixFileSystem(), path.string()));
  return ValueOrThrow(Reader::Open(PosixFileSystem(), found, {.verify_checksums = verify_checksums}));
}

const ManifestVariable& VariableOf(const Reader& reader, const std::string& name) {
  if (const ManifestVariable* variable = reader.manifest().Find(name)) return *variable;
  throw Error(absl::NotFoundError(absl::StrCat(reader.path(), " has no variable \"", name, "\"")));
}

nb::object Read(const Reader& reader, const std::string& name) {
  const ManifestVariable& variable = VariableOf(reader, name);
  NewTensor tensor = MakeTensor(variable.dtype, variable.shape);
  {
    const nb::gil_scoped_release released;
    ThrowIfError(reader.ReadVariable(name, tensor.bytes));
  }
  return std::move(tensor.object);
}

nb::object ReadSlot(const Reader& reader, const std::string& name, const std::string& slot_name) {
  const ManifestVariable& variable = VariableOf(reader, name);
  const ManifestSlot* slot = variable.FindSlot(slot_name);
  if (slot == nullptr || slot->stride != 1) {
    throw Error(absl::NotFoundError(
        absl::StrCat(reader.path(), ": variable \"", name, "\" has no slot \"", slot_name, "\" of its own shape")));
  }
  NewTensor tensor = MakeTensor(slot->dtype, variable.shape);
  {
    const nb::gil_scoped_release released;
    ThrowIfError(reader.ReadSlot(name, slot_name, tensor.bytes));
  }
  return std::move(tensor.object);
}

std::vector<std::string> Names(const Reader& reader) {
  std::vector<std::string> names;
  for (const ManifestVariable& variable : reader.manifest().variables) names.push_back(variable.name);
  return names;
}

std::vector<std::string> Slots(const Reader& reader, const std::string& name) {
  std::vector<std::string> slots;
  for (const ManifestSlot& slot : VariableOf(reader, name).slots) {
    if (slot.stride == 1) slots.push_back(slot.name);
  }
  return slots;
}

nb::dict StateDict(const Reader& reader) {
  nb::dict values;
  for (const std::string& name : Names(reader)) values[name.c_str()] = Read(reader, name);
  return values;
}

}  // namespace

void BindCheckpoints(nb::module_& module) {
  nb::class_<Reader>(module, "CheckpointReader",
                     "A checkpoint as whole variables by name, whatever slices and files hold them.")
      .def(nb::new_(&Open), "path"_a, nb::kw_only(), "verify_checksums"_a = true,
           "`path` is a checkpoint (\"dir/model.ckpt-100\") or a folder, whose newest one is meant. With\n"
           "verify_checksums every file is read whole first.")
      .def_prop_ro("path", &Reader::path)
      .def_prop_ro("global_step", [](const Reader& self) { return self.manifest().global_step; })
      .def_prop_ro("muster_version", [](const Reader& self) { return self.manifest().muster_version; })
      .def_prop_ro(
          "rule", [](const Reader& self) { return self.manifest().rule.name; },
          "The rule that updated the variables: \"adam\"; empty: none.")
      .def_prop_ro("hyperparameters", [](const Reader& self) { return self.manifest().rule.hyperparameters; })
      .def("names", &Names, "The names of the variables, in order of creation.")
      .def(
          "shape", [](const Reader& self, const std::string& name) { return VariableOf(self, name).shape; }, "name"_a)
      .def(
          "kind", [](const Reader& self, const std::string& name) { return VariableOf(self, name).kind; }, "name"_a,
          "\"trainable\", \"frozen\", \"buffer\" or \"rows\".")
      .def("slots", &Slots, "name"_a, "The names of the variable's slots: \"adam_m\".")
      .def("read", &Read, "name"_a, nb::sig("def read(self, name: str) -> torch.Tensor"))
      .def("read_slot", &ReadSlot, "name"_a, "slot"_a,
           nb::sig("def read_slot(self, name: str, slot: str) -> torch.Tensor"))
      .def("state_dict", &StateDict, nb::sig("def state_dict(self) -> dict[str, torch.Tensor]"),
           "All variables, for torch's load_state_dict.")
      .def(
          "__contains__",
          [](const Reader& self, const std::string& name) { return self.manifest().Find(name) != nullptr; }, "name"_a)
      .def("__len__", [](const Reader& self) { return self.manifest().variables.size(); })
      .def("__repr__", [](const Reader& self) {
        return absl::StrCat("CheckpointReader(", self.path(), ", ", self.manifest().variables.size(), " variables)");
      });
}

}  // namespace muster::python
