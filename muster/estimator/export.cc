#include "muster/estimator/export.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/status_macros.h"
#include "muster/base/version.h"
#include "muster/checkpoint/safetensors_file.h"

namespace muster {
namespace {

constexpr char kWeightsFile[] = "model.safetensors";
constexpr char kSignatureFile[] = "signature.json";
constexpr char kTemporaryPrefix[] = "temp-";

absl::Status CheckExportInputs(const ExportInputs& inputs) {
  if (inputs.empty()) return absl::InvalidArgumentError("an export needs at least one input: name, type and shape");
  for (const auto& [name, input] : inputs) {
    if (name.empty()) return absl::InvalidArgumentError("an export's input has no name");
    for (const int64_t extent : input.shape) {
      if (extent >= 1) continue;
      return absl::InvalidArgumentError(absl::StrCat("export input '", name, "': shape [",
                                                     absl::StrJoin(input.shape, ", "),
                                                     "]: accepted are extents from 1, without the batch's"));
    }
  }
  return absl::OkStatus();
}

// Checks that every step reads only what exists by then: inputs, outputs of earlier steps, variables of the checkpoint.
absl::Status CheckExportProgram(const EstimatorSpec& spec, const ExportInputs& inputs, const Manifest& manifest) {
  if (spec.export_program.empty()) return absl::OkStatus();
  std::set<std::string> known;
  for (const auto& [name, input] : inputs) known.insert(name);
  for (const ExportStep& step : spec.export_program) {
    for (const std::string& input : step.inputs) {
      if (known.contains(input)) continue;
      return absl::InvalidArgumentError(absl::StrCat("export: the step '", step.op, "' reads '", input,
                                                     "', which is neither an input nor an output of an earlier step; ",
                                                     "there are ", absl::StrJoin(known, ", ")));
    }
    for (const auto& [role, variable] : step.variables) {
      if (manifest.Find(variable) != nullptr) continue;
      return absl::InvalidArgumentError(absl::StrCat("export: the step '", step.op, "' has as its ", role,
                                                     " the variable '", variable, "', which the checkpoint hasn't"));
    }
    known.insert(step.output);
  }
  for (const auto& [name, output] : spec.export_outputs) {
    for (const std::string& prediction : output.predictions) {
      if (known.contains(prediction)) continue;
      return absl::InvalidArgumentError(absl::StrCat("export output '", name, "' has the prediction '", prediction,
                                                     "', which no step of the program makes"));
    }
  }
  return absl::OkStatus();
}

nlohmann::json InputsJson(const ExportInputs& inputs) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, input] : inputs) json[name] = {{"dtype", DTypeName(input.dtype)}, {"shape", input.shape}};
  return json;
}

nlohmann::json OutputsJson(const EstimatorSpec& spec) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, output] : spec.export_outputs)
    json[name] = {{"method", output.method}, {"predictions", output.predictions}};
  return json;
}

nlohmann::json ProgramJson(const EstimatorSpec& spec) {
  nlohmann::json json = nlohmann::json::array();
  for (const ExportStep& step : spec.export_program) {
    json.push_back({{"op", step.op},
                    {"inputs", step.inputs},
                    {"output", step.output},
                    {"variables", step.variables},
                    {"arguments", step.arguments}});
  }
  return json;
}

absl::Status WriteWeights(FileSystem& files, const std::string& path, const CheckpointReader& checkpoint) {
  std::vector<TensorSpec> tensors;
  for (const ManifestVariable& variable : checkpoint.manifest().variables)
    tensors.push_back({variable.name, variable.dtype, variable.shape});
  ASSIGN_OR_RETURN(const auto writer, TensorFileWriter::Create(files, path, std::move(tensors), {{"format", "pt"}}));
  std::vector<std::byte> bytes;
  for (const TensorInfo& tensor : writer->tensors()) {
    bytes.resize(tensor.bytes);
    RETURN_IF_ERROR(checkpoint.ReadVariable(tensor.name, bytes));
    RETURN_IF_ERROR(writer->Append(bytes));
  }
  return writer->Finish().status();
}

absl::Status WriteSignature(FileSystem& files, const std::string& path, const CheckpointReader& checkpoint,
                            const EstimatorSpec& spec, const ExportInputs& inputs) {
  const nlohmann::json signature = {
      {"format", "muster export"},        {"version", 1},
      {"muster_version", kMusterVersion}, {"global_step", checkpoint.manifest().global_step},
      {"weights", kWeightsFile},          {"inputs", InputsJson(inputs)},
      {"outputs", OutputsJson(spec)},     {"program", ProgramJson(spec)}};
  // Names come from the user's program: bytes that aren't UTF-8 are replaced, so that nothing throws.
  const std::string text = signature.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  return WriteFileAtomically(files, path, AsBytes(text.data(), text.size()));
}

// Returns the first number from `wanted` on that no export has yet.
absl::StatusOr<int64_t> FreeNumber(FileSystem& files, const std::string& directory, int64_t wanted) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> taken, ListExports(files, directory));
  return taken.empty() ? wanted : std::max(wanted, taken.back() + 1);
}

}  // namespace

absl::StatusOr<std::string> WriteExport(FileSystem& files, const std::string& directory, absl::Time now,
                                        const CheckpointReader& checkpoint, const EstimatorSpec& spec,
                                        const ExportInputs& inputs) {
  RETURN_IF_ERROR(CheckExportInputs(inputs));
  RETURN_IF_ERROR(CheckExportProgram(spec, inputs, checkpoint.manifest()));
  RETURN_IF_ERROR(files.CreateDirectory(directory));
  ASSIGN_OR_RETURN(const int64_t number, FreeNumber(files, directory, absl::ToUnixSeconds(now)));
  const std::string temporary = JoinPath(directory, absl::StrCat(kTemporaryPrefix, number));
  RETURN_IF_ERROR(files.RemoveTree(temporary));  // a killed export may have left it
  RETURN_IF_ERROR(files.CreateDirectory(temporary));
  RETURN_IF_ERROR(WriteWeights(files, JoinPath(temporary, kWeightsFile), checkpoint));
  RETURN_IF_ERROR(WriteSignature(files, JoinPath(temporary, kSignatureFile), checkpoint, spec, inputs));
  RETURN_IF_ERROR(files.SyncDirectory(temporary));
  const std::string path = JoinPath(directory, absl::StrCat(number));
  RETURN_IF_ERROR(files.Rename(temporary, path));
  RETURN_IF_ERROR(files.SyncDirectory(directory));
  return path;
}

absl::StatusOr<std::vector<int64_t>> ListExports(FileSystem& files, const std::string& directory) {
  std::vector<int64_t> numbers;
  if (!files.Exists(directory)) return numbers;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files.ListDirectory(directory));
  for (const std::string& name : names) {
    int64_t number = 0;
    // Ignores "01", which is never an export's name.
    if (absl::SimpleAtoi(name, &number) && absl::StrCat(number) == name &&
        files.Exists(JoinPath(JoinPath(directory, name), kSignatureFile)))
      numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

absl::Status RemoveOldExports(FileSystem& files, const std::string& directory, int keep) {
  if (keep == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, ListExports(files, directory));
  const size_t kept = std::min(numbers.size(), static_cast<size_t>(keep));
  for (size_t i = 0; i + kept < numbers.size(); ++i)
    RETURN_IF_ERROR(files.RemoveTree(JoinPath(directory, absl::StrCat(numbers[i]))));
  return absl::OkStatus();
}

}  // namespace muster
