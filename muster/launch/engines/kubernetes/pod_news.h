// What Kubernetes says of a job's pods: lists of the API, as JSON. Pure, thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/launch/engines/job_engine.h"

namespace muster {

struct PodFacts {
  std::string job, host;  // as its labels say
  bool is_supervisor = false;
  bool is_again = false;  // it is in the place of a lost one
  JobPhase phase = JobPhase::kWaits;
  bool succeeded = false;
  bool being_deleted = false;
  bool stuck = false;        // waiting alone doesn't bring what it waits for
  bool hopeless = false;     // likewise, and Kubernetes won't even try again
  bool lacks_image = false;  // its image couldn't be pulled; it alternates between two reasons for that
  bool lost = false;         // its node isn't heard any more, and nobody knows whether it runs
  bool over_memory = false;  // it was killed because it used more than its limit
  bool disrupted = false;    // Kubernetes has taken it away: evicted, preempted, its node lost
  absl::Duration start_timeout = absl::InfiniteDuration();  // a supervisor's that waits longer is given up
  std::optional<int> exit_code = std::nullopt;              // of muster in it, once that has ended
  std::string text;  // why it waits, or how it has ended: "Unschedulable: 0/3 nodes are available…"
};

struct PodPage {
  std::vector<PodFacts> pods;
  std::string next;  // where the next page begins; "": this is the last
};

// Unavailable: it isn't a list of pods.
absl::StatusOr<PodPage> ParsePods(std::string_view list);

// Pods that can't pull their images are described by a failed pull, which says why, and by the pause before the next
// one, which mostly doesn't. Gives each pod the words that say most of those that it has had since its image is
// missing.
class ImageTroubles {
 public:
  void SteadyWords(std::vector<PodFacts>& pods);

 private:
  struct Words {
    bool stuck = false;
    std::string text;
  };
  std::map<std::string, Words> words_;  // by the pod's job and host
};

// Returns news of each job of which there is a pod. It is cancelled while the supervisor's pod is being deleted without
// a disruption; a pod that is gone doesn't say why.
std::map<std::string, JobNews> NewsOfPods(const std::vector<PodFacts>& pods);

}  // namespace muster
