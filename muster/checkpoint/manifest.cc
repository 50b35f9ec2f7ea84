#include "muster/checkpoint/manifest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/base/crc32c.h"
#include "muster/base/status_macros.h"
#include "muster/checkpoint/safetensors_file.h"
#include "muster/checkpoint/strict_json.h"

namespace muster {
namespace {

using nlohmann::json;

// Version 2 has slices of every n-th row; a manifest without such slices is still written as version 1.
constexpr int kFormatVersion = 2;
constexpr char kFormat[] = "muster checkpoint";
constexpr int kMaxDepth = 8;
// The file begins with this, then 8 hexadecimal digits, then kAfterChecksum; the checksum covers all bytes after that.
constexpr std::string_view kBeforeChecksum = "{\"crc32c\":\"";
constexpr std::string_view kAfterChecksum = "\",";
constexpr size_t kChecksumDigits = 8;
constexpr const char* kKinds[] = {"trainable", "frozen", "buffer", "rows"};

absl::string_view Absl(std::string_view text) { return {text.data(), text.size()}; }

template <typename... Pieces>
absl::Status Invalid(const Pieces&... pieces) {
  return absl::InvalidArgumentError(absl::StrCat(pieces...));
}

// Checks that slice i of n has the rows i, i + n, …, and that all rows are covered.
absl::Status CheckSteps(const std::string& owner, const std::vector<ManifestSlice>& slices,
                        const std::vector<int64_t>& shape) {
  const int64_t step = static_cast<int64_t>(slices.size());
  if (shape.empty()) return Invalid(owner, ": a scalar has no rows to be sliced by");
  ASSIGN_OR_RETURN(const int64_t width, ElementCount({shape.begin() + 1, shape.end()}));
  if (width == 0) return Invalid(owner, ": rows without elements can't be sliced");
  for (int64_t i = 0; i < step; ++i) {
    const ManifestSlice& slice = slices[i];
    std::vector<int64_t> wanted = shape;
    wanted[0] = shape[0] / step + (i < shape[0] % step ? 1 : 0);
    if (slice.row_step == step && slice.offset / width == i && slice.offset % width == 0 && slice.shape == wanted)
      continue;
    return Invalid(owner, ": slice ", i, " is not every ", step, "th row from row ", i, " on, as its row_step says");
  }
  return absl::OkStatus();
}

// Checks that the slices, in order of offset, together are exactly the variable of that shape.
absl::Status CheckSlices(const std::string& owner, const std::vector<ManifestSlice>& slices,
                         const std::vector<int64_t>& shape, int64_t elements, size_t num_parts) {
  int64_t end = 0;
  const bool steps = std::any_of(slices.begin(), slices.end(), [](const auto& slice) { return slice.row_step != 1; });
  if (steps) RETURN_IF_ERROR(CheckSteps(owner, slices, shape));
  for (const ManifestSlice& slice : slices) {
    if (slice.part < 0 || static_cast<size_t>(slice.part) >= num_parts)
      return Invalid(owner, ": a slice lies in part ", slice.part, " of ", num_parts);
    if (slice.tensor.empty()) return Invalid(owner, ": a slice without the name of its tensor");
    const auto count = ElementCount(slice.shape);
    if (!count.ok()) return Invalid(owner, ": a slice: ", count.status().message());
    if (!steps && slice.offset != end)
      return Invalid(owner, ": a slice begins at ", slice.offset, " where ", end, " is next");
    if (*count > elements - end) return Invalid(owner, ": its slices have more than its ", elements, " elements");
    end += *count;
  }
  if (end != elements) return Invalid(owner, ": its slices have ", end, " of its ", elements, " elements");
  return absl::OkStatus();
}

absl::Status CheckVariable(const ManifestVariable& variable, size_t num_parts) {
  const std::string owner = absl::StrCat("variable '", variable.name, "'");
  if (variable.name.empty()) return Invalid("a variable without a name");
  if (std::find(std::begin(kKinds), std::end(kKinds), variable.kind) == std::end(kKinds))
    return Invalid(owner, ": kind '", variable.kind, "'; accepted: trainable, frozen, buffer, rows");
  const auto elements = ElementCount(variable.shape);
  if (!elements.ok()) return Invalid(owner, ": ", elements.status().message());
  RETURN_IF_ERROR(CheckSlices(owner, variable.slices, variable.shape, *elements, num_parts));
  std::set<std::string> names;
  for (const ManifestSlot& slot : variable.slots) {
    const std::string slot_owner = absl::StrCat(owner, ", slot '", slot.name, "'");
    if (slot.name.empty()) return Invalid(owner, ": a slot without a name");
    if (!names.insert(slot.name).second) return Invalid(slot_owner, " is given twice");
    if (slot.stride < 1) return Invalid(slot_owner, ": stride ", slot.stride, "; at least 1");
    RETURN_IF_ERROR(CheckSlices(slot_owner, slot.slices, variable.shape, *elements, num_parts));
  }
  return absl::OkStatus();
}

absl::Status CheckUtf8(absl::string_view where, std::string_view text) {
  if (QuoteJson(text).ok()) return absl::OkStatus();
  return Invalid(where, " isn't UTF-8; encode binary values, in hexadecimal for example");
}

absl::Status CheckTexts(const Manifest& manifest) {
  RETURN_IF_ERROR(CheckUtf8("job", manifest.job));
  RETURN_IF_ERROR(CheckUtf8("writer", manifest.writer));
  RETURN_IF_ERROR(CheckUtf8("muster_version", manifest.muster_version));
  for (const auto& [name, value] : manifest.extras) {
    RETURN_IF_ERROR(CheckUtf8("the name of an extra", name));
    RETURN_IF_ERROR(CheckUtf8(absl::StrCat("extra '", name, "'"), value));
  }
  RETURN_IF_ERROR(CheckUtf8("the rule's name", manifest.rule.name));
  for (const auto& [name, value] : manifest.rule.hyperparameters) {
    RETURN_IF_ERROR(CheckUtf8("the name of a hyperparameter", name));
    if (!std::isfinite(value)) return Invalid("hyperparameter '", name, "' is ", value, "; accepted: finite numbers");
  }
  for (const ManifestVariable& variable : manifest.variables) {
    RETURN_IF_ERROR(CheckUtf8("the name of a variable", variable.name));
    for (const ManifestSlot& slot : variable.slots) RETURN_IF_ERROR(CheckUtf8("the name of a slot", slot.name));
  }
  return absl::OkStatus();
}

// Must come first: nothing in the text can be trusted before this.
absl::Status CheckChecksum(std::string_view text) {
  const size_t covered_from = kBeforeChecksum.size() + kChecksumDigits + kAfterChecksum.size();
  if (text.size() < covered_from || text.substr(0, kBeforeChecksum.size()) != kBeforeChecksum)
    return Invalid("it doesn't begin with ", Absl(kBeforeChecksum));
  const std::string_view covered = text.substr(covered_from);
  const std::string wanted = absl::StrFormat("%08x", Crc32c(AsBytes(covered.data(), covered.size())));
  const std::string_view found = text.substr(kBeforeChecksum.size(), kChecksumDigits);
  if (found == wanted) return absl::OkStatus();
  return Invalid("its checksum is ", wanted, ", it says ", Absl(found));
}

json ToJson(const std::vector<ManifestSlice>& slices) {
  json list = json::array();
  for (const ManifestSlice& slice : slices) {
    list.push_back({{"part", slice.part}, {"tensor", slice.tensor}, {"offset", slice.offset}, {"shape", slice.shape}});
    if (slice.row_step != 1) list.back()["row_step"] = slice.row_step;
  }
  return list;
}

json ToJson(const ManifestVariable& variable) {
  json slots = json::array();
  for (const ManifestSlot& slot : variable.slots)
    slots.push_back({{"name", slot.name},
                     {"dtype", DTypeName(slot.dtype)},
                     {"stride", slot.stride},
                     {"slices", ToJson(slot.slices)}});
  return {{"name", variable.name}, {"dtype", DTypeName(variable.dtype)}, {"shape", variable.shape},
          {"kind", variable.kind}, {"slices", ToJson(variable.slices)},  {"slots", slots}};
}

int VersionOf(const Manifest& manifest) {
  for (const ManifestVariable& variable : manifest.variables)
    for (const ManifestSlice& slice : variable.slices)
      if (slice.row_step != 1) return kFormatVersion;
  return 1;
}

// Reads one JSON object into a struct. Remembers the first error, so that a list of fields is read without a check
// after each.
class ObjectReader {
 public:
  ObjectReader(const json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) Fail("is not an object");
  }

