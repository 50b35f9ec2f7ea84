#include "bench/support/on_ray.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace muster::bench {
namespace {

// As a user's program begins on several nodes. The time is written by the program, as what `ray job submit` shows of
// its output is later.
constexpr char kActorOnEachNode[] = R"(
import sys, time
import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

class Actor:
    def answer(self):
        return True

ray.init(log_to_driver=False, logging_level="ERROR")
count = int(sys.argv[1])
group = placement_group([{"CPU": 0.01}] * count, strategy="STRICT_SPREAD")
ray.get(group.ready())
actors = [ray.remote(Actor).options(num_cpus=0.01, scheduling_strategy=PlacementGroupSchedulingStrategy(group, i)).remote()
          for i in range(count)]
ray.get([actor.answer.remote() for actor in actors])
with open(sys.argv[2], "w") as file:
    file.write(str(time.time()))
)";

}  // namespace

OnRay::OnRay(const std::string& greeting)
    : hosts_(kNodesOfRay), ray_(hosts_, {8, 8, 8}), project_(hosts_.shared() + "/project") {
  std::filesystem::create_directory(project_);
  std::ofstream(project_ + "/actors.py") << kActorOnEachNode;
  std::ofstream(project_ + "/muster.yml")
      << "project: bench\non: ray\nray: {nodes: " << kNodesOfRay << ", address: \"" << RayCluster::address()
      << "\", python: " << RayCluster::python() << "}\ntrain:\n  torchrun: {workers: " << kNodesOfRay
      << "}\n  run: echo " << greeting << "\n";
}

absl::StatusOr<double> OnRay::OfItself() const {
  const std::string answered = project_ + ".answered";
  std::filesystem::remove(answered);
  const absl::Time start = absl::Now();
  ray_.Ask({"job", "submit", "--", RayCluster::python(), project_ + "/actors.py", absl::StrCat(kNodesOfRay), answered});
  return MillisecondsUntilWritten(answered, start);
}

std::vector<std::string> OnRay::Train(const std::string& muster) const {
  return hosts_.On("h0", {muster, "train", "-f", project_});
}

}  // namespace muster::bench
