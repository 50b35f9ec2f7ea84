#include "tests/process/testing/slurm_cluster.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "muster/launch/system/find_program.h"
#include "muster/launch/system/random_hex.h"
#include "tests/process/testing/by_hand.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr char kPlaces[] = "/usr/sbin:/usr/bin";

// No accounting, no control groups, nothing but eth0; decisions at once. A node has the CPUs that are written here,
// whatever the machine has. Jobs of the partition urgent take nodes from those of the usual one at once, and from those
// of the partition patient after a grace.
constexpr char kSlurmConf[] = R"(ClusterName=simulated
SlurmctldHost=CONTROLLER
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=FOLDER/munge.socket
SlurmctldPidFile=FOLDER/slurmctld.pid
SlurmdPidFile=FOLDER/slurmd.%n.pid
SlurmdLogFile=FOLDER/slurmd.%n.log
StateSaveLocation=FOLDER/state
SlurmdSpoolDir=FOLDER/spool.%n
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/BINDING
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CONSUMABLE
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=1
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
ReturnToService=2
SlurmdParameters=config_overrides
KillWait=5
MinJobAge=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
)";

std::string NameOfThisHost() {
  char name[256] = "";
  EXPECT_EQ(gethostname(name, sizeof name - 1), 0);
  const std::string full = name;
  return full.substr(0, full.find('.'));
}

}  // namespace

std::string SlurmCluster::WhyNot() {
  if (const std::string why = SimulatedHosts::WhyNot(); !why.empty()) return why;
  for (const char* program : {"slurmctld", "slurmd", "munged", "salloc", "srun"})
    if (const auto found = FindProgram(program, kPlaces); !found.ok())
      return NoTestBecause(absl::StrCat("Slurm isn't installed: ", std::string(found.status().message())));
  return "";
}

SlurmCluster::SlurmCluster(const SimulatedHosts& hosts, const std::vector<int>& cpus, const SlurmFeatures& features)
    : hosts_(hosts),
      cpus_(cpus),
      nodes_(hosts.names().begin(), hosts.names().begin() + static_cast<ptrdiff_t>(cpus.size())),
      features_(features),
      folder_(hosts.shared() + "/slurm") {
  fs::create_directory(folder_);
  WriteSettings();
  // It looks for a folder that every user may enter, which that of a test isn't.
  Start("h0",
        {"munged", "--foreground", "--force", "--key-file=" + File("munge.key"), "--socket=" + File("munge.socket"),
         "--pid-file=" + File("munged.pid"), "--seed-file=" + File("munge.seed")},
        "Created 2 work threads");
  Start(features_.controller, {"slurmctld", "-D", "-c"}, "Running as primary controller");
  for (const std::string& node : nodes_) StartNode(node);
}

SlurmCluster::~SlurmCluster() = default;

void SlurmCluster::WriteSettings() const {
  fs::create_directory(File("state"));
  const std::string controller = features_.controller == "h0" ? NameOfThisHost() : features_.controller;
  std::string text = absl::StrReplaceAll(
      kSlurmConf, {{"FOLDER", folder_},
                   {"CONTROLLER", absl::StrCat(controller, "(", SimulatedHosts::AddressOf(features_.controller), ")")},
                   {"CONSUMABLE", features_.counts_memory ? "CR_Core_Memory" : "CR_Core"},
                   {"BINDING", features_.binds_cores ? "affinity" : "none"}});
  for (size_t i = 0; i < cpus_.size(); ++i) {
    const std::string& host = nodes_[i];
    fs::create_directory(File("spool." + host));
    absl::StrAppend(&text, "NodeName=", host, " NodeAddr=", SimulatedHosts::AddressOf(host), " CPUs=", cpus_[i],
                    " RealMemory=1000", features_.gpu_hosts.contains(host) ? " Gres=gpu:2" : "", " State=UNKNOWN\n");
  }
  absl::StrAppend(&text,
                  "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"
                  "PartitionName=patient Nodes=ALL GraceTime=10 State=UP\n"
                  "PartitionName=urgent Nodes=ALL PriorityTier=2 State=UP\n");
  // Slurm looks for device files.
  if (!features_.gpu_hosts.empty()) {
    for (const char* name : {"gpu0", "gpu1"})
      EXPECT_EQ(mknod(File(name).c_str(), S_IFCHR | 0600, makedev(1, 3)), 0) << "/dev/null under another name";
    std::ofstream(File("gres.conf")) << "NodeName=" << absl::StrJoin(features_.gpu_hosts, ",")
                                     << " Name=gpu File=" << File("gpu[0-1]") << "\n";
    absl::StrAppend(&text, "GresTypes=gpu\n");
  }
  std::ofstream(File("slurm.conf")) << text;
  std::ofstream(File("munge.key")) << RandomHex(64);
  fs::permissions(File("munge.key"), fs::perms::owner_read);
}

std::vector<std::string> SlurmCluster::On(const std::string& host, const std::vector<std::string>& words) const {
  return hosts_.On(host, Joined({"env", variable(), absl::StrCat("PATH=", kPlaces, ":/bin")}, words));
}

void SlurmCluster::Start(const std::string& host, const std::vector<std::string>& words, const std::string& until) {
  daemons_.push_back(std::make_unique<Process>(On(host, words), ProcessOptions{.output_together = true}));
  daemons_.back()->WaitForOut(until);
}

void SlurmCluster::StartNode(const std::string& node) {
  // It starts steps where it is itself, and a machine of tests may lie in a folder that is not in the namespace of a
  // host.
  Start(node, {"env", "--chdir=/", "slurmd", "-D", "-N", node}, "slurmd started on");
}

std::string SlurmCluster::Ask(const std::vector<std::string>& words) const {
  Process client(On("h0", words), {.output_together = true});
  EXPECT_EQ(client.Wait(), 0) << absl::StrJoin(words, " ") << ": " << client.out;
  return client.out;
}

std::string SlurmCluster::Allocate() const {
  const std::string said = Ask({"salloc", "--no-shell", "--exclusive", absl::StrCat("--nodes=", cpus_.size())});
  const std::vector<std::string> granted = After(said, "salloc: Granted job allocation ");
  EXPECT_EQ(granted.size(), 1U) << said;
  return granted.empty() ? "" : granted.front();
}

void SlurmCluster::Cancel(const std::string& job) const { Ask({"scancel", job}); }

std::vector<std::string> SlurmCluster::ShellOf(const std::string& job) const {
  return {"SLURM_JOB_ID=" + job,
          "SLURM_JOBID=" + job,
          "SLURM_JOB_NODELIST=" + absl::StrJoin(nodes_, ","),
          "SLURM_JOB_CPUS_PER_NODE=" + absl::StrJoin(cpus_, ","),
          absl::StrCat("SLURM_TASKS_PER_NODE=1(x", cpus_.size(), ")"),
          absl::StrCat("SLURM_NNODES=", cpus_.size())};
}

void SlurmCluster::AwaitNothingElseOn(const std::string& host) const {
  hosts_.AwaitNothingOn(host, {"slurmd", "slurmstepd", "slurmctld", "slurmscriptd"});
}

std::string SlurmCluster::StepsOf(const std::string& job) const {
  return Ask({"squeue", "--steps", "--noheader", "--jobs=" + job, "--format=%i"});
}

}  // namespace muster
