// What kubectl is told to do with all objects of a job, and how long it may take for that: it sends them to the API one
// after the other. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "muster/launch/engines/kubernetes/kubectl/kubectl.h"

namespace muster {

// Returns how many objects a text of documents with "---" between has.
size_t ObjectsIn(const std::string& documents);

// Has the API check all that the manifest has, and keep nothing of it.
KubectlCall TryCall(const std::string& manifest);
// Makes what these documents have. `output`: what kubectl is to print, as its --output.
KubectlCall CreateCall(const std::string& documents, const std::string& output);
// Asks for the names of a job's pods, a line each.
KubectlCall PodNamesCall(const std::string& job);
// Delete a job that has this many pods. `at_once`: without their grace.
std::vector<KubectlCall> DeleteCalls(const std::string& job, size_t pods, bool at_once);

}  // namespace muster
