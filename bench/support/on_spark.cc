#include "bench/support/on_spark.h"

#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/process.h"

namespace muster::bench {
namespace {

constexpr char kMaster[] = "local-cluster[2,1,1024]";
// The time is written by the program, as Spark takes a while to end.
constexpr char kBarrierStage[] = R"(
import sys, time
from pyspark import BarrierTaskContext, SparkContext

def answer(rows):
    BarrierTaskContext.get().barrier()
    yield True

context = SparkContext()
count = int(sys.argv[1])
# A barrier stage that begins before its executors are there is tried again 15 s later.
while context._jsc.sc().getExecutorMemoryStatus().size() <= count:
    time.sleep(0.05)
context.parallelize(range(count), count).barrier().mapPartitions(answer).collect()
with open(sys.argv[2], "w") as file:
    file.write(str(time.time()))
)";

std::string Bin(const std::string& program) { return absl::StrCat(SourceFolder(), "/.venv/bin/", program); }

}  // namespace

std::string OnSpark::WhyNot() {
  const bool is_there = access(Bin("spark-submit").c_str(), X_OK) == 0 && access("/usr/bin/java", X_OK) == 0;
  return is_there ? "" : "Spark or a JRE isn't installed: tools/setup.sh --for spark does";
}

OnSpark::OnSpark(const std::string& greeting) {
  folder_.Write("barrier.py", kBarrierStage);
  std::filesystem::create_directory(folder_ / "project");
  folder_.Write("project/muster.yml",
                absl::StrCat("project: bench\non: spark\nspark: {nodes: ", tasks(), ", address: \"", kMaster,
                             "\", python: ", Bin("python"), ", conf: {spark.ui.enabled: false}}\ntrain:\n  torchrun: ",
                             "{workers: ", tasks(), "}\n  run: echo ", greeting, "\n"));
}

EnvironmentChanges OnSpark::environment() const {
  return {{"MUSTER_HOME", folder_ / "home"},
          {"SPARK_WORKER_DIR", folder_ / "work"},
          {"SPARK_LOCAL_DIRS", folder_ / "local"}};
}

absl::StatusOr<double> OnSpark::OfItself() const {
  const std::string answered = folder_ / "answered";
  std::filesystem::remove(answered);
  const absl::Time start = absl::Now();
  std::vector<std::string> words = {"/usr/bin/env"};
  for (const auto& [name, value] : environment()) words.push_back(absl::StrCat(name, "=", value));
  for (const std::string& word :
       {absl::StrCat("PYSPARK_PYTHON=", Bin("python")), Bin("spark-submit"), std::string("--master"),
        std::string(kMaster), std::string("--conf"), std::string("spark.ui.enabled=false"), folder_ / "barrier.py",
        absl::StrCat(tasks()), answered})
    words.push_back(word);
  Process submit(words, {.output_together = true});
  submit.Wait();
  return MillisecondsUntilWritten(answered, start);
}

std::vector<std::string> OnSpark::Train(const std::string& muster) const {
  return {std::filesystem::absolute(muster).string(), "train", "-f", folder_ / "project"};
}

}  // namespace muster::bench
