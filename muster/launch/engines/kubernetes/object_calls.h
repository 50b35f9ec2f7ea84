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
// Asks the API for a page of the pods of these jobs, as JSON. A page bounds what kubectl and this process hold at a
// time and what has to come within one patience, however many pods there are: `kubectl get` reads pages, too, but holds
// all of them before it prints. `next`: where the page begins, as the page before says; "" for the first.
KubectlCall PodPageCall(const std::string& name_space, const std::vector<std::string>& jobs, const std::string& next);
// Delete a job that has this many pods. `at_once`: without their grace.
std::vector<KubectlCall> DeleteCalls(const std::string& job, size_t pods, bool at_once);

}  // namespace muster
