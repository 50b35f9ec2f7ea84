// The environments are those of a real Slurm 22.05, shortened to what is read.
#include "muster/cluster/slurm/slurm_step.h"

#include <gmock/gmock.h>

#include "muster/cluster/slurm/node_list.h"

namespace muster::slurm_step_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr, ::testing::SizeIs;

// srun -N3 -n7, seen from task 4.
SlurmVariables Srun() {
  return {.job_id = "17",
          .step_id = "0",
          .step_num_tasks = "7",
          .step_nodelist = "node[1-3]",
          .step_counts = "4,2,1",
          .proc_id = "4",
          .node_id = "1",
          .local_id = "0",
          .process = {.stepd = "17.0", .has_terminal = false}};
}

std::string Alone(const SlurmVariables& variables) {
  const auto answer = ReadSlurm(variables, false);
  EXPECT_TRUE(answer.ok()) << answer.status();
  EXPECT_FALSE(answer->step.has_value());
  return answer->alone;
}

std::string Mistake(const SlurmVariables& variables) {
  const auto answer = ReadSlurm(variables, false);
  EXPECT_TRUE(absl::IsInvalidArgument(answer.status()));
  EXPECT_THAT(std::string(answer.status().message()), HasSubstr("MUSTER_RESOLVE=none"));
  return std::string(answer.status().message());
}

// Returns the nodes of all tasks, by their last letter.
std::string Nodes(const std::vector<SlurmPlace>& places) {
  std::string nodes;
  for (const SlurmPlace& place : places) nodes += place.node.back();
  return nodes;
}

TEST(SlurmStep, ATaskOfSeveralKnowsAllPlaces) {
  const SlurmStep step = *ReadSlurm(Srun(), false)->step;
  EXPECT_EQ(step.Name(), "17.0");
  EXPECT_EQ(step.proc_id, 4);
  ASSERT_THAT(step.places, SizeIs(7));
  EXPECT_EQ(step.places[3], (SlurmPlace{"node1", 3}));
  EXPECT_EQ(step.places[4], (SlurmPlace{"node2", 0}));
  EXPECT_EQ(step.places[6], (SlurmPlace{"node3", 0}));
}

TEST(SlurmStep, OutsideOfSlurmNothingIsSaid) { EXPECT_EQ(Alone({}), ""); }

TEST(SlurmStep, WhatOneFindsInAnAllocationIsAlone) {
  // In the shell of `salloc -n4`, in a notebook started there, and over ssh.
  EXPECT_EQ(Alone({.job_id = "6"}), "srun didn't start this process in Slurm's job 6");
  // In the script of `sbatch -n4`.
  EXPECT_THAT(Alone({.job_id = "7", .proc_id = "0", .node_id = "0", .local_id = "0"}), HasSubstr("Slurm's job 7"));
  // In the shell of salloc at sites where it is a step (use_interactive_step), and in what a prolog starts.
  for (const char* step : {"4294967290", "4294967291", "4294967292", "interactive", "batch", "extern"}) {
    SlurmVariables variables = Srun();
    variables.step_id = step;
    EXPECT_THAT(Alone(variables), HasSubstr("is a shell, not tasks")) << step;
  }
  SlurmVariables one = Srun();
  one.step_num_tasks = "1";
  EXPECT_EQ(Alone(one), "Slurm's step 17.0 has one task");
  SlurmVariables filtered = Srun();
  filtered.step_num_tasks.reset();
  EXPECT_EQ(Alone(filtered), "SLURM_STEP_NUM_TASKS of Slurm's step 17.0 isn't set");
}

