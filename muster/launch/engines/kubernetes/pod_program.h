// What the containers of a job's pods run: short programs of sh around muster. Pure, thread-safe.
#pragma once

#include <string>

#include "absl/time/time.h"

namespace muster {

// The variable that tells an agent's container the name of its host, from the pod's label.
inline constexpr char kHostVariableOfPod[] = "MUSTER_POD_HOST";
// The pod's own copy of the Secret's file, which nobody else in the container can read.
inline constexpr char kRendezvousOfPod[] = "/muster/rendezvous";
// Where the supervisor's program keeps its process id, for AskProgram.
inline constexpr char kPidFileOfPod[] = "/muster/pid";

// There once muster was asked for the run's end: a signal that comes then isn't Kubernetes'.
inline constexpr char kAskedFileOfPod[] = "/muster/asked";

struct SupervisorPodProgram {
  std::string muster;       // the program in the image
  std::string experiment;   // its id
  std::string over_file;    // Home::job_over in the pod's home
  std::string output_file;  // Home::job_output there: what the supervisor says, which is the pod's output, too
  absl::Duration await;     // the experiment comes within this
  absl::Duration keep;      // and is fetched within this after its end
  absl::Duration grace;     // the pod is killed so long after SIGTERM
};
// Waits until the experiment has come, supervises it, again if the supervisor is killed, three times, and then waits
// until all has been fetched. SIGTERM, by which Kubernetes ends a pod, asks the supervisor to end the run, and shortens
// that wait to what is left of the grace; SIGUSR1 only asks the supervisor.
std::string SupervisorProgram(const SupervisorPodProgram& program);

struct AgentPodProgram {
  std::string muster;
  std::string run;  // its id
  absl::Duration grace;
  absl::Duration first;   // a supervisor comes within this
  absl::Duration ending;  // the tasks get so long after SIGTERM to the pod
};
std::string AgentProgramOfPod(const AgentPodProgram& program);

// Runs the image's muster with the arguments behind it, in the supervisor's container.
inline constexpr char kRunMuster[] = "exec \"$(cat /muster/muster)\" \"$@\"";

// What is run in the supervisor's container to ask it for the run's end, and only to note that its pod is about to be
// deleted for that.
std::string AskProgram();
std::string NoteProgram();

// Returns where a file of the submitter's home is in the pod's.
std::string InPodHome(const std::string& path, const std::string& home);

}  // namespace muster
