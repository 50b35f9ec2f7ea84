// The pod of a task, as a PodTemplateSpec of Kubernetes. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "muster/launch/manifest/manifest_request.h"

namespace muster {

// Returns the name of a pod's only container, and of the port at which it serves.
std::string ContainerName(ManifestForm form);

// Returns the labels of the objects of a manifest; with a role, those of its pods.
nlohmann::ordered_json ManifestLabels(const ManifestRequest& request, const std::string& role);

// Returns the size of /dev/shm, which is part of the task's memory; nullopt: as large as the node allows.
std::optional<int64_t> ShmBytes(const ManifestRequest& request, const ManifestRole& role);

nlohmann::ordered_json PodTemplate(const ManifestRequest& request, const ManifestRole& role);

}  // namespace muster