TEST(SlurmStep, AProgramThatSrunHasStartedSeveralTimesIsNamed) {
  EXPECT_EQ(OneOfSeveral(Srun()), "task 4 of 7 of Slurm's step 17.0");
  EXPECT_EQ(OneOfSeveral({}), "");
  EXPECT_EQ(OneOfSeveral({.job_id = "6"}), "") << "in the shell of salloc";
  SlurmVariables one = Srun();
  one.step_num_tasks = "1";
  EXPECT_EQ(OneOfSeveral(one), "");
  SlurmVariables below = Srun();
  below.process.stepd = "17.batch";
  EXPECT_EQ(OneOfSeveral(below), "") << "the variables are inherited";
  SlurmVariables pty = Srun();
  pty.pty_port = "42295";
  pty.process.has_terminal = true;
  EXPECT_EQ(OneOfSeveral(pty), "") << "in a shell of srun --pty";
  pty.process.is_task = true;
  EXPECT_EQ(OneOfSeveral(pty), "task 4 of 7 of Slurm's step 17.0");
  SlurmVariables odd = Srun();
  odd.distribution = "arbitrary";
  EXPECT_EQ(OneOfSeveral(odd), "task 4 of 7 of Slurm's step 17.0") << "where the others are doesn't matter";
}

TEST(SlurmStep, AShellOfSrunPtyIsAloneAndAStepBelowItIsNot) {
  SlurmVariables pty = Srun();
  pty.pty_port = "42295";
  pty.process.has_terminal = true;
  EXPECT_EQ(Alone(pty), "Slurm's step 17.0 has a terminal (srun --pty)");
  pty.process = {};
  EXPECT_THAT(Alone(pty), HasSubstr("--pty")) << "nothing is to be seen, so the variable counts";
  pty.process = {.stepd = "17.0", .has_terminal = false};
  EXPECT_TRUE(ReadSlurm(pty, false)->step.has_value()) << "a step below srun --pty inherits SLURM_PTY_PORT";
}

// srun -n7 --pty ./program. The first task would be alone, and the others would wait for it.
TEST(SlurmStep, TasksOfAStepWithATerminalAreRefused) {
  const auto says = AllOf(HasSubstr("SLURM_PTY_PORT: Slurm's step 17.0 has several tasks"), HasSubstr("one terminal"),
                          HasSubstr("srun without --pty"));
  SlurmVariables first = Srun();
  first.pty_port = "42295";
  first.process = {.stepd = "17.0", .has_terminal = true, .is_task = true};
  EXPECT_THAT(Mistake(first), says);
  SlurmVariables other = first;
  other.process = {.stepd = "17.0", .has_terminal = false, .is_mute = true};
  EXPECT_THAT(Mistake(other), says);
  EXPECT_TRUE(ReadSlurm(other, true)->step.has_value()) << "MUSTER_RESOLVE=slurm believes the variables";
  other.pty_port.reset();
  EXPECT_TRUE(ReadSlurm(other, false)->step.has_value()) << "srun --input=none --output=none";
  other = first;
  other.process.stepd = "17.batch";
  EXPECT_THAT(Alone(other), HasSubstr("inherited"));
  other = first;
  other.step_num_tasks = "1";
  EXPECT_EQ(Alone(other), "Slurm's step 17.0 has one task");
}

TEST(SlurmStep, InheritedVariablesAreNone) {
  SlurmVariables batch = Srun();  // sbatch from inside of a task
  batch.job_id = "18";
  batch.process.stepd = "18.batch";
  EXPECT_EQ(Alone(batch), "the variables of Slurm's step 18.0 are inherited: this process belongs to 18.batch");
  SlurmVariables allocation = Srun();  // salloc from inside of a task
  allocation.job_id = "18";
  EXPECT_THAT(Alone(allocation), HasSubstr("belongs to 17.0"));
  EXPECT_TRUE(ReadSlurm(allocation, true)->step.has_value()) << "MUSTER_RESOLVE=slurm believes the variables";
  allocation.process.stepd = "unknown";
  EXPECT_TRUE(ReadSlurm(allocation, false)->step.has_value()) << "a title of another kind says nothing";
}

TEST(SlurmStep, TheSecondPartOfAHeterogeneousJobHasItsOwnJobId) {
  SlurmVariables part = Srun();
  part.step_num_tasks = "3";
  part.step_nodelist = "node[1-2]";
  part.step_counts = "2,1";
  part.proc_id = "2";
  part.het_size = "2";
  part.distribution = "cyclic";  // srun's own choice for one task on one node; the first part has "block"
  part.process.stepd = "18.0";
  EXPECT_EQ(ReadSlurm(part, false)->step->places[2], (SlurmPlace{"node2", 0}));
  part.process.stepd = "18.batch";
  EXPECT_THAT(Alone(part), HasSubstr("inherited"));
}