  void Read(const char* key, std::string& into) {
    if (const json* value = Find(key, "a string", &json::is_string)) into = value->get<std::string>();
  }
  void Read(const char* key, int64_t& into) { ReadInteger(key, into, std::numeric_limits<int64_t>::max()); }
  void Read(const char* key, uint64_t& into) { ReadInteger(key, into, std::numeric_limits<uint64_t>::max()); }
  void Read(const char* key, uint32_t& into) { ReadInteger(key, into, std::numeric_limits<uint32_t>::max()); }
  void Read(const char* key, int& into) { ReadInteger(key, into, std::numeric_limits<int>::max()); }
  void Read(const char* key, DType& into) {
    std::string name;
    Read(key, name);
    if (!status_.ok()) return;
    const auto dtype = ParseDType(name);
    if (dtype.ok()) {
      into = *dtype;
    } else {
      Fail(dtype.status().message());
    }
  }
  void Read(const char* key, std::vector<int64_t>& into) {
    const json* list = Find(key, "a list", &json::is_array);
    if (list == nullptr) return;
    for (const json& extent : *list) {
      if (!IsCount(extent, std::numeric_limits<int64_t>::max())) return Fail(absl::StrCat(key, ": ", extent.dump()));
      into.push_back(extent.get<int64_t>());
    }
  }
  void Read(const char* key, std::map<std::string, std::string>& into) {
    const json* object = Find(key, "an object", &json::is_object);
    if (object == nullptr) return;
    for (const auto& [name, value] : object->items()) {
      if (!value.is_string()) return Fail(absl::StrCat(key, ".", name, " is not a string"));
      into[name] = value.get<std::string>();
    }
  }
  void Read(const char* key, std::map<std::string, double>& into) {
    const json* object = Find(key, "an object", &json::is_object);
    if (object == nullptr) return;
    for (const auto& [name, value] : object->items()) {
      if (!value.is_number()) return Fail(absl::StrCat(key, ".", name, " is not a number"));
      into[name] = value.get<double>();
    }
  }
  // Reads each element of a list of objects with `read_one(ObjectReader&, Element&)`.
  template <typename Element, typename ReadOne>
  void ReadList(const char* key, std::vector<Element>& into, const ReadOne& read_one) {
    const json* list = Find(key, "a list", &json::is_array);
    if (list == nullptr) return;
    into.reserve(list->size());
    for (const json& entry : *list) {
      ObjectReader reader(entry, absl::StrCat(where_, key, "[", into.size(), "]."));
      if (reader.status_.ok()) read_one(reader, into.emplace_back());
      if (!reader.status_.ok()) {
        status_ = reader.status_;
        return;
      }
    }
  }
  bool Has(const char* key) const { return object_.contains(key); }
  const json* Find(const char* key, const char* wanted, bool (json::*is)() const noexcept) {
    if (!status_.ok()) return nullptr;
    const auto found = object_.find(key);
    if (found != object_.end() && ((*found).*is)()) return &*found;
    Fail(absl::StrCat(key, found == object_.end() ? " is missing, wanted " : " is not ", wanted));
    return nullptr;
  }
  const absl::Status& status() const { return status_; }

