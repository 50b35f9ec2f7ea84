#include "apps/muster/experiment/check_experiment.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "muster/launch/testing/tensorflow_file.h"

namespace muster::check_experiment_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

// A machine that has what RiseML's file asks for, but GPUs; its Python is too new for the version.
ExperimentHost Host() {
  return {.machine = {.cores = 2, .mem_bytes = int64_t{64} << 30, .gpus = 0},
          .python = PythonVersion{3, 11},
          .home = Home("/no/such/home")};
}

ExperimentFile FileOf(const std::string& text) { return ParseExperimentFile(text, "riseml.yml").value(); }

std::vector<std::string> Lines(const ExperimentCheck& check, const std::vector<std::string>& parameters = {}) {
  return absl::StrSplit(std::string(StatusOf(check, "muster train", parameters).message()), '\n', absl::SkipEmpty());
}

TEST(CheckExperimentTest, AllThatStopsAFileIsSaidInOneGoWithACommandThatWorks) {
  const ExperimentFile file = FileOf(kTensorflowFile);
  const ExperimentCheck check = CheckExperiment(file, {{}}, {}, Host()).value();
  EXPECT_THAT(
      Lines(check),
      ElementsAre("riseml.yml:18: train.run: {{ depth }}: there is no such parameter; accepted: a new one, in "
                  "train.parameters or by --param depth=VALUE",
                  "riseml.yml:18: train.run: {{ step-size }}: there is no such parameter; accepted: a new one, in "
                  "train.parameters or by --param step-size=VALUE",
                  "riseml.yml:4: train.resources: master and worker each ask for 2 gpus, this machine has 0; "
                  "--no-gpus runs without",
                  HasSubstr("riseml.yml:9: train.tensorflow.version: 1.4.0 was released for Python 3.6 and older, this "
                            "machine's python3 is 3.11; accepted: "),
                  "it runs here with: muster train --no-gpus --no-venv --param depth=… --param step-size=…"));
  const ParameterValues values = {{"depth", "4"}, {"step-size", "0.1"}};
  EXPECT_THAT(Lines(CheckExperiment(file, {values}, {.no_gpus = true, .no_venv = true}, Host()).value()), IsEmpty())
      << "the command of the message is enough";
}

TEST(CheckExperimentTest, WhatIsGivenStaysInTheCommand) {
  const ExperimentFile file = FileOf(kTensorflowFile);
  const SubmitOptions options{.no_gpus = true, .no_venv = true};
  const ExperimentCheck check = CheckExperiment(file, {{{"depth", "4 5"}}}, options, Host()).value();
  EXPECT_EQ(Lines(check, {"depth=4 5"}).back(),
            "it runs here with: muster train --param 'depth=4 5' --param step-size=…");
  const ExperimentCheck mistyped =
      CheckExperiment(file, {{{"depth", "4"}, {"step_size", "1"}}}, options, Host()).value();
  EXPECT_THAT(Lines(mistyped, {"depth=4", "step_size=1"}),
              ElementsAre(HasSubstr("did you mean {{ step_size }}?"),
                          "it runs here with: muster train --param depth=4 --param step-size=1"));
}

TEST(CheckExperimentTest, NoCommandIsOfferedIfFlagsDontHelp) {
  ExperimentHost small = Host();
  small.machine.mem_bytes = int64_t{1} << 30;
  EXPECT_THAT(Lines(CheckExperiment(FileOf(kTensorflowFile), {{}}, {}, small).value()),
              testing::Each(testing::Not(HasSubstr("it runs here"))));
  const ExperimentFile volume = FileOf("project: p\ntrain:\n  run: x {{ y }}\n  volumes: [/no/such/folder]\n");
  EXPECT_THAT(Lines(CheckExperiment(volume, {{}}, {}, Host()).value()),
              ElementsAre(HasSubstr("{{ y }}"), HasSubstr("/no/such/folder doesn't exist")));
}

TEST(CheckExperimentTest, GpusOfAllTasksTogether) {
  ExperimentHost host = Host();
  host.machine.gpus = 4;
  host.python = std::nullopt;
  const ParameterValues values = {{"depth", "4"}, {"step-size", "0.1"}};
  EXPECT_THAT(Lines(CheckExperiment(FileOf(kTensorflowFile), {values}, {}, host).value()),
              ElementsAre("riseml.yml: the tasks ask for 6 gpus together, this machine has 4; --no-gpus runs without",
                          "it runs here with: muster train --no-gpus"));
}

}  // namespace
}  // namespace muster::check_experiment_test
