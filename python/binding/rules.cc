#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/optim/rule_descriptor.h"
#include "muster/optim/rule_spec.h"
#include "muster/optim/rule_text.h"
#include "muster/train/threads/error.h"
#include "python/binding/binding.h"

namespace muster::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;  // NOLINT(google-build-using-namespace): "name"_a

// The learning rate, the rule's own hyperparameters, weight decay; none for a rule that only adds.
std::vector<Hyperparameter> HyperparametersOf(const RuleDescriptor& rule) {
  if (!rule.has_rate) return {};
  std::vector<Hyperparameter> all = {hyperparameters::kLearningRate};
  all.insert(all.end(), rule.hyperparameters.begin(), rule.hyperparameters.end());
  all.push_back(hyperparameters::kWeightDecay);
  return all;
}

std::map<std::string, std::map<std::string, double>> StandardRules() {
  std::map<std::string, std::map<std::string, double>> rules;
  for (const RuleDescriptor* rule : AllRules()) {
    std::map<std::string, double>& values = rules[rule->name];
    for (const Hyperparameter& one : HyperparametersOf(*rule)) values[one.name] = one.ValueIn(rule->standard());
  }
  return rules;
}

// `name_of` is ClipName or ScheduleName, and `last` the kind with the highest number.
template <typename Kind>
Kind KindOf(const std::string& name, std::string (*name_of)(Kind), Kind last) {
  for (int number = 0; number <= static_cast<int>(last); ++number) {
    if (name_of(static_cast<Kind>(number)) == name) return static_cast<Kind>(number);
  }
  throw Error(absl::InvalidArgumentError(absl::StrCat("there is no kind \"", name, "\"")));
}

ScheduleSpec MakeSchedule(const std::string& kind, int64_t decay_steps, double decay_rate, double end_learning_rate,
                          double power, bool cycle, double alpha, int64_t warmup_steps, double warmup_from) {
  const ScheduleSpec schedule = {.kind = KindOf(kind, &ScheduleName, ScheduleKind::kCosine),
                                 .decay_steps = decay_steps,
                                 .decay_rate = decay_rate,
                                 .end_learning_rate = end_learning_rate,
                                 .power = power,
                                 .cycle = cycle,
                                 .alpha = alpha,
                                 .warmup_steps = warmup_steps,
                                 .warmup_from = warmup_from};
  ThrowIfError(CheckSchedule(schedule));
  return schedule;
}

RuleSpec MakeRule(const std::string& name, const std::map<std::string, double>& values, const std::string& clip,
                  double limit, const ScheduleSpec& schedule) {
  const RuleDescriptor& rule = *FindRule(ValueOrThrow(ParseRule(name)));
  RuleSpec spec = rule.standard();
  for (const Hyperparameter& one : HyperparametersOf(rule)) {
    const auto value = values.find(one.name);
    if (value == values.end()) continue;
    if (one.flag != nullptr) {
      spec.*one.flag = value->second != 0;
    } else {
      spec.*one.number = value->second;
    }
  }
  spec.clip = {.kind = KindOf(clip, &ClipName, ClipKind::kGlobalNorm), .limit = limit};
  spec.schedule = schedule;
  ThrowIfError(CheckRule(spec));
  return spec;
}

}  // namespace

void BindRules(nb::module_& module) {
  nb::class_<ScheduleSpec> schedule(module, "ScheduleSpec");
  schedule
      .def(nb::new_(&MakeSchedule), "kind"_a, nb::kw_only(), "decay_steps"_a = 0, "decay_rate"_a = 0.1,
           "end_learning_rate"_a = 0.0001, "power"_a = 1.0, "cycle"_a = false, "alpha"_a = 0.0, "warmup_steps"_a = 0,
           "warmup_from"_a = 0.0)
      .def("learning_rate_at", &LearningRateAt, "base"_a, "global_step"_a);
  BindEquality(schedule);
  nb::class_<RuleSpec> rule(module, "RuleSpec");
  rule.def(nb::new_(&MakeRule), "name"_a, "hyperparameters"_a, "clip"_a, "limit"_a, "schedule"_a)
      .def_prop_ro("text", &RuleText);
  BindEquality(rule);
  module.def("standard_rules", &StandardRules, "Every rule's hyperparameters with their defaults.");
}

}  // namespace muster::python