 private:
  static bool IsCount(const json& value, uint64_t largest) {
    return value.is_number_unsigned() && value.get<uint64_t>() <= largest;
  }
  template <typename Integer>
  void ReadInteger(const char* key, Integer& into, uint64_t largest) {
    const json* value = Find(key, "a number", &json::is_number);
    if (value == nullptr) return;
    if (!IsCount(*value, largest)) return Fail(absl::StrCat(key, " is ", value->dump(), ", wanted 0 to ", largest));
    into = value->get<Integer>();
  }
  void Fail(absl::string_view what) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat(where_, what));
  }

  const json& object_;
  const std::string where_;
  absl::Status status_;
};

void ReadSlice(ObjectReader& reader, ManifestSlice& slice) {
  reader.Read("part", slice.part);
  reader.Read("tensor", slice.tensor);
  reader.Read("offset", slice.offset);
  reader.Read("shape", slice.shape);
  if (reader.Has("row_step")) reader.Read("row_step", slice.row_step);
}

void ReadSlot(ObjectReader& reader, ManifestSlot& slot) {
  reader.Read("name", slot.name);
  reader.Read("dtype", slot.dtype);
  reader.Read("stride", slot.stride);
  reader.ReadList("slices", slot.slices, ReadSlice);
}

void ReadVariable(ObjectReader& reader, ManifestVariable& variable) {
  reader.Read("name", variable.name);
  reader.Read("dtype", variable.dtype);
  reader.Read("shape", variable.shape);
  reader.Read("kind", variable.kind);
  reader.ReadList("slices", variable.slices, ReadSlice);
  reader.ReadList("slots", variable.slots, ReadSlot);
}

void ReadPart(ObjectReader& reader, ManifestPart& part) {
  reader.Read("file", part.file);
  reader.Read("bytes", part.bytes);
  reader.Read("crc32c", part.crc32c);
}

