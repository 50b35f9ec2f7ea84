// The manifest of a checkpoint: which files belong to it, which variables it holds and where each piece of them lies.
// It is the commit record: parts without a manifest are not a checkpoint. Plain values; docs/checkpoint_format.md
// specifies the JSON key by key.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/dtype.h"

namespace muster {

// One safetensors file in the manifest's directory.
struct ManifestPart {
  std::string file;     // name, not path
  uint64_t bytes = 0;   // of the whole file
  uint32_t crc32c = 0;  // of the whole file

  bool operator==(const ManifestPart&) const = default;
};

// A contiguous run of a variable's elements (row-major), or every row_step-th of its rows, in one tensor of one part.
struct ManifestSlice {
  int part = 0;                // index into Manifest::parts
  std::string tensor;          // its name there
  int64_t offset = 0;          // first element, counted in the whole variable
  std::vector<int64_t> shape;  // of the slice of the variable, [] for a scalar
  int64_t row_step = 1;        // distance between two of its rows, in rows of the variable

  bool operator==(const ManifestSlice&) const = default;
};

// State beside a variable. With stride 1 it has one value per element, and its tensors have the shapes of the slices.
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
  std::vector<ManifestSlice> slices;  // in order of offset; together exactly the whole variable
  std::vector<ManifestSlot> slots;    // in order of name

  bool operator==(const ManifestVariable&) const = default;

  // Returns nullptr if the slot doesn't exist.
  const ManifestSlot* FindSlot(std::string_view slot) const;
};

// The update rule in use when saving; true is written as 1.
struct ManifestRule {
  std::string name;  // "sgd", "momentum", "adam"; empty: none
  std::map<std::string, double> hyperparameters;

  bool operator==(const ManifestRule&) const = default;
};

struct Manifest {
  int64_t global_step = 0;
  int64_t saved_at = 0;     // Unix time in milliseconds; 0: unknown
  std::string save_id;      // of this save attempt: [a-z0-9]+, part of the names of its files
  std::string job;          // id of the job that wrote it
  int64_t lease_epoch = 0;  // of the chief's lease when it was written
  std::string writer;       // the task that committed it: "ps:0"
  std::string muster_version;
  ManifestRule rule;
  std::vector<ManifestPart> parts;
  std::vector<ManifestVariable> variables;    // in order of creation, names distinct
  std::map<std::string, std::string> extras;  // input position, generator state, …: opaque to all but their writers

  bool operator==(const Manifest&) const = default;

  // Returns nullptr if the variable doesn't exist.
  const ManifestVariable* Find(std::string_view name) const;
};

// What names from outside must be before they become parts of a path: the id of a save (1 to 64 of a-z, 0-9), and the
// name of a file, not a path.
bool IsSaveId(std::string_view id);
bool IsFileName(std::string_view name);

// Checks what readers rely on: names distinct and UTF-8, parts in range, no path in a file name, the slices of each
// variable and slot together exactly the whole. InvalidArgument names the variable and the mistake.
[[nodiscard]] absl::Status ValidateManifest(const Manifest& manifest);

// Returns JSON text that ends in a newline. The manifest must be valid.
std::string SerializeManifest(const Manifest& manifest);

// DataLoss names the file (`origin`), the key and what was expected; an invalid result is DataLoss, too. Unimplemented:
// a format version that this muster doesn't know. Ignores unknown keys.
absl::StatusOr<Manifest> ParseManifest(std::string_view text, std::string_view origin);

}  // namespace muster