TEST(SlurmStep, TasksAreDealtOutAsSrunDoes) {
  const std::vector<std::string> nodes = {"node1", "node2", "node3"};
  const std::vector<int> counts = {4, 2, 1};
  EXPECT_EQ(Nodes(*DealOutTasks(nodes, counts, "", "")), "1111223");
  EXPECT_EQ(Nodes(*DealOutTasks(nodes, counts, "block", "")), "1111223");
  EXPECT_EQ(Nodes(*DealOutTasks(nodes, counts, "block:cyclic,NoPack", "")), "1111223");
  EXPECT_EQ(Nodes(*DealOutTasks(nodes, counts, "cyclic", "")), "1231211");
  EXPECT_EQ(Nodes(*DealOutTasks(nodes, counts, "cyclic:block", "")), "1231211");
  EXPECT_EQ(Nodes(*DealOutTasks(nodes, counts, "plane:2", "")), "1122311");
  EXPECT_EQ(Nodes(*DealOutTasks(nodes, counts, "plane=2", "")), "1122311");
  EXPECT_EQ(Nodes(*DealOutTasks(nodes, counts, "plane", "2")), "1122311");
  EXPECT_EQ((*DealOutTasks(nodes, counts, "plane", "2"))[6], (SlurmPlace{"node1", 3}));
  for (const char* other : {"arbitrary", "plane", "plane:0", "plane:-1", "blocks"})
    EXPECT_THAT(std::string(DealOutTasks(nodes, counts, other, "").status().message()),
                AllOf(HasSubstr("SLURM_DISTRIBUTION"), HasSubstr(other), HasSubstr("--distribution=block")));
}

TEST(SlurmStep, AContradictionIsRefusedByTheVariablesName) {
  const auto with = [](std::optional<std::string> SlurmVariables::*member, std::optional<std::string> value) {
    SlurmVariables variables = Srun();
    variables.process = {};
    variables.*member = std::move(value);
    return Mistake(variables);
  };
  EXPECT_THAT(with(&SlurmVariables::job_id, std::nullopt), HasSubstr("SLURM_JOB_ID: not set"));
  EXPECT_THAT(with(&SlurmVariables::step_num_tasks, "-3"), HasSubstr("SLURM_STEP_NUM_TASKS: \"-3\""));
  EXPECT_THAT(with(&SlurmVariables::step_num_tasks, "0"), HasSubstr("accepted: 1 to 65536"));
  EXPECT_THAT(with(&SlurmVariables::proc_id, ""), HasSubstr("SLURM_PROCID: not set"));
  EXPECT_THAT(with(&SlurmVariables::proc_id, "7"), HasSubstr("SLURM_PROCID: 7 in a step of 7 tasks"));
  EXPECT_THAT(with(&SlurmVariables::step_nodelist, std::nullopt), HasSubstr("SLURM_STEP_NODELIST: not set"));
  EXPECT_THAT(with(&SlurmVariables::step_nodelist, "n[1"), HasSubstr("SLURM_STEP_NODELIST: node list \"n[1\""));
  EXPECT_THAT(with(&SlurmVariables::step_counts, "x"), HasSubstr("SLURM_STEP_TASKS_PER_NODE: counts \"x\""));
  EXPECT_THAT(with(&SlurmVariables::step_counts, "7"), HasSubstr("counts 1 nodes, and SLURM_STEP_NODELIST 3"));
  EXPECT_THAT(with(&SlurmVariables::step_counts, "4,2,2"), HasSubstr("makes 8 tasks, and SLURM_STEP_NUM_TASKS 7"));
  EXPECT_THAT(with(&SlurmVariables::distribution, "cyclic"),
              AllOf(HasSubstr("SLURM_LOCALID: 0, but by"), HasSubstr("task 4 has number 1"), HasSubstr("=block")));
  EXPECT_THAT(with(&SlurmVariables::node_id, "2"), HasSubstr("SLURM_NODEID: 2, but by"));
}

}  // namespace
}  // namespace muster::slurm_step_test
