// `muster train --on spark` with a real Spark: what is Spark's own. What holds on every engine is run by the tests for
// every engine.
#include "tests/process/spark/spark_experiment.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace muster::spark_experiment_test {
namespace {

using ::testing::AllOf, ::testing::AnyOf, ::testing::Contains, ::testing::HasSubstr;

TEST_F(SparkExperiment, WhatAFailedTaskHasSaidIsInSparksLog) {
  more_ = "  nodes: 1\n";
  WriteExperiment("restart: {policy: never}\nrun: 'echo last words; exit 3'");
  const Said said = Muster({"train"});
  EXPECT_EQ(said.exit_code, 3) << said.out << said.err << Logs();
  EXPECT_THAT(Read("experiments/1/spark.log"), HasSubstr("1.master | last words"));
}

// Spark ends the other task with it, and the driver begins the stage again.
TEST_F(SparkExperiment, AllTasksBeginAgainWhenAnExecutorIsKilled) {
  WriteCluster("{worker: 2}", UntilStop());
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*train, task, 2);
  AwaitStatus("1", "RUNNING");
  EXPECT_EQ(KillWith("--executor-id 0"), 1);
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*train, task, 4);
  LetEnd("1");
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err << Logs();
  // A task of the executor that was killed may begin on the other one before Spark ends that, too.
  EXPECT_THAT(Read("experiments/1/output/starts"),
              AnyOf("start\nstart\nstart\nstart\n", "start\nstart\nstart\nstart\nstart\n"));
  EXPECT_THAT(Read("experiments/1/job.out"), AllOf(HasSubstr("muster: Spark's stage has ended, and begins again: "),
                                                   HasSubstr("ExecutorLostFailure")));
}

TEST_F(SparkExperiment, ASupervisorThatIsKilledIsStartedAgain) {
  WriteCluster("{worker: 2}", UntilStop());
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*train, task, 2);
  AwaitStatus("1", "RUNNING");
  AwaitHandover();
  EXPECT_EQ(KillWith(" supervise 1"), 1);
  AwaitTakeOvers(1);
  LetEnd("1");
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err << Logs();
  EXPECT_EQ(Read("experiments/1/output/starts"), "start\nstart\n");
}

TEST_F(SparkExperiment, WhatCanNeverBeIsRefusedWithBothNumbers) {
  more_ = "  nodes: 3\n";
  WriteExperiment("run: 'true'");
  const Said said = Muster({"train"});
  EXPECT_EQ(said.exit_code, 2) << said.out << said.err << Logs();
  EXPECT_THAT(Reason("1"),
              AllOf(HasSubstr("Spark can never run 3 tasks at once: local-cluster[2,1,1024] has 2 executors"),
                    HasSubstr("so there are 2 slots")));
  more_ = "  nodes: 2\n";
  conf_ = ", spark.dynamicAllocation.enabled: true";
  WriteExperiment("run: 'true'");
  EXPECT_EQ(Muster({"train"}).exit_code, 2);
  EXPECT_THAT(Reason("2"), HasSubstr("spark.dynamicAllocation.enabled is true, and the 2 tasks must run at once"));
}

// There are two executors. The stage has two tasks in its next life, too.
TEST_F(SparkExperiment, NobodyWaitsForTheSlotOfAnEvaluatorThatCanNeverBe) {
  more_ = "  nodes: 3\n";
  WriteCluster(
      "{master: 1, worker: 1, evaluator: true}",
      "case $TF_CONFIG in *\\\"type\\\":\\\"evaluator\\\"*) echo evaluates;; *) echo trained;; esac; " + UntilStop());
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1", "1.evaluator"}) AwaitLines(*train, task, 3);
  EXPECT_THAT(train->out,
              HasSubstr("begins with 2 of 3 tasks of Spark, as nobody waits for that of the evaluator: Spark can "
                        "never run 3 tasks at once: local-cluster[2,1,1024] has 2 executors"));
  EXPECT_THAT(LinesOf(train->out, "1.evaluator"), Contains("evaluates"));
  AwaitStatus("1", "RUNNING");
  EXPECT_EQ(KillWith("--executor-id 0"), 1);
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*train, task, 6);
  LetEnd("1");
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err << Logs();
  EXPECT_THAT(Read("experiments/1/job.out"), HasSubstr("muster: Spark's stage has ended, and begins again: "));
  EXPECT_EQ(StateOf("1"), "FINISHED");
}

// It takes connections, and says nothing.
TEST_F(SparkExperiment, AMasterThatGivesNothingEndsItAfterTheTimeout) {
  Process master({"/usr/bin/env", "python3", "-c",
                  "import socket, time\ns = socket.create_server(('127.0.0.1', 0))\n"
                  "print(s.getsockname()[1], 'listens', flush=True)\ntime.sleep(1000)"});
  master.WaitForOut(" listens");
  address_ = "spark://127.0.0.1:" + master.out.substr(0, master.out.find(' '));
  more_ = "  nodes: 1\n  start_timeout: 10s\n";
  WriteExperiment("run: 'true'");
  const Said said = Muster({"train"});
  EXPECT_EQ(said.exit_code, 2) << said.out << said.err << Logs();
  EXPECT_THAT(Reason("1"), HasSubstr("within 10 s (spark: start_timeout)"));
}

TEST_F(SparkExperiment, WhatIsNotThereIsSaidAtOnce) {
  WriteExperiment("run: 'true'");
  const Said nobody = Muster({"train", "--address", "spark://127.0.0.1:1"});
  EXPECT_EQ(nobody.exit_code, 2);
  EXPECT_THAT(nobody.err, HasSubstr("no master of Spark answers at spark://127.0.0.1:1 (127.0.0.1:1: "));
  const Said unknown = Muster({"train", "--address", "spark://nowhere.invalid:7077"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("no master of Spark answers at spark://nowhere.invalid:7077 ("));
  const Said bare = Muster({"train", "--spark", "python=/usr/bin/python3"});
  EXPECT_EQ(bare.exit_code, 2);
  EXPECT_THAT(bare.err, HasSubstr("has no pyspark: pip install pyspark there"));
}

}  // namespace
}  // namespace muster::spark_experiment_test
