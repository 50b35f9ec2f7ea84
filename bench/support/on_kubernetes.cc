#include "bench/support/on_kubernetes.h"

#include <filesystem>
#include <fstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace muster::bench {
namespace {

constexpr char kPod[] = R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain-NUMBER"}, "spec": {)"
                        R"("restartPolicy": "Never", "containers": [{"name": "plain", "image": "any", "command": )"
                        R"(["sh", "-c", "echo GREETING"]}]}})";

constexpr absl::Duration kPodsPatience = absl::Minutes(1);

std::string PodOf(int number) {
  std::string pod = kPod;
  const std::string place = "NUMBER";
  return pod.replace(pod.find(place), place.size(), absl::StrCat(number));
}

}  // namespace

OnKubernetes::OnKubernetes(const std::string& greeting, const std::string& muster)
    : hosts_(kNodesOfKubernetes),
      cluster_(hosts_, {{.cpus = "8"}, {.cpus = "8"}}),
      project_(hosts_.shared() + "/project") {
  std::filesystem::create_directory(project_);
  std::ofstream(project_ + "/muster.yml")
      << "project: bench\non: kubernetes\nkubernetes: {nodes: " << tasks()
      << ", image: any, muster: " << std::filesystem::absolute(muster).lexically_normal().string()
      << "}\ntrain:\n  torchrun: {workers: " << tasks() << "}\n  run: echo " << greeting << "\n";
}

absl::StatusOr<double> OnKubernetes::OfItself() const {
  std::string pods;
  for (int i = 0; i < tasks(); ++i) absl::StrAppend(&pods, PodOf(i), "\n");
  const absl::Time start = absl::Now();
  cluster_.Apply(pods);
  std::vector<std::string> ask = {"get", "pods", "--output=jsonpath={.items[*].status.phase}"};
  for (int i = 0; i < tasks(); ++i) ask.push_back(absl::StrCat("plain-", i));
  const std::string all_ended = absl::StrJoin(std::vector<std::string>(tasks(), "Succeeded"), " ");
  while (cluster_.Ask(ask) != all_ended)
    if (absl::Now() - start > kPodsPatience) return absl::DeadlineExceededError("plain pods don't end");
  const double milliseconds = absl::ToDoubleMilliseconds(absl::Now() - start);
  for (int i = 0; i < tasks(); ++i) cluster_.Ask({"delete", "pod", absl::StrCat("plain-", i), "--wait=false"});
  return milliseconds;
}

std::vector<std::string> OnKubernetes::Train(const std::string& muster) const {
  return cluster_.OnH0({muster, "train", "-f", project_});
}

}  // namespace muster::bench
