#include "muster/launch/engines/kubernetes/gang.h"

#include <string>

namespace muster {

void AddToGang(const GangRequest& request, OrderedJson& pod) {
  OrderedJson& metadata = pod["metadata"];
  const auto use_scheduler = [&pod](const char* usual) {
    if (!pod["spec"].contains("schedulerName")) pod["spec"]["schedulerName"] = usual;
  };
  switch (request.gang) {
    case PodGang::kNone:
      return;
    case PodGang::kKueue:
      metadata["labels"]["kueue.x-k8s.io/queue-name"] = request.queue;
      metadata["labels"]["kueue.x-k8s.io/pod-group-name"] = request.name;
      metadata["annotations"]["kueue.x-k8s.io/pod-group-total-count"] = std::to_string(request.pods);
      metadata["annotations"]["kueue.x-k8s.io/retriable-in-group"] = "false";
      return;
    case PodGang::kVolcano:
      metadata["annotations"]["scheduling.k8s.io/group-name"] = request.name;
      return use_scheduler("volcano");
    case PodGang::kCoscheduling:
      metadata["labels"]["scheduling.x-k8s.io/pod-group"] = request.name;
      return use_scheduler("scheduler-plugins-scheduler");
  }
}

OrderedJson PodGroupOf(const GangRequest& request) {
  if (request.gang == PodGang::kVolcano) {
    OrderedJson group = {{"apiVersion", "scheduling.volcano.sh/v1beta1"},
                         {"kind", "PodGroup"},
                         {"metadata", {{"name", request.name}}},
                         {"spec", {{"minMember", request.pods}}}};
    if (!request.queue.empty()) group["spec"]["queue"] = request.queue;
    return group;
  }
  if (request.gang == PodGang::kCoscheduling)
    return {{"apiVersion", "scheduling.x-k8s.io/v1alpha1"},
            {"kind", "PodGroup"},
            {"metadata", {{"name", request.name}}},
            {"spec",
             {{"minMember", request.pods}, {"scheduleTimeoutSeconds", absl::ToInt64Seconds(request.start_timeout)}}}};
  return OrderedJson();
}

std::string ApiGroupOf(PodGang gang) {
  switch (gang) {
    case PodGang::kNone:
      return "";
    case PodGang::kKueue:
      return "kueue.x-k8s.io";
    case PodGang::kVolcano:
      return "scheduling.volcano.sh";
    case PodGang::kCoscheduling:
      return "scheduling.x-k8s.io";
  }
  return "";
}

}  // namespace muster
