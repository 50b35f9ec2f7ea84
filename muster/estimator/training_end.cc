#include "muster/estimator/training_end.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "muster/base/clock.h"
#include "muster/base/os/stop_signal.h"
#include "muster/base/status_macros.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/checkpoint/strict_json.h"
#include "muster/train/threads/error.h"

namespace muster {
namespace {

std::string TrainingEndPath(const std::string& model_dir) { return JoinPath(model_dir, kTrainingEndFile); }

// Reads a whole number from 0, or null.
absl::Status TakeEndStep(const nlohmann::json& json, const char* key, std::optional<int64_t>& into) {
  if (!json.contains(key)) return absl::DataLossError(absl::StrCat("it has no \"", key, "\""));
  const nlohmann::json& value = json[key];
  if (value.is_null()) return absl::OkStatus();
  if (!value.is_number_integer() || value.get<int64_t>() < 0)
    return absl::DataLossError(absl::StrCat("\"", key, "\" is neither a whole number from 0 nor null"));
  into = value.get<int64_t>();
  return absl::OkStatus();
}

absl::StatusOr<TrainingEnd> ParseTrainingEnd(const std::string& text) {
  ASSIGN_OR_RETURN(const nlohmann::json json, ParseStrictJson(text, 1));
  if (!json.is_object()) return absl::DataLossError("it isn't an object");
  TrainingEnd end;
  RETURN_IF_ERROR(TakeEndStep(json, "global_step", end.global_step));
  RETURN_IF_ERROR(TakeEndStep(json, "max_steps", end.max_steps));
  if (json.contains("why") && json["why"].is_string()) end.why = json["why"].get<std::string>();
  if (json.contains("wall_time") && json["wall_time"].is_number()) end.wall_time = json["wall_time"].get<double>();
  return end;
}

std::string WhyItEnded(const TrainingEnd& end, bool interrupted) {
  if (end.max_steps && end.global_step && *end.global_step >= *end.max_steps) return "max_steps reached";
  if (interrupted) return "interrupted";
  return end.max_steps ? "a hook stopped it, or its input ended" : "its input ended, or a hook stopped it";
}

}  // namespace

absl::Status WriteTrainingEnd(FileSystem& files, const std::string& model_dir, const TrainingEnd& end) {
  const auto number = [](const std::optional<int64_t>& step) {
    return step ? nlohmann::ordered_json(*step) : nlohmann::ordered_json();
  };
  const nlohmann::ordered_json json = {{"global_step", number(end.global_step)},
                                       {"max_steps", number(end.max_steps)},
                                       {"why", end.why},
                                       {"wall_time", end.wall_time}};
  const std::string text = json.dump() + "\n";
  RETURN_IF_ERROR(files.CreateDirectory(model_dir));
  return WriteFileAtomically(files, TrainingEndPath(model_dir), AsBytes(text.data(), text.size()));
}

absl::StatusOr<std::optional<TrainingEnd>> ReadTrainingEnd(FileSystem& files, const std::string& model_dir) {
  const std::string path = TrainingEndPath(model_dir);
  const absl::StatusOr<std::string> text = files.ReadFile(path);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  RETURN_IF_ERROR(text.status());
  absl::StatusOr<TrainingEnd> end = ParseTrainingEnd(*text);
  if (!end.ok())
    return absl::DataLossError(
        absl::StrCat(path, ": ", end.status().message(), "; delete it: the chief writes it again when training ends"));
  return std::optional<TrainingEnd>(*std::move(end));
}

absl::Status RemoveTrainingEnd(FileSystem& files, const std::string& model_dir) {
  const absl::Status removed = files.Remove(TrainingEndPath(model_dir));
  return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
}

void TrainToItsEnd(Estimator& estimator, const InputFn& input_fn, const TrainOptions& options) {
  if (!estimator.config().task->is_chief()) {
    estimator.Train(input_fn, options);
    return;
  }
  FileSystem& files = PosixFileSystem();
  ThrowIfError(RemoveTrainingEnd(files, estimator.model_dir()));
  const StopSignal stop([] {});
  estimator.Train(input_fn, options);
  TrainingEnd end{.max_steps = options.max_steps,
                  .wall_time = absl::ToDoubleSeconds(RealClock().Now() - absl::UnixEpoch())};
  const std::string checkpoint = estimator.LatestCheckpoint();
  if (!checkpoint.empty()) end.global_step = StepOfCheckpointPath(checkpoint);
  end.why = WhyItEnded(end, stop.raised());
  ThrowIfError(WriteTrainingEnd(files, estimator.model_dir(), end));
}

int64_t StepOfCheckpointPath(const std::string& path) {
  return StepOfCheckpoint(std::string_view(path).substr(path.rfind('/') + 1)).value_or(-1);
}

}  // namespace muster
