// What an engine doesn't have: all that the tests for every engine leave out, and why, in the words of
// docs/engines.md, which tools/engine_table.py writes from this file. A cell that can't hold on an engine is a row
// here, or none.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace muster {

// The engines, in the order of the columns.
inline const std::vector<const char*>& AllEngines() {
  static const std::vector<const char*> engines = {"local", "ssh", "command", "slurm", "ray", "spark", "kubernetes"};
  return engines;
}

enum class NotOnEngine {
  kFrameworkVersion,
  kStepsInMonitor,
  kTensorboardWhileItRuns,
  kGpusOfRunsAtATime,
  kEndWithItsSupervisor
};

struct LeftOut {
  std::string what;
  std::vector<std::string> engines;
  std::string why;
};

inline const std::map<NotOnEngine, LeftOut>& WhatIsLeftOut() {
  static const std::map<NotOnEngine, LeftOut> left_out = {
      {NotOnEngine::kFrameworkVersion,
       {"`version` of a framework",
        {"ssh", "command", "ray", "spark", "kubernetes"},
        "the virtual environment is on this machine: `--no-venv` takes the python of each host"}},
      {NotOnEngine::kStepsInMonitor,
       {"steps, loss and staleness in `muster monitor`, status pages",
        {"ssh", "command", "slurm", "ray", "spark", "kubernetes"},
        "they come from pages that each host shows itself alone; processors, memory and GPUs are shown, `muster "
        "status` names each task's host"}},
      {NotOnEngine::kTensorboardWhileItRuns,
       {"TensorBoard and `results` while it runs",
        {"ssh", "command", "slurm", "ray", "spark", "kubernetes"},
        "they show what is here: where a host doesn't see OUTPUT_DIR, that is at the end"}},
      {NotOnEngine::kGpusOfRunsAtATime,
       {"GPUs with `concurrency` above 1",
        {"ssh"},
        "nobody divides a host's GPUs among runs; within a run each task has its own"}},
      {NotOnEngine::kEndWithItsSupervisor,
       {"a killed supervisor ends the experiment",
        {"slurm", "ray", "spark", "kubernetes"},
        "the job starts another one, which goes on with the tasks; the engine's own tests prove it"}}};
  return left_out;
}

inline bool IsLeftOut(NotOnEngine what, const std::string& engine) {
  const std::vector<std::string>& without = WhatIsLeftOut().at(what).engines;
  return std::find(without.begin(), without.end(), engine) != without.end();
}

// The suites run on each engine, and once more where the command is at another place: {name there, engine}. By
// slurm_pty it is in a step on a node, on a terminal.
inline const std::map<std::string, std::string>& OtherPlaces() {
  static const std::map<std::string, std::string> other_places = {{"slurm_pty", "slurm"}};
  return other_places;
}

// Returns the engine of a case, whose name ends with that or with another place.
inline std::string EngineOf(const std::string& place) {
  const auto other = OtherPlaces().find(place);
  return other == OtherPlaces().end() ? place : other->second;
}

// Return the places of a suite, for INSTANTIATE_TEST_SUITE_P: all, or those on engines that have this.
inline std::vector<const char*> AllPlaces() {
  std::vector<const char*> places = AllEngines();
  for (const auto& [place, engine] : OtherPlaces()) places.push_back(place.c_str());
  return places;
}
inline auto EveryEngine() { return ::testing::ValuesIn(AllPlaces()); }
inline auto EnginesWith(NotOnEngine what) {
  std::vector<const char*> places;
  for (const char* place : AllPlaces())
    if (!IsLeftOut(what, EngineOf(place))) places.push_back(place);
  return ::testing::ValuesIn(places);
}

}  // namespace muster
