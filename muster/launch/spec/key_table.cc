#include "muster/launch/spec/key_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/check.h"
#include "muster/launch/hosts/host_list.h"
#include "muster/launch/spec/parameters.h"
#include "muster/launch/task/resources.h"

namespace muster {
namespace {

constexpr int64_t kMostRoleTasks = 1000;  // per role
constexpr char kVersionPattern[] = "^(latest|[0-9][0-9A-Za-z.+]*)(-gpu|-py3)*$";
constexpr char kVariablePattern[] = "^[A-Za-z_][A-Za-z0-9_]*$";

KeyForm TextOf(const std::string& text) { return {.kind = FormKind::kText, .text = text}; }
KeyForm TextForm() { return TextOf("text"); }
KeyForm AnyTextForm() { return {.kind = FormKind::kAnyText, .text = "text"}; }
KeyForm NothingForm() { return {.kind = FormKind::kNothing, .text = "null"}; }
KeyForm AnythingForm(const std::string& text) { return {.kind = FormKind::kAnything, .text = text}; }
KeyForm TruthForm() { return {.kind = FormKind::kTruth, .text = "true or false"}; }
KeyForm PositiveForm() { return {.kind = FormKind::kPositive, .text = "a number above 0"}; }
KeyForm NumberForm() { return {.kind = FormKind::kNumber, .text = "a number"}; }
KeyForm MemoryForm() { return {.kind = FormKind::kMemory, .text = kMemoryForms}; }
KeyForm SecondsForm() { return {.kind = FormKind::kDuration, .text = "a duration: 250ms, 2s, 1m"}; }

KeyForm PatternForm(const std::string& pattern, const std::string& text) {
  return {.kind = FormKind::kPattern, .text = text, .pattern = pattern};
}

KeyForm WordForm(const std::vector<std::string>& words) {
  return {.kind = FormKind::kWord, .text = absl::StrCat("one of ", absl::StrJoin(words, ", ")), .words = words};
}

KeyForm WholeForm(int64_t least, int64_t most) {
  const std::string text =
      least == most ? absl::StrCat(least) : absl::StrCat("a whole number from ", least, " to ", most);
  return {.kind = FormKind::kWhole, .text = text, .least = least, .most = most};
}

KeyForm ListOf(std::vector<KeyForm> of, const std::string& text) {
  return {.kind = FormKind::kList, .text = text, .of = std::move(of)};
}

KeyForm NamesForm(const std::string& pattern, std::vector<KeyForm> of, const std::string& text) {
  return {.kind = FormKind::kNames, .text = text, .pattern = pattern, .of = std::move(of)};
}

KeyForm SectionForm(const std::string& section, const std::string& text) {
  return {.kind = FormKind::kSection, .text = text, .section = section};
}

KeyForm AbsolutePathForm() { return PatternForm("^/[^:]*$", "an absolute path without a colon"); }

KeyRow ResourcesRow(const std::string& standard, const std::string& meaning) {
  return {"resources", {SectionForm("resources", "{cpus, mem, gpus}")}, standard, meaning};
}

KeyRow RestartRow(const std::string& standard, const std::string& meaning) {
  return {"restart", {SectionForm("restart", "{policy, limit, backoff}")}, standard, meaning};
}

// Returns the keys of ps, worker, master or evaluator when it is a map instead of a count.
KeySection RoleKeys(const std::string& name, int64_t least, int64_t most) {
  const std::string where = absl::StrCat("distributed.", name);
  return {name,
          where,
          {{"count", {WholeForm(least, most)}, "1", "how many tasks"},
           ResourcesRow("train.resources", "of each of these tasks; keys left out are as in train.resources"),
           RestartRow("train.restart", "of each of these tasks; keys left out are as in train.restart")}};
}

KeyRow RoleRow(const std::string& name, int64_t least, int64_t most, const std::string& standard,
               const std::string& meaning) {
  return {name, {WholeForm(least, most), SectionForm(name, "{count, resources, restart}")}, standard, meaning};
}

KeyRow VersionRow(const std::string& meaning) {
  return {"version",
          {PatternForm(kVersionPattern, "a version such as 2.15.0 or latest, maybe with -gpu")},
          "the installed one",
          meaning};
}

KeyRow HostsByRow() {
  const KeyForm words = ListOf({AnyTextForm()}, "a list of words");
  return {"hosts_by",
          {NamesForm("^(acquire|start|state|release)$",
                     {NamesForm("^(argv|timeout|retry_exit|refused_exit|gone_exit)$", {AnyTextForm(), words},
                                "a map of argv, timeout and exit codes")},
                     "a map of acquire, start, state and release to {argv, timeout, …}")},
          "",
          "with on: command: the commands that get hosts, reach them, ask for them and give them back "
          "(command_engine.md)"};
}

KeyRow KubernetesRow() {
  return {"kubernetes",
          {NamesForm("^(nodes|image|kubectl|context|namespace|muster|gpu_resource|service_account|image_pull_secrets|"
                     "node_selector|annotations|labels|tolerations|claims|gang|queue|scheduler|start_timeout|start_"
                     "tries|start_pause|"
                     "keep|shm|pod_template)$",
                     {TextOf("a text"), NothingForm(), AnythingForm("a list or a map")},
                     "a map of nodes, image and the other keys of kubernetes.md")},
          "one pod",
          "with on: kubernetes: how many pods, their image, and what else the pods are to be; the keys are in "
          "kubernetes.md"};
}

KeyRow SparkRow() {
  return {
      "spark",
      {NamesForm("^(nodes|address|python|start_timeout|conf)$",
                 {TextOf("a text"), NothingForm(),
                  NamesForm("^spark\\.", {TextOf("a text"), NothingForm()}, "a map from Spark's settings to values")},
                 "a map of nodes, address, python, start_timeout and conf")},
      "one node",
      "with on: spark: how many tasks of Spark, the master's address, a python that has pyspark, how long the "
      "application may wait for its slots, and settings of Spark"};
}

KeySection FileKeys() {
  return {
      kFileSection,
      "the file",
      {{"project",
        {PatternForm("^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$",
                     "a name of letters, digits, '-', '_' and '.', at most 100, beginning with a letter or digit")},
        "required",
        "the project of the experiments; commands without an id mean its last one"},
       {"on",
        {WordForm({"local", "ssh", "slurm", "ray", "spark", "kubernetes", "command"})},
        "ssh if there are hosts, otherwise local",
        "where the tasks run: on this machine, on hosts that ssh reaches (clusters.md), in a job of Slurm "
        "(slurm.md), Ray (ray.md), Spark (spark.md) or Kubernetes (kubernetes.md), or on hosts that your own commands "
        "get "
        "(command_engine.md)"},
       {"hosts",
        {TextOf(absl::StrCat("a text: ", kHostListForms)),
         ListOf({TextOf(kHostLineForms)}, absl::StrCat("a list of ", kHostLineForms))},
        "",
        "the hosts; slots are the most tasks that train on one; with on: command, how many"},
       {"host_file", {TextOf("a path")}, "", "a file of such hosts, one a line, in place of hosts"},
       {"placement",
        {NamesForm("^(ps|worker|master|evaluator)$", {TextOf("a host"), ListOf({TextOf("a host")}, "a list of hosts")},
                   "a map from ps, worker, master, evaluator to a host or a list")},
        "in turn over the hosts, within their slots",
        "the hosts of a role's tasks, in turn; these need no free slot"},
       {"grace", {SecondsForm()}, "30s", "how long tasks on hosts go on without their supervisor; at least 10s"},
       {"ports",
        {TextOf("FIRST-LAST, as 40000-40100")},
        "any that are free",
        "the only numbers for ports of tasks, on every host, as a firewall lets them through; each host needs one more "
        "than it has tasks"},
       {"supervisor",
        {TextOf("here, or a host")},
        "here",
        "where the experiment is supervised: on this machine, or on a host that ssh reaches and that stays on"},
       {"slurm",
        {NamesForm("^[a-z][a-z0-9_-]*$",
                   {TextOf("a text"), NothingForm(), ListOf({TextOf("a text")}, "a list of texts")},
                   "a map from options of sbatch, extra and max_requeues to their values")},
        "what the tasks' resources ask for",
        "with on: slurm: options of sbatch by their long names (null: none, also where muster has one of its own), "
        "extra for further words, "
        "max_requeues: how often it goes on in another job when the time of its job is over"},
       {"ray",
        {NamesForm("^(nodes|address|python|autoscaler|resources)$",
                   {TextOf("a text"), NothingForm(), NamesForm("", {NumberForm()}, "a map from resources to numbers")},
                   "a map of nodes, address, python, autoscaler and resources")},
        "one node",
        "with on: ray: how many nodes, the dashboard's address, a python that has Ray, whether an autoscaler may make "
        "nodes "
        "that Ray doesn't know, and what is asked for on each node by Ray's names in the place of what the tasks "
        "state"},
       SparkRow(),
       KubernetesRow(),
       HostsByRow(),
       {"ssh_config", {TextOf("a path")}, "your own", "a configuration file for ssh"},
       {"train", {SectionForm("train", "{framework, run, …}")}, "required", "what an experiment is"}}};
}

KeyRow SetupRow(const KeyForm& commands) {
  return {"setup",
          {TextForm(), commands, SectionForm("setup", "{run, files}")},
          "",
          "commands run once on each host (or this machine; hosts that share a home share it) and content, before the "
          "tasks; they and the tasks have a folder MUSTER_SETUP_DIR there, which stays"};
}

KeySection TrainKeys() {
  const KeyForm commands = ListOf({TextForm()}, "a list of commands");
  const KeyForm variable = PatternForm("^[A-Za-z_][A-Za-z0-9_]*=", "NAME=VALUE");
  return {"train",
          "train",
          {{"framework",
            {WordForm({"muster", "tensorflow", "pytorch", "any"})},
            "any",
            "what the program is written for; any: the commands are run as they are"},
           {"tensorflow",
            {SectionForm("tensorflow", "{version, tensorboard, distributed}")},
            "",
            "for framework: tensorflow only"},
           {"muster", {SectionForm("muster", "{version, tensorboard, distributed}")}, "", "for framework: muster only"},
           {"pytorch", {SectionForm("pytorch", "{version}")}, "", "for framework: pytorch only"},
           {"torchrun",
            {SectionForm("torchrun", "{workers, processes, resources, restart}")},
            "",
            "for framework: pytorch or any; tasks find each other as under torchrun"},
           {"image",
            {TextForm()},
            "",
            "for backends that run images; on this machine the version is installed in a virtual environment instead"},
           {"install",
            {TextForm(), commands},
            "",
            "commands that prepare the code, run once per code and version before the first task; stops at the first "
            "that fails"},
           SetupRow(commands),
           {"run",
            {TextForm(), commands},
            "required",
            "commands of each task, run by a shell in order; stops at the first that fails (a text of several lines is "
            "one command)"},
           ResourcesRow("no limits, no GPUs", "of each task"),
           {"parameters",
            {NamesForm(kParameterNamePattern,
                       {AnyTextForm(), ListOf({AnyTextForm()}, "a list of values, at least one"),
                        SectionForm("parameter", "{range}")},
                       "a map from names to values")},
            "",
            "what {{ name }} in commands stands for; several values of one or more make a grid"},
           {"concurrency", {WholeForm(1, kMostRoleTasks)}, "1", "runs of a grid at a time"},
           {"env",
            {NamesForm(kVariablePattern, {AnyTextForm()}, "a map from names to values"),
             ListOf({variable}, "a list of NAME=VALUE")},
            "",
            "environment variables of the tasks and of install"},
           {"volumes",
            {ListOf({PatternForm("^/[^:]*(:/[^:]*)?(:(ro|rw))?$", "/host, /host:/path, or either with :ro or :rw"),
                     SectionForm("volume", "{host, path, writable}")},
                    "a list of volumes")},
            "",
            "folders of the machine that every task sees; read-only unless marked :rw or writable"},
           {"output", {AbsolutePathForm()}, "below MUSTER_HOME", "root of the experiments' OUTPUT_DIRs"},
           {"log_limit", {MemoryForm()}, "256MB", "the size up to which one task's log is kept"},
           RestartRow("on-failure, 3 times", "of each task")}};
}

KeySection FrameworkKeys(const std::string& name) {
  return {name,
          absl::StrCat("train.", name),
          {VersionRow(name == "muster" ? "only for images; this machine uses this program's own"
                                       : "installed in a virtual environment; -gpu: the build for GPUs"),
           {"tensorboard", {TruthForm()}, "false", "runs one beside the experiment"},
           {"distributed",
            {SectionForm("distributed", "{worker, ps, master, evaluator}")},
            "one task",
            "several tasks, which find each other by TF_CONFIG"}}};
}

KeySection DistributedKeys() {
  return {
      "distributed",
      "train.tensorflow.distributed, train.muster.distributed",
      {RoleRow("worker", 1, kMostRoleTasks, "1", "workers; the first of them is the master, unless master is given"),
       RoleRow("ps", 0, kMostRoleTasks, "0", "parameter servers"),
       RoleRow("master", 1, 1, "the first worker", "a master besides the workers"),
       {"evaluator",
        {TruthForm(), WholeForm(0, 1), SectionForm("evaluator", "{count, resources, restart}")},
        "false",
        "a task that evaluates, outside the cluster"}}};
}

KeySection TorchrunKeys() {
  return {"torchrun",
          "train.torchrun",
          {{"workers", {WholeForm(1, kMostRoleTasks)}, "1", "groups of processes, what torchrun calls nodes"},
           {"processes", {WholeForm(1, kMostRoleTasks)}, "1", "of each group"},
           ResourcesRow("train.resources", "of each group: its processes share its GPUs and divide the rest equally"),
           RestartRow("train.restart", "of each process; keys left out are as in train.restart")}};
}

KeySection ResourceKeys() {
  return {
      "resources",
      "train.resources, those of a role and of torchrun",
      {{"cpus", {PositiveForm()}, "no limit", "cores that a task may use: 0.5 is half of one"},
       {"mem", {MemoryForm()}, "no limit", "memory of a task; one that uses more is killed, with that as the reason"},
       {"gpus", {WholeForm(0, 64)}, "0", "GPUs that a task sees, out of the free ones"}}};
}

KeySection RestartKeys() {
  return {
      "restart",
      "train.restart, those of a role and of torchrun",
      {{"policy",
        {WordForm({"never", "on-failure", "always"})},
        "on-failure",
        "on-failure: after a signal that is no crash of the program (SIGKILL, not SIGSEGV), or an exit code that says "
        "that a retry may help"},
       {"limit", {WholeForm(0, 1'000'000)}, "3", "restarts at most"},
       {"backoff",
        {SecondsForm()},
        "250ms",
        "pause before the second restart in a row; doubles with each, up to 10s; a value above 10s stays as it is"}}};
}

KeySection RangeKeys() {
  return {"range",
          "train.parameters.NAME.range",
          {{"min", {NumberForm()}, "required", "the first value"},
           {"max", {NumberForm()}, "required", "the last value, if it falls on the step"},
           {"step",
            {PositiveForm()},
            "10 if logarithmic",
            "difference between values; required unless logarithmic, where it is a factor above 1"},
           {"logarithmic", {TruthForm()}, "false", "each value is step times the one before; random values likewise"}}};
}

std::vector<KeySection> AllExperimentKeys() {
  return {FileKeys(),
          TrainKeys(),
          FrameworkKeys("tensorflow"),
          FrameworkKeys("muster"),
          {"pytorch", "train.pytorch", {VersionRow("installed in a virtual environment; -gpu: the build for GPUs")}},
          DistributedKeys(),
          RoleKeys("worker", 1, kMostRoleTasks),
          RoleKeys("ps", 0, kMostRoleTasks),
          RoleKeys("master", 1, 1),
          RoleKeys("evaluator", 0, 1),
          TorchrunKeys(),
          {"setup",
           "train.setup",
           {{"run", {TextForm(), ListOf({TextForm()}, "a list of commands")}, "required", "the commands"},
            {"files",
             {ListOf({TextForm()}, "a list of paths")},
             "the whole folder",
             "the content: the commands are run again when one of these files, or a command, has changed"}}},
          ResourceKeys(),
          RestartKeys(),
          {"parameter",
           "train.parameters.NAME",
           {{"range", {SectionForm("range", "{min, max, step, logarithmic}")}, "required", "evenly spaced numbers"}}},
          RangeKeys(),
          {"volume",
           "train.volumes, an item",
           {{"host", {AbsolutePathForm()}, "required", "a folder or file of the machine"},
            {"path", {AbsolutePathForm()}, "as host", "where tasks see it"},
            {"writable", {TruthForm()}, "false", "whether they may write there"}}}};
}

}  // namespace

std::string AcceptedText(const std::vector<KeyForm>& forms) {
  std::string text;
  for (size_t i = 0; i < forms.size(); ++i)
    absl::StrAppend(&text, i == 0 ? "" : i + 1 == forms.size() ? ", or " : ", ", forms[i].text);
  return text;
}

std::string KeyRow::Accepted() const { return AcceptedText(forms); }

std::vector<std::string> KeySection::Names() const {
  std::vector<std::string> names;
  for (const KeyRow& row : keys) names.push_back(row.name);
  return names;
}

const std::vector<KeySection>& ExperimentKeys() {
  static const std::vector<KeySection> table = AllExperimentKeys();
  return table;
}

const KeySection& ExperimentKeySection(std::string_view name) {
  const std::vector<KeySection>& table = ExperimentKeys();
  const auto found =
      std::find_if(table.begin(), table.end(), [name](const KeySection& section) { return section.name == name; });
  MUSTER_CHECK(found != table.end());  // names come from this table
  return *found;
}

}  // namespace muster
