#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "muster/base/wrong_configuration.h"
#include "muster/cluster/cluster_spec.h"
#include "muster/cluster/identity/environment.h"
#include "muster/cluster/identity/task_config.h"
#include "muster/train/threads/error.h"
#include "python/binding/binding.h"

namespace muster::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;  // NOLINT(google-build-using-namespace): "name"_a

using Addresses = std::variant<std::vector<std::string>, ClusterSpec::Tasks>;

ClusterSpec MakeCluster(const std::map<std::string, Addresses>& jobs) {
  ClusterSpec cluster;
  for (const auto& [job, addresses] : jobs) {
    ThrowIfError(cluster.AddJob(job));
    if (const auto* list = std::get_if<std::vector<std::string>>(&addresses)) {
      for (size_t i = 0; i < list->size(); ++i) ThrowIfError(cluster.AddTask({job, static_cast<int>(i)}, (*list)[i]));
    } else {
      for (const auto& [index, address] : std::get<ClusterSpec::Tasks>(addresses)) {
        ThrowIfError(cluster.AddTask({job, index}, address));
      }
    }
  }
  return cluster;
}

std::pair<TaskConfig, std::vector<std::string>> FromArguments(std::vector<std::string> arguments) {
  absl::StatusOr<TaskConfig> task = TaskConfig::FromArguments(arguments, ReadEnvironment());
  if (!task.ok()) throw Error(AsWrongConfiguration(task.status()));  // a command line ends with 2 for it, too
  return {*std::move(task), std::move(arguments)};
}

// Seconds, as Python's own functions have them.
std::optional<double> Seconds(const std::optional<absl::Duration>& duration) {
  return duration ? std::optional(absl::ToDoubleSeconds(*duration)) : std::nullopt;
}

std::vector<std::string> Names(const std::vector<TaskId>& tasks) {
  std::vector<std::string> names;
  for (const TaskId& task : tasks) names.push_back(task.ToString());
  return names;
}

void BindClusterSpec(nb::module_& module) {
  nb::class_<ClusterSpec> cluster(module, "ClusterSpec",
                                  "Which tasks a cluster has, and the address of each: the \"cluster\" of TF_CONFIG.");
  cluster
      .def(nb::new_(&MakeCluster), "jobs"_a,
           "Each job's addresses: a list, or a dict from index to address where only some tasks are known.")
      .def_static(
          "from_json", [](const std::string& text) { return ValueOrThrow(ClusterSpec::FromJson(text)); }, "text"_a)
      .def("to_json", &ClusterSpec::ToJson, "One line; from_json makes an equal spec of it.")
      .def_prop_ro("jobs", &ClusterSpec::jobs, "The names of the jobs, sorted.")
      .def("tasks", &ClusterSpec::tasks, "job"_a, "Index and address of each known task; empty for an unknown job.")
      .def("num_tasks", nb::overload_cast<std::string_view>(&ClusterSpec::num_tasks, nb::const_), "job"_a)
      .def(
          "task_address",
          [](const ClusterSpec& self, const std::string& job, int index) {
            return ValueOrThrow(self.TaskAddress({job, index}));
          },
          "job"_a, "index"_a)
      .def(
          "__bool__", [](const ClusterSpec& self) { return !self.empty(); }, "False if there is no cluster.")
      .def("__repr__", [](const ClusterSpec& self) { return absl::StrCat("ClusterSpec(", self.ToJson(), ")"); });
  BindEquality(cluster);
}

void BindTaskConfig(nb::module_& module) {
  nb::class_<TaskConfig> task(module, "TaskConfig", "Which task of which cluster this process is.");
  task.def(nb::init<>(), "A process alone: worker 0, its own chief.")
      .def_static(
          "from_environment", [] { return FromArguments({}).first; },
          "From TF_CONFIG, from what torchrun or srun set, or from none of these: alone.")
      .def_static("from_arguments", &FromArguments, "arguments"_a,
                  "The same with a task's flags (--job_name, --ps_hosts, ...), which win. `arguments` are without the\n"
                  "program's name; those that are the program's own come back beside the task.")
      .def_prop_ro("cluster", &TaskConfig::cluster, "Empty if there is no cluster, and for an evaluator.")
      .def_prop_ro(
          "task", [](const TaskConfig& self) { return self.task().ToString(); }, "\"worker:1\"")
      .def_prop_ro("job", [](const TaskConfig& self) { return self.task().job; })
      .def_prop_ro("index", [](const TaskConfig& self) { return self.task().index; })
      .def_prop_ro(
          "chief", [](const TaskConfig& self) { return self.chief().ToString(); },
          "The task that initialises, saves and restores.")
      .def_prop_ro("is_chief", &TaskConfig::is_chief)
      .def_prop_ro("is_ps", &TaskConfig::is_ps)
      .def_prop_ro("is_evaluator", &TaskConfig::is_evaluator)
      .def_prop_ro("distributed", &TaskConfig::distributed, "True if several processes train together.")
      .def_prop_ro("num_ps", &TaskConfig::num_ps)
      .def_prop_ro("num_workers", &TaskConfig::num_workers, "Tasks that train, including the chief; 1 alone.")
      .def_prop_ro("global_id", &TaskConfig::global_id, "The chief is 0, the ps are last; -1 for an evaluator.")
      .def_prop_ro("master", &TaskConfig::master, "The task's own address; empty alone and for an evaluator.")
      .def_prop_ro("ps_addresses", &TaskConfig::ps_addresses)
      .def_prop_ro(
          "worker_tasks", [](const TaskConfig& self) { return Names(self.worker_tasks()); },
          "The tasks that train, the chief first.")
      .def_prop_ro("model_dir", &TaskConfig::model_dir, "Empty if not given.")
      .def_prop_ro(
          "device", [](const TaskConfig& self) { return self.device().ToString(); }, "\"cpu\", \"cuda:1\"")
      .def_prop_ro("trace_part", &TaskConfig::trace_part, "The file of this task's part of the trace; empty: none.")
      .def_prop_ro(
          "stall_limit", [](const TaskConfig& self) { return Seconds(self.stall_limit()); }, "Seconds.")
      .def_prop_ro(
          "join_timeout", [](const TaskConfig& self) { return Seconds(self.join_timeout()); }, "Seconds.")
      .def_prop_ro(
          "linger", [](const TaskConfig& self) { return Seconds(self.linger()); }, "Seconds.")
      .def_prop_ro("leaves_on_signal", &TaskConfig::leaves_on_signal)
      .def_prop_ro("notice", &TaskConfig::notice,
                   "One line about where the role comes from, if that isn't plain; else empty.")
      .def_prop_ro("definition", &TaskConfig::Definition, "Text: every task of the cluster, this one marked by *.")
      .def("__repr__", [](const TaskConfig& self) { return absl::StrCat("TaskConfig(", self.Summary(), ")"); });
  BindEquality(task);
}

}  // namespace

void BindCluster(nb::module_& module) {
  BindClusterSpec(module);
  BindTaskConfig(module);
}

}  // namespace muster::python
