#include "muster/estimator/distributed/exporter.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/checkpoint/strict_json.h"
#include "muster/cluster/quoted.h"
#include "muster/estimator/evaluation.h"
#include "muster/train/threads/error.h"

namespace muster {
namespace {

constexpr char kBestFile[] = "best.json";

void CheckExporter(const char* kind, const std::string& name, const ExportInputs& inputs, int exports_to_keep) {
  const auto refuse = [&](const std::string& what) {
    throw Error(WrongOptionError(absl::StrCat(kind, " ", Quoted(name), ": ", what)));
  };
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
    refuse("name: accepted is the name of a folder");
  if (inputs.empty()) refuse("inputs: there are none; give the features that the exported model takes");
  if (exports_to_keep < 0)
    refuse(absl::StrCat("exports_to_keep: ", exports_to_keep, "; accepted is a whole number from 0, which keeps all"));
}

class LatestExporterImpl final : public Exporter {
 public:
  explicit LatestExporterImpl(LatestExporterOptions options) : options_(std::move(options)) {
    CheckExporter("LatestExporter", options_.name, options_.inputs, options_.exports_to_keep);
  }
  const std::string& name() const override { return options_.name; }
  std::string Export(Estimator& estimator, const std::string& export_path, const std::string& checkpoint_path,
                     const EvalResults&, bool) override {
    if (checkpoint_path == exported_) return "";
    std::string path = estimator.Export(export_path, options_.inputs, checkpoint_path);
    exported_ = checkpoint_path;
    ThrowIfError(RemoveOldExports(PosixFileSystem(), export_path, options_.exports_to_keep));
    return path;
  }

 private:
  const LatestExporterOptions options_;
  std::string exported_;  // the last exported checkpoint
};

bool HasLowerLoss(const EvalResults& best, const EvalResults& now) {
  const auto loss = [](const EvalResults& results) {
    const auto found = results.find("loss");
    if (found == results.end())
      throw Error(absl::InvalidArgumentError("BestExporter: the results have no \"loss\"; give it a `compare`"));
    return std::isnan(found->second) ? std::numeric_limits<double>::infinity() : found->second;
  };
  return loss(now) < loss(best);
}

absl::StatusOr<EvalResults> ParseBest(const std::string& text) {
  ASSIGN_OR_RETURN(const nlohmann::json json, ParseStrictJson(text, 2));
  if (!json.is_object() || !json.contains("results")) return absl::DataLossError("it has no \"results\"");
  return EvalResultsOfJson(json["results"]);
}

class BestExporterImpl final : public Exporter {
 public:
  explicit BestExporterImpl(BestExporterOptions options) : options_(std::move(options)) {
    CheckExporter("BestExporter", options_.name, options_.inputs, options_.exports_to_keep);
  }
  const std::string& name() const override { return options_.name; }
  std::string Export(Estimator& estimator, const std::string& export_path, const std::string& checkpoint_path,
                     const EvalResults& results, bool) override {
    if (checkpoint_path == judged_) return "";
    if (!best_) best_ = ReadBest(export_path);
    if (best_ && !(options_.compare ? options_.compare(*best_, results) : HasLowerLoss(*best_, results))) {
      judged_ = checkpoint_path;
      return "";
    }
    LogInfo("Performing best model export of ", checkpoint_path, ".");
    std::string path = estimator.Export(export_path, options_.inputs, checkpoint_path);
    WriteBest(export_path, checkpoint_path, results);
    best_ = results;
    judged_ = checkpoint_path;
    ThrowIfError(RemoveOldExports(PosixFileSystem(), export_path, options_.exports_to_keep));
    return path;
  }

 private:
  static std::optional<EvalResults> ReadBest(const std::string& export_path) {
    const std::string file = JoinPath(export_path, kBestFile);
    const absl::StatusOr<std::string> text = PosixFileSystem().ReadFile(file);
    if (absl::IsNotFound(text.status())) return std::nullopt;
    ThrowIfError(text.status());
    absl::StatusOr<EvalResults> best = ParseBest(*text);
    if (!best.ok())
      throw Error(absl::DataLossError(absl::StrCat(file, ": ", best.status().message(),
                                                   "; delete it, and the next evaluation counts as the best")));
    return *std::move(best);
  }
  static void WriteBest(const std::string& export_path, const std::string& checkpoint_path,
                        const EvalResults& results) {
    const nlohmann::json json = {{"checkpoint", checkpoint_path}, {"results", results}};
    const std::string text = json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    ThrowIfError(
        WriteFileAtomically(PosixFileSystem(), JoinPath(export_path, kBestFile), AsBytes(text.data(), text.size())));
  }

  const BestExporterOptions options_;
  std::optional<EvalResults> best_;
  std::string judged_;  // the last judged checkpoint
};

class FinalExporterImpl final : public Exporter {
 public:
  explicit FinalExporterImpl(FinalExporterOptions options) : options_(std::move(options)) {
    CheckExporter("FinalExporter", options_.name, options_.inputs, /*exports_to_keep=*/0);
  }
  const std::string& name() const override { return options_.name; }
  std::string Export(Estimator& estimator, const std::string& export_path, const std::string& checkpoint_path,
                     const EvalResults&, bool is_final) override {
    if (!is_final) return "";
    LogInfo("Performing the final export in the end of training.");
    return estimator.Export(export_path, options_.inputs, checkpoint_path);
  }

 private:
  const FinalExporterOptions options_;
};

}  // namespace

std::shared_ptr<Exporter> LatestExporter(LatestExporterOptions options) {
  return std::make_shared<LatestExporterImpl>(std::move(options));
}

std::shared_ptr<Exporter> BestExporter(BestExporterOptions options) {
  return std::make_shared<BestExporterImpl>(std::move(options));
}

std::shared_ptr<Exporter> FinalExporter(FinalExporterOptions options) {
  return std::make_shared<FinalExporterImpl>(std::move(options));
}

}  // namespace muster
