// `muster manifest`: prints the YAML with which Kubernetes runs an experiment or a program's cluster by itself.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/experiment/check_experiment.h"
#include "apps/muster/experiment/experiment_command.h"
#include "apps/muster/experiment/experiment_folder.h"
#include "apps/muster/terminal/own_environment.h"
#include "apps/muster/terminal/usage_error.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/nearest_name.h"
#include "muster/cluster/identity/environment.h"
#include "muster/cluster/identity/job_token.h"
#include "muster/cluster/quoted.h"
#include "muster/launch/manifest/manifest.h"
#include "muster/launch/manifest/manifest_names.h"
#include "muster/launch/manifest/manifest_tasks.h"
#include "muster/launch/spec/parameters.h"
#include "muster/launch/system/random_hex.h"

namespace muster {
namespace {

constexpr char kManifestDescription[] =
    "Print YAML with which Kubernetes runs the experiment of muster.yml, or PROGRAM, by itself";

constexpr char kManifestFooter[] = R"(
Usage: muster manifest [FLAGS]                           the experiment of muster.yml
       muster manifest [FLAGS] -- PROGRAM [ARGUMENTS]    a cluster as of muster run

Prints files for those who apply files: one container for each task, which knows the others by TF_CONFIG, and nothing of
muster's beside them. Kubernetes starts the tasks, again where that may help: after exit code 130, 137, 138 or 143, not
after a mistake of the user (2) or the program, and as often as `restart` of the file says. An eviction or a drained node
doesn't count. Failed pods and finished Jobs stay, to be read with kubectl logs. The image must have the program and, for
stand-alone ps, muster; docs/containers.md shows how it is made.
--form jobset (default): a JobSet, which must be installed in the cluster. It ends the ps when chief and workers are done.
--form job: an indexed Job for each role and a headless Service. A ps of muster ends by itself, and a failed role doesn't
end the others: kubectl delete -f does.
--form tfjob: Kubeflow's TFJob. Its operator writes TF_CONFIG, which muster's programs read as it is.
The first line of the file says which Kubernetes it needs.
The tasks' secret, MUSTER_JOB_TOKEN, is in a Secret of the file, so keep the file to yourself: the value that the variable
has here, otherwise a random one. --token_secret names a Secret that exists, and the file has none.
A task's mem is its limit, with all that is in /dev/shm, which may hold half of it (--shm).
For restarts under a supervisor that keeps a killed ps's memory, with logs and status: muster train.

Examples:
  muster manifest --image registry.example/me/digits:1 > digits.yaml && kubectl apply -f digits.yaml
  muster manifest --form job --claim results:/results --param learning-rate=0.1 > digits.yaml
  muster manifest --form tfjob --namespace team --label kueue.x-k8s.io/queue-name=gpus > digits.yaml
  muster manifest --image me/digits:1 --ps 2 --workers 4 --chief 1 --resources cpus=4,mem=8GB,gpus=1 \
    --ps_resources cpus=2,mem=4GB --claim models:/models --model_dir /models/digits -- digits --steps 300
  kubectl get pods -l app.kubernetes.io/instance=digits
  kubectl logs -f -l app.kubernetes.io/instance=digits --prefix --max-log-requests 20

Exit codes: 0 done; 2 wrong file or usage: nothing was printed.)";

constexpr int kManifestTokenBytes = 32;

struct ManifestFlags {
  std::string form = "jobset";
  std::optional<std::string> name;
  std::string file;
  std::vector<std::string> parameters;
  // A cluster without a file has these.
  std::optional<std::string> ps, workers, chiefs, resources, ps_resources;
  ClusterRequest cluster;
  // These describe the pods.
  std::vector<std::string> claims, annotations, labels, node_selector, tolerations;
  std::string token_secret, shm, user;
  std::string stop_grace = "30";
  ManifestRequest request;  // the flags that need no conversion
};

absl::Status TakeForm(const std::string& form, ManifestRequest& request) {
  const std::map<std::string, ManifestForm> forms = {
      {"jobset", ManifestForm::kJobSet}, {"job", ManifestForm::kJob}, {"tfjob", ManifestForm::kTfJob}};
  const auto found = forms.find(form);
  if (found == forms.end())
    return absl::InvalidArgumentError(absl::StrCat(
        "--form ", Quoted(form), NearestHint(form, {"jobset", "job", "tfjob"}), "; accepted: jobset, job, tfjob"));
  request.form = found->second;
  return absl::OkStatus();
}

// Takes KEY=VALUE words; the last of a key counts.
absl::Status TakePairs(const char* flag, const std::vector<std::string>& words,
                       std::map<std::string, std::string>& pairs) {
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      return absl::InvalidArgumentError(absl::StrCat(flag, " ", Quoted(word), ": accepted is KEY=VALUE"));
    pairs[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return absl::OkStatus();
}

// NAME:PATH, or NAME:PATH:ro.
absl::Status TakeClaims(const std::vector<std::string>& words, ManifestRequest& request) {
  for (const std::string& word : words) {
    const std::vector<std::string> parts = absl::StrSplit(word, ':');
    const bool is_read_only = parts.size() == 3 && parts[2] == "ro";
    if (parts.size() != 2 && !is_read_only)
      return absl::InvalidArgumentError(
          absl::StrCat("--claim ", Quoted(word), ": accepted is NAME:PATH, or NAME:PATH:ro for one that is only read"));
    request.claims.push_back({.name = parts[0], .path = parts[1], .read_only = is_read_only});
  }
  return absl::OkStatus();
}

// KEY[=VALUE][:EFFECT].
void TakeTolerations(const std::vector<std::string>& words, ManifestRequest& request) {
  for (const std::string& word : words) {
    ManifestToleration toleration;
    const size_t colon = std::min(word.find(':'), word.size());
    if (colon < word.size()) toleration.effect = word.substr(colon + 1);
    const std::string taint = word.substr(0, colon);
    const size_t equals = std::min(taint.find('='), taint.size());
    toleration.key = taint.substr(0, equals);
    if (equals < taint.size()) toleration.value = taint.substr(equals + 1);
    request.tolerations.push_back(std::move(toleration));
  }
}

// UID[:GID].
absl::Status TakeUser(const std::string& text, ManifestRequest& request) {
  if (text.empty()) return absl::OkStatus();
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  ManifestUser user;
  const bool is_user = parts.size() <= 2 && absl::SimpleAtoi(parts[0], &user.user) && user.user >= 0;
  if (!is_user || !absl::SimpleAtoi(parts.back(), &user.group) || user.group < 0)
    return absl::InvalidArgumentError(absl::StrCat("--user ", Quoted(text), ": accepted is UID or UID:GID, numbers"));
  request.user = user;
  return absl::OkStatus();
}

// NAME[:KEY] of a Secret that exists; otherwise draws a token for one in the file.
absl::Status TakeToken(const std::string& secret, ManifestRequest& request) {
  if (secret.empty()) {
    const std::string exported = ReadEnvironment().job_token.value_or("");
    RETURN_IF_ERROR(CheckJobToken(exported));
    request.token = exported.empty() ? RandomHex(kManifestTokenBytes) : exported;
    return absl::OkStatus();
  }
  const size_t colon = std::min(secret.find(':'), secret.size());
  request.token_secret = secret.substr(0, colon);
  if (colon < secret.size()) request.token_key = secret.substr(colon + 1);
  return absl::OkStatus();
}

absl::Status TakePods(const ManifestFlags& flags, ManifestRequest& request) {
  RETURN_IF_ERROR(TakeClaims(flags.claims, request));
  RETURN_IF_ERROR(TakePairs("--annotation", flags.annotations, request.annotations));
  RETURN_IF_ERROR(TakePairs("--label", flags.labels, request.labels));
  RETURN_IF_ERROR(TakePairs("--node_selector", flags.node_selector, request.node_selector));
  TakeTolerations(flags.tolerations, request);
  RETURN_IF_ERROR(TakeUser(flags.user, request));
  RETURN_IF_ERROR(TakeToken(flags.token_secret, request));
  if (!flags.shm.empty()) {
    const absl::StatusOr<int64_t> bytes = ParseMemory(flags.shm, nullptr);
    if (!bytes.ok()) return absl::InvalidArgumentError(absl::StrCat("--shm: ", bytes.status().message()));
    request.shm_bytes = *bytes;
  }
  int seconds = 0;
  if (!absl::SimpleAtoi(flags.stop_grace, &seconds) || seconds < 0)
    return absl::InvalidArgumentError(
        absl::StrCat("--stop-grace ", Quoted(flags.stop_grace), ": accepted is a whole number of seconds from 0"));
  request.stop_grace = absl::Seconds(seconds);
  return absl::OkStatus();
}

absl::Status TakeCount(const char* flag, const std::optional<std::string>& text, int& count) {
  if (!text.has_value() || (absl::SimpleAtoi(*text, &count) && count >= 0)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(flag, " ", Quoted(*text), ": accepted is a whole number from 0"));
}

// Returns the flags of a cluster without a file that were given.
std::vector<std::string> FlagsOfCluster(const ManifestFlags& flags) {
  std::vector<std::string> given;
  const auto add = [&given](const char* flag, bool is_given) {
    if (is_given) given.emplace_back(flag);
  };
  add("--ps", flags.ps.has_value());
  add("--workers", flags.workers.has_value());
  add("--chief", flags.chiefs.has_value());
  add("--evaluator", flags.cluster.evaluator);
  add("--muster-ps", flags.cluster.muster_ps);
  add("--model_dir", !flags.cluster.model_dir.empty());
  add("--env", !flags.cluster.environment.empty());
  add("--resources", flags.resources.has_value());
  add("--ps_resources", flags.ps_resources.has_value());
  return given;
}

absl::Status TakeProgram(const ManifestFlags& flags, std::vector<std::string> program, ManifestRequest& request) {
  if (!flags.file.empty() || !flags.parameters.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(flags.file.empty() ? "--param" : "--file", ": accepted without a PROGRAM behind --"));
  ClusterRequest cluster = flags.cluster;
  cluster.program = std::move(program);
  RETURN_IF_ERROR(TakeCount("--ps", flags.ps, cluster.ps));
  RETURN_IF_ERROR(TakeCount("--workers", flags.workers, cluster.workers));
  RETURN_IF_ERROR(TakeCount("--chief", flags.chiefs, cluster.chiefs));
  RETURN_IF_ERROR(TakeVariables(OwnEnvironment(), cluster));
  ASSIGN_OR_RETURN(const Resources resources, ParseManifestResources("--resources", flags.resources.value_or("")));
  ASSIGN_OR_RETURN(const Resources of_ps, ParseManifestResources("--ps_resources", flags.ps_resources.value_or("")));
  const std::string path = cluster.program[0];
  request.name = flags.name.value_or(DnsLabelOf(path.substr(path.rfind('/') + 1)));
  return TakeCluster(cluster, resources, of_ps, request);
}

absl::Status TakeExperiment(const ManifestFlags& flags, ManifestRequest& request, std::vector<std::string>& notes) {
  if (const std::vector<std::string> given = FlagsOfCluster(flags); !given.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(absl::StrJoin(given, ", "),
                     ": for a PROGRAM behind --; accepted for an experiment: what the file "
                     "says"));
  ASSIGN_OR_RETURN(const FolderFile folder, ReadExperimentFile(flags.file));
  notes = folder.file.warnings;
  // Here it is the image that runs.
  std::erase_if(notes, [](const std::string& note) { return absl::StrContains(note, " train.image: "); });
  ASSIGN_OR_RETURN(const std::vector<ParameterSpec> parameters,
                   WithOverrides(folder.file.parameters, flags.parameters));
  ASSIGN_OR_RETURN(const std::vector<ParameterValues> runs, AllCombinations(parameters));
  if (runs.size() != 1)
    return absl::InvalidArgumentError(absl::StrCat(folder.name, ": its parameters make ", runs.size(),
                                                   " runs, a manifest is one; accepted: one value of each, as with "
                                                   "--param NAME=VALUE"));
  for (std::string& unknown : UnknownParameters(folder.file, runs.front())) notes.push_back(std::move(unknown));
  request.name = flags.name.value_or(DnsLabelOf(folder.file.project));
  RETURN_IF_ERROR(TakeFile(folder.file, runs.front(), request));
  for (std::string& note : NotesOfFile(folder.file, request)) notes.push_back(std::move(note));
  return absl::OkStatus();
}

std::vector<std::string> FlagsOf(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// Returns PROGRAM with its arguments, which stand behind "--"; empty: there is none. `flags`: those of the command.
absl::StatusOr<std::vector<std::string>> ProgramBehind(std::vector<std::string> remaining,
                                                       const std::vector<std::string>& flags) {
  if (remaining.empty()) return remaining;
  if (remaining.front() != "--")
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(remaining.front()), ": not a flag of muster manifest",
                     NearestHint(remaining.front().substr(0, remaining.front().find('=')), flags),
                     " (see muster manifest --help); put the program and its arguments after --"));
  remaining.erase(remaining.begin());
  if (remaining.empty()) return absl::InvalidArgumentError("no program behind --; accepted: -- PROGRAM [ARGUMENTS]");
  return remaining;
}

// Adds lines for the user to `notes`.
absl::StatusOr<std::string> Manifest(const ManifestFlags& flags, const CLI::App& command,
                                     std::vector<std::string>& notes) {
  ManifestRequest request = flags.request;
  RETURN_IF_ERROR(TakeForm(flags.form, request));
  RETURN_IF_ERROR(TakePods(flags, request));
  ASSIGN_OR_RETURN(std::vector<std::string> program, ProgramBehind(command.remaining(), FlagsOf(command)));
  if (program.empty())
    RETURN_IF_ERROR(TakeExperiment(flags, request, notes));
  else
    RETURN_IF_ERROR(TakeProgram(flags, std::move(program), request));
  return ManifestText(request);
}

int PrintManifest(const ManifestFlags& flags, const CLI::App& command) {
  std::vector<std::string> notes;
  const absl::StatusOr<std::string> text = Manifest(flags, command, notes);
  if (!text.ok()) return ReportError("manifest", text.status());
  for (const std::string& note : notes) std::fprintf(stderr, "muster manifest: %s\n", note.c_str());
  std::fputs(text->c_str(), stdout);
  return 0;
}

void AddClusterFlags(CLI::App* command, ManifestFlags& flags) {
  command->add_option("--ps", flags.ps, "Of PROGRAM: how many parameter servers (default 1)")->type_name("N");
  command->add_option("--workers", flags.workers, "Of PROGRAM: how many workers (default 1)")->type_name("N");
  command
      ->add_option("--chief", flags.chiefs, "Of PROGRAM: 1: a chief besides the workers; 0 (default): worker 0 is it")
      ->type_name("N");
  command->add_flag("--evaluator", flags.cluster.evaluator, "Of PROGRAM: also an evaluator");
  command->add_flag("--muster-ps,--muster_ps", flags.cluster.muster_ps,
                    "Run `muster ps` as parameter servers, not PROGRAM");
  command
      ->add_option("--model_dir,--model-dir", flags.cluster.model_dir,
                   "Of PROGRAM: the folder for checkpoints, on a claim; it goes into TF_CONFIG")
      ->type_name("DIR");
  command
      ->add_option("--env", flags.cluster.environment,
                   "Of PROGRAM: a variable; without =VALUE with the value that it has here; may be repeated")
      ->type_name("NAME[=VALUE]")
      ->allow_extra_args(false);
  command
      ->add_option("--resources", flags.resources,
                   "Of PROGRAM: what each task but a ps has, any of cpus=2,mem=4GB,gpus=1 (default: no limits)")
      ->type_name("LIST");
  command->add_option("--ps_resources,--ps-resources", flags.ps_resources, "Of PROGRAM: what each ps has, likewise")
      ->type_name("LIST");
}

void AddObjectFlags(CLI::App* command, ManifestFlags& flags) {
  command->add_option("--form", flags.form, "jobset (default), job or tfjob")->type_name("FORM");
  command
      ->add_option("--name", flags.name,
                   "Name of the objects, where pods' names begin (default: the project's or "
                   "PROGRAM's)")
      ->type_name("NAME");
  command
      ->add_option("--namespace", flags.request.name_space,
                   "Their namespace (default: kubernetes.namespace, else that of kubectl)")
      ->type_name("NAME");
  command
      ->add_option("--image", flags.request.image,
                   "The image of every task (default: kubernetes.image, else train.image)")
      ->type_name("IMAGE");
  command
      ->add_option("--token_secret,--token-secret", flags.token_secret,
                   "NAME or NAME:KEY of a Secret that exists and has the job's token (default key: token)")
      ->type_name("SECRET");
  command
      ->add_option("--pull_secret,--pull-secret", flags.request.pull_secret,
                   "A Secret that exists, with which the image is pulled")
      ->type_name("NAME");
  command
      ->add_option("--service_account,--service-account", flags.request.service_account,
                   "The pods' ServiceAccount; without one they have no access to Kubernetes")
      ->type_name("NAME");
  command->add_option("--label", flags.labels, "A label of all objects and pods; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--annotation", flags.annotations, "An annotation of the pods; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void AddPodFlags(CLI::App* command, ManifestFlags& flags) {
  command
      ->add_option(
          "--claim", flags.claims,
          "NAME:PATH, a PersistentVolumeClaim that each task sees at PATH, or NAME:PATH:ro, only to read; may be "
          "repeated")
      ->type_name("CLAIM")
      ->allow_extra_args(false);
  command
      ->add_option("--node_selector,--node-selector", flags.node_selector,
                   "A label that nodes must have; may be "
                   "repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--toleration", flags.tolerations,
                   "KEY[=VALUE][:EFFECT], a taint that nodes may have; may be repeated")
      ->type_name("TAINT")
      ->allow_extra_args(false);
  command
      ->add_option("--gpu_resource,--gpu-resource", flags.request.gpu_resource,
                   "What Kubernetes calls a GPU (default nvidia.com/gpu)")
      ->type_name("NAME");
  command->add_option("--workdir", flags.request.work_folder, "Where tasks start (default: as the image says)")
      ->type_name("DIR");
  command->add_option("--shm", flags.shm, "Size of /dev/shm, which is part of mem (default: half of mem)")
      ->type_name("SIZE");
  command
      ->add_option("--user", flags.user,
                   "UID or UID:GID to run as, with claims' files of this group (default: the image's)")
      ->type_name("USER");
  command
      ->add_option("--stop-grace,--stop_grace", flags.stop_grace,
                   "How long tasks may take to end when asked to, for a last checkpoint say (default 30)")
      ->type_name("SECONDS");
}

}  // namespace

void AddManifestCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<ManifestFlags>();
  CLI::App* command = app.add_subcommand("manifest", kManifestDescription);
  command
      ->add_option("-f,--file", flags->file,
                   "The experiment file, or a folder with one (default: muster.yml or riseml.yml here)")
      ->type_name("FILE");
  command->add_option("--param", flags->parameters, "Set a parameter of the file; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  AddObjectFlags(command, *flags);
  AddPodFlags(command, *flags);
  AddClusterFlags(command, *flags);
  // As in run_command.cc: the program's words come unchanged from the extras.
  command->add_option("PROGRAM", "What every task runs, with its arguments; it stands behind --")
      ->check([](const std::string&) { return "taken from the extras"; });
  command->validate_positionals();
  command->allow_extras();
  command->footer(kManifestFooter);
  command->callback([command, flags, &exit_code] { exit_code = PrintManifest(*flags, *command); });
}

}  // namespace muster
