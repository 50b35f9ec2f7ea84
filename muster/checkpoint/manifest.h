// The manifest of a checkpoint: which files it is made of, which variables it holds and where each piece of them lies.
// It is the commit record: parts without a manifest are not a checkpoint. Plain values; docs/checkpoint_format.md has
// the JSON key by key.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/dtype.h"

namespace muster {

// One safetensors file, in the directory of the manifest.
struct ManifestPart {
  std::string file;     // name, not path
  uint64_t bytes = 0;   // of the whole file
  uint32_t crc32c = 0;  // of the whole file

  bool operator==(const ManifestPart&) const = default;
};

// A contiguous run of a variable's elements (row-major), or every so-manieth of its rows, held by one tensor of one
// part.
struct ManifestSlice {
  int part = 0;                // index into Manifest::parts
  std::string tensor;          // its name there
  int64_t offset = 0;          // first element, counted in the whole variable
  std::vector<int64_t> shape;  // of the slice of the variable, [] for a scalar
  int64_t row_step = 1;        // from one of its rows to the next, in rows of the variable

  bool operator==(const ManifestSlice&) const = default;
};

// State beside a variable. With stride 1 it has one value an element, and its tensors have the shapes of the slices.
// With stride S > 1 it has one value per S elements of each slice (a stripe's step counter: int64, stride 16384), and
// the tensor of a slice of n elements has shape [ceil(n / S)].
struct ManifestSlot {
  std::string name;  // "momentum", "adam_m", "t", …
  DType dtype = DType::kFloat32;
  int64_t stride = 1;
  std::vector<ManifestSlice> slices;

  bool operator==(const ManifestSlot&) const = default;
};

struct ManifestVariable {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;         // of the whole variable
  std::string kind = "trainable";     // "trainable", "frozen", "buffer", "rows"
  std::vector<ManifestSlice> slices;  // by offset; together exactly the whole variable
  std::vector<ManifestSlot> slots;    // by name

  bool operator==(const ManifestVariable&) const = default;

  // nullptr if there is none.
  const ManifestSlot* FindSlot(std::string_view slot) const;
};

// The update rule that was in use; true is written as 1.
struct ManifestRule {
  std::string name;  // "sgd", "momentum", "adam"; empty: none
  std::map<std::string, double> hyperparameters;

  bool operator==(const ManifestRule&) const = default;
};

struct Manifest {
  int64_t global_step = 0;
  int64_t saved_at = 0;     // Unix time in milliseconds; 0: not known
  std::string save_id;      // of this attempt at saving: [a-z0-9]+, part of the names of its files
  std::string job;          // id of the job that wrote it
  int64_t lease_epoch = 0;  // of the chief's lease when it was written
  std::string writer;       // task that committed it: "ps:0"
  std::string muster_version;
  ManifestRule rule;
  std::vector<ManifestPart> parts;
  std::vector<ManifestVariable> variables;    // in order of creation, names distinct
  std::map<std::string, std::string> extras;  // input position, generator state, …: the writers know what is in them

  bool operator==(const Manifest&) const = default;

  // nullptr if there is none.
  const ManifestVariable* Find(std::string_view name) const;
};

// What a reader relies on: names distinct and UTF-8, parts in range, no path in a file name, the slices of each
// variable and slot together exactly the whole. InvalidArgument names the variable and the mistake.
[[nodiscard]] absl::Status ValidateManifest(const Manifest& manifest);

// JSON text, ending in a newline. The manifest is valid.
std::string SerializeManifest(const Manifest& manifest);

// DataLoss, naming the file (`origin`), the key and what was expected; also when the result isn't valid. Unimplemented:
// a format version that this muster doesn't know. Unknown keys are ignored.
absl::StatusOr<Manifest> ParseManifest(std::string_view text, std::string_view origin);

}  // namespace muster
