// The roles of a manifest: from an experiment file, or from the counts and the program of `muster run`. Pure,
// thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/launch/foreground/cluster_plan.h"
#include "muster/launch/manifest/manifest_request.h"
#include "muster/launch/spec/experiment_file.h"
#include "muster/launch/spec/parameters.h"
#include "muster/launch/task/resources.h"

namespace muster {

// Adds the roles of one run of the file to a request whose name and claims are set, and how they are named; and, where
// these aren't set, the image of the file's `kubernetes`, else of its `train`, and the namespace of `kubernetes`.
// OUTPUT_DIR is below the file's `output`, else below the first claim that may be written to, else in the container.
// InvalidArgument, one line for each mistake: what a container can't have (volumes of a machine that no claim stands
// for, torchrun's groups of several processes), and errors of PlanExperiment.
[[nodiscard]] absl::Status TakeFile(const ExperimentFile& file, const ParameterValues& parameters,
                                    ManifestRequest& request);
// Returns lines for the user about what of the file isn't in the manifest, or is other there than with `muster train`.
std::vector<std::string> NotesOfFile(const ExperimentFile& file, const ManifestRequest& request);

// Adds the roles of a cluster without a layout: `resources` are those of chief, workers and evaluator, `of_ps` those of
// the ps. Errors of ValidateRequest.
[[nodiscard]] absl::Status TakeCluster(const ClusterRequest& cluster, const Resources& resources,
                                       const Resources& of_ps, ManifestRequest& request);

// Parses "cpus=2,mem=4GB,gpus=1", any of them. InvalidArgument names `flag` and what is accepted.
absl::StatusOr<Resources> ParseManifestResources(const std::string& flag, const std::string& text);

}  // namespace muster