absl::StatusOr<Manifest> FromJson(const json& root) {
  ObjectReader reader(root, "");
  std::string format;
  int64_t version = 0;
  reader.Read("format", format);
  reader.Read("format_version", version);
  RETURN_IF_ERROR(reader.status());
  if (format != kFormat) return Invalid("format is '", format, "', wanted '", kFormat, "'");
  if (version < 1 || version > kFormatVersion)
    return absl::UnimplementedError(
        absl::StrCat("format_version ", version, "; this muster reads 1 to ", kFormatVersion, ": use a newer one"));
  Manifest manifest;
  reader.Read("global_step", manifest.global_step);
  if (root.contains("saved_at")) reader.Read("saved_at", manifest.saved_at);
  reader.Read("save_id", manifest.save_id);
  reader.Read("job", manifest.job);
  reader.Read("lease_epoch", manifest.lease_epoch);
  reader.Read("writer", manifest.writer);
  reader.Read("muster_version", manifest.muster_version);
  reader.ReadList("parts", manifest.parts, ReadPart);
  reader.ReadList("variables", manifest.variables, ReadVariable);
  reader.Read("extras", manifest.extras);
  if (const json* rule = reader.Find("rule", "an object", &json::is_object)) {
    ObjectReader rule_reader(*rule, "rule.");
    rule_reader.Read("name", manifest.rule.name);
    rule_reader.Read("hyperparameters", manifest.rule.hyperparameters);
    RETURN_IF_ERROR(rule_reader.status());
  }
  RETURN_IF_ERROR(reader.status());
  RETURN_IF_ERROR(ValidateManifest(manifest));
  return manifest;
}

}  // namespace

const ManifestSlot* ManifestVariable::FindSlot(std::string_view slot) const {
  for (const ManifestSlot& candidate : slots)
    if (candidate.name == slot) return &candidate;
  return nullptr;
}

const ManifestVariable* Manifest::Find(std::string_view name) const {
  for (const ManifestVariable& variable : variables)
    if (variable.name == name) return &variable;
  return nullptr;
}

bool IsSaveId(std::string_view id) {
  return !id.empty() && id.size() <= 64 &&
         std::all_of(id.begin(), id.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
}

bool IsFileName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

absl::Status ValidateManifest(const Manifest& manifest) {
  if (manifest.global_step < 0 || manifest.lease_epoch < 0 || manifest.saved_at < 0)
    return Invalid("global_step ", manifest.global_step, ", lease_epoch ", manifest.lease_epoch, ", saved_at ",
                   manifest.saved_at, ": at least 0");
  if (!IsSaveId(manifest.save_id)) return Invalid("save_id '", manifest.save_id, "'; accepted: 1 to 64 of a-z, 0-9");
  RETURN_IF_ERROR(CheckTexts(manifest));
  std::set<std::string> files;
  for (const ManifestPart& part : manifest.parts) {
    if (!IsFileName(part.file)) return Invalid("part '", part.file, "' is not the name of a file");
    if (!files.insert(part.file).second) return Invalid("part '", part.file, "' is given twice");
  }
  std::set<std::string> names;
  for (const ManifestVariable& variable : manifest.variables) {
    RETURN_IF_ERROR(CheckVariable(variable, manifest.parts.size()));
    if (!names.insert(variable.name).second) return Invalid("variable '", variable.name, "' is given twice");
  }
  return absl::OkStatus();
}

std::string SerializeManifest(const Manifest& manifest) {
  json parts = json::array();
  for (const ManifestPart& part : manifest.parts)
    parts.push_back({{"file", part.file}, {"bytes", part.bytes}, {"crc32c", part.crc32c}});
  json variables = json::array();
  for (const ManifestVariable& variable : manifest.variables) variables.push_back(ToJson(variable));
  const json root = {{"format", kFormat},
                     {"format_version", VersionOf(manifest)},
                     {"global_step", manifest.global_step},
                     {"saved_at", manifest.saved_at},
                     {"save_id", manifest.save_id},
                     {"job", manifest.job},
                     {"lease_epoch", manifest.lease_epoch},
                     {"writer", manifest.writer},
                     {"muster_version", manifest.muster_version},
                     {"rule", {{"name", manifest.rule.name}, {"hyperparameters", manifest.rule.hyperparameters}}},
                     {"parts", parts},
                     {"variables", variables},
                     {"extras", manifest.extras}};
  const std::string covered = root.dump(/*indent=*/1).substr(1) + "\n";
  return absl::StrFormat("%s%08x%s%s", Absl(kBeforeChecksum), Crc32c(AsBytes(covered.data(), covered.size())),
                         Absl(kAfterChecksum), covered);
}

absl::StatusOr<Manifest> ParseManifest(std::string_view text, std::string_view origin) {
  const auto parse = [&]() -> absl::StatusOr<Manifest> {
    RETURN_IF_ERROR(CheckChecksum(text));
    ASSIGN_OR_RETURN(const json root, ParseStrictJson(text, kMaxDepth));
    return FromJson(root);
  };
  absl::StatusOr<Manifest> manifest = parse();
  if (manifest.ok()) return manifest;
  if (absl::IsUnimplemented(manifest.status()))
    return absl::UnimplementedError(absl::StrCat(Absl(origin), ": ", manifest.status().message()));
  return absl::DataLossError(absl::StrCat(Absl(origin), " is damaged: ", manifest.status().message()));
}

}  // namespace muster
