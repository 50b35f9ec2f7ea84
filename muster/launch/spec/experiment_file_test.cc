#include "muster/launch/spec/experiment_file.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/spec/parameters.h"
#include "muster/launch/testing/tensorflow_file.h"

namespace muster::experiment_file_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Pair,
    ::testing::SizeIs, ::testing::UnorderedElementsAre;

constexpr int64_t kMb = 1 << 20;
constexpr int64_t kGb = 1 << 30;

ExperimentFile Parsed(const std::string& text) { return ParseExperimentFile(text, "muster.yml").value(); }

// Returns a file with `train` below `train:`, and `run` added.
std::string WithTrain(const std::string& train) {
  return absl::StrCat("project: p\ntrain:\n  run: x\n  ", absl::StrReplaceAll(train, {{"\n", "\n  "}}), "\n");
}

ExperimentFile Train(const std::string& train) { return Parsed(WithTrain(train)); }

// Returns every reported line.
std::vector<std::string> MistakesOf(const std::string& text) {
  const auto file = ParseExperimentFile(text, "muster.yml");
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return absl::StrSplit(std::string(file.status().message()), '\n');
}

// Returns the only mistake of a file with `train` below `train:`, from line 4 on.
std::string Mistake(const std::string& train) {
  const std::vector<std::string> mistakes = MistakesOf(WithTrain(train));
  EXPECT_THAT(mistakes, SizeIs(1)) << train;
  return mistakes.front();
}

// --- what is read ---

TEST(ExperimentFile, ATensorflowFileIsReadAsItIs) {
  const ExperimentFile file = Parsed(kTensorflowFile);
  EXPECT_EQ(file.name, "muster.yml");
  EXPECT_EQ(file.project, "tea-timer");
  EXPECT_EQ(file.framework, Framework::kTensorflow);
  EXPECT_EQ(file.version, "1.4.0");
  EXPECT_TRUE(file.gpu_version);
  EXPECT_FALSE(file.tensorboard);
  ASSERT_TRUE(file.distributed.has_value());
  const Resources own{.cpus = 2, .mem_bytes = 8 * kGb, .gpus = 2};
  EXPECT_EQ(file.distributed->master.count, 1);
  EXPECT_EQ(file.distributed->master.resources, own);
  EXPECT_EQ(file.distributed->workers.count, 2);
  EXPECT_EQ(file.distributed->workers.resources, own);
  EXPECT_EQ(file.distributed->ps.count, 2);
  EXPECT_EQ(file.distributed->ps.resources, (Resources{.cpus = 2, .mem_bytes = 8 * kGb, .gpus = 0}));
  EXPECT_EQ(file.distributed->evaluator.count, 0);
  EXPECT_FALSE(file.torchrun.has_value());
  EXPECT_THAT(file.run, ElementsAre("python learn.py --depth {{ depth }} --step-size {{ step-size }} "
                                    "--data /data/kettles"));
  EXPECT_THAT(file.parameters, IsEmpty());
  EXPECT_THAT(file.warnings, IsEmpty());
  EXPECT_EQ(FillTemplate(file.run[0], {{"depth", "4"}, {"step-size", "0.1"}}).value(),
            "python learn.py --depth 4 --step-size 0.1 --data /data/kettles");
}

TEST(ExperimentFile, AFoldedCommandIsWhatItsAuthorMeant) {
  EXPECT_THAT(Train("install: >-\n  pip install\n    --quiet x").install, ElementsAre("pip install --quiet x"));
  EXPECT_THAT(Parsed("project: p\ntrain:\n  run:\n  - >\n    a\n      --b\n  - >-\n    c \\\n    d\n").run,
              ElementsAre("a --b\n", "c d"));
  EXPECT_THAT(Parsed("project: p\ntrain:\n  run: |\n    a \\\n      --b\n").run, ElementsAre("a \\\n  --b\n"));
}

TEST(ExperimentFile, ALineOfAScriptThatLooksLikeArgumentsIsWarnedOf) {
  const auto warnings = [](const std::string& script) {
    return Parsed("project: p\ntrain:\n  run: |\n" + script).warnings;
  };
  EXPECT_THAT(warnings("    a\n      --b\n"), ElementsAre(HasSubstr("muster.yml:5: train.run: begins with '-'")));
  EXPECT_THAT(warnings("    a \\\n      --b\n    c\n"), IsEmpty());
  EXPECT_THAT(warnings("    cat <<END\n    - item\n    END\n"), IsEmpty());
}

TEST(ExperimentFile, TheLeastThereIs) {
  const ExperimentFile file = Parsed("project: p\ntrain:\n  run: echo hello\n");
  EXPECT_EQ(file.framework, Framework::kAny);
  EXPECT_THAT(file.run, ElementsAre("echo hello"));
  EXPECT_THAT(file.install, IsEmpty());
  EXPECT_FALSE(file.distributed || file.torchrun);
  EXPECT_EQ(file.resources, Resources());
  EXPECT_EQ(file.concurrency, 1);
  EXPECT_EQ(file.log_bytes, 256 * kMb);
  EXPECT_EQ(file.restart.when, RestartWhen::kOnFailure);
  EXPECT_EQ(file.restart.limit, 3);
}

TEST(ExperimentFile, CommandsAreOneOrAList) {
  EXPECT_THAT(Train("install: pip install x").install, ElementsAre("pip install x"));
  EXPECT_THAT(Train("install:\n  - a\n  - 'b: c'").install, ElementsAre("a", "b: c"));
  EXPECT_THAT(Parsed("project: p\ntrain: {run: [a, \"true\", false]}").run, ElementsAre("a", "true", "false"));
  EXPECT_THAT(Parsed("project: p\ntrain:\n  run: |\n    a\n    b\n").run, ElementsAre("a\nb\n"));
}

TEST(ExperimentFile, WorkersIncludeTheMasterUnlessItIsGiven) {
  const auto distributed = [](const std::string& text) {
    return *Train(absl::StrCat("framework: muster\nmuster: {distributed: ", text, "}")).distributed;
  };
  EXPECT_EQ(distributed("{worker: 3}").workers.count, 2);
  EXPECT_EQ(distributed("{worker: 1}").workers.count, 0);
  EXPECT_EQ(distributed("{ps: 2}").workers.count, 0);
  EXPECT_EQ(distributed("{ps: 2}").master.count, 1);
  EXPECT_EQ(distributed("{}").master.count, 1);
  EXPECT_EQ(distributed("{worker: 3, master: {resources: {cpus: 8}}}").workers.count, 3);
  EXPECT_EQ(distributed("{worker: 3, master: {resources: {cpus: 8}}}").master.resources.cpus, 8);
  EXPECT_EQ(distributed("{worker: 3, master: 1}").workers.count, 3);
  EXPECT_EQ(distributed("{master: 1}").workers.count, 0);
  EXPECT_EQ(distributed("{worker: {resources: {gpus: 1}}}").master.resources.gpus, 1);
  EXPECT_EQ(distributed("{worker: {count: 2}, ps: {}}").ps.count, 1);
  EXPECT_EQ(distributed("{ps: 0}").ps.count, 0);
}

TEST(ExperimentFile, AnEvaluatorIsThereOrNot) {
  const auto evaluators = [](const std::string& text) {
    return Train(absl::StrCat("framework: tensorflow\ntensorflow: {distributed: {evaluator: ", text, "}}"))
        .distributed->evaluator;
  };
  EXPECT_EQ(evaluators("true").count, 1);
  EXPECT_EQ(evaluators("1").count, 1);
  EXPECT_EQ(evaluators("{resources: {cpus: 1}}").count, 1);
  EXPECT_EQ(evaluators("{resources: {cpus: 1}}").resources.cpus, 1);
  EXPECT_EQ(evaluators("false").count, 0);
  EXPECT_EQ(evaluators("0").count, 0);
}

TEST(ExperimentFile, RolesOverrideResourcesAndRestartOneByOne) {
  const ExperimentFile file = Train(
      "framework: tensorflow\n"
      "resources: {cpus: 2, mem: 4GB, gpus: 1}\n"
      "restart: {policy: never, limit: 7}\n"
      "tensorflow:\n"
      "  distributed:\n"
      "    worker: 2\n"
      "    ps: {resources: {gpus: 0}, restart: {policy: always, backoff: 2s}}");
  const RoleSpec& ps = file.distributed->ps;
  EXPECT_EQ(ps.resources, (Resources{.cpus = 2, .mem_bytes = 4 * kGb, .gpus = 0}));
  EXPECT_EQ(ps.restart.when, RestartWhen::kAlways);
  EXPECT_EQ(ps.restart.limit, 7);
  EXPECT_EQ(ps.restart.pause, absl::Seconds(2));
  EXPECT_EQ(file.distributed->workers.restart.when, RestartWhen::kNever);
  EXPECT_EQ(file.distributed->master.restart.limit, 7);
  EXPECT_EQ(file.restart.when, RestartWhen::kNever);
  EXPECT_EQ(file.resources.gpus, 1);
}

TEST(ExperimentFile, TorchrunHasGroupsOfProcesses) {
  const ExperimentFile file =
      Train("framework: pytorch\nresources: {cpus: 2}\ntorchrun: {workers: 2, processes: 4, resources: {gpus: 1}}");
  ASSERT_TRUE(file.torchrun.has_value());
  EXPECT_EQ(file.torchrun->workers.count, 2);
  EXPECT_EQ(file.torchrun->processes, 4);
  EXPECT_EQ(file.torchrun->workers.resources, (Resources{.cpus = 2, .gpus = 1}));
  EXPECT_EQ(Train("torchrun: {}").torchrun->processes, 1);
}

TEST(ExperimentFile, VersionsOfImages) {
  const auto version = [](const std::string& text) {
    return Train(absl::StrCat("framework: pytorch\npytorch: {version: ", text, "}"));
  };
  EXPECT_EQ(version("2.10").version, "2.10");
  EXPECT_FALSE(version("2.10").gpu_version);
  EXPECT_EQ(version("1.5.0-gpu-py3").version, "1.5.0");
  EXPECT_TRUE(version("1.5.0-gpu-py3").gpu_version);
  EXPECT_EQ(version("2.1.0+cpu").version, "2.1.0+cpu");
  EXPECT_EQ(version("latest-gpu").version, "");
  EXPECT_TRUE(version("latest-gpu").gpu_version);
}

TEST(ExperimentFile, ParametersAreAValueAListOrARange) {
  const ExperimentFile file = Train(
      "parameters:\n"
      "  one: 0.10\n"
      "  text: \"two words\"\n"
      "  list: [0.50, relu, true, '']\n"
      "  whole: {range: {min: 1, max: 3, step: 1}}\n"
      "  real: {range: {min: 0.1, max: 0.3, step: 0.1}}\n"
      "  logarithmic: {range: {min: 0.01, max: 1, logarithmic: true}}");
  const std::vector<ParameterSpec>& parameters = file.parameters;
  ASSERT_THAT(parameters, SizeIs(6));
  EXPECT_EQ(parameters[0].name, "one");
  EXPECT_THAT(parameters[0].values, ElementsAre("0.10"));
  EXPECT_FALSE(parameters[0].range.has_value());
  EXPECT_THAT(parameters[1].values, ElementsAre("two words"));
  EXPECT_THAT(parameters[2].values, ElementsAre("0.50", "relu", "true", ""));
  EXPECT_THAT(parameters[3].values, ElementsAre("1", "2", "3"));
  EXPECT_TRUE(parameters[3].range->whole);
  EXPECT_THAT(parameters[4].values, ElementsAre("0.1", "0.2", "0.3"));
  EXPECT_FALSE(parameters[4].range->whole);
  EXPECT_EQ(parameters[4].range->max, 0.3);
  EXPECT_THAT(parameters[5].values, ElementsAre("0.01", "0.1", "1"));
  EXPECT_TRUE(parameters[5].range->logarithmic);
}

TEST(ExperimentFile, VariablesAreAMapOrAList) {
  EXPECT_THAT(Train("env: {A: 1, B_2: \"x y\", C: ''}").env,
              ElementsAre(Pair("A", "1"), Pair("B_2", "x y"), Pair("C", "")));
  EXPECT_THAT(Train("env:\n  - A=1\n  - B==x").env, ElementsAre(Pair("A", "1"), Pair("B", "=x")));
}

TEST(ExperimentFile, VolumesAreReadOnlyUnlessSaid) {
  const ExperimentFile file = Train(
      "volumes:\n  - /a\n  - /b:/data\n  - /c:rw\n  - /d:/e:ro\n  - /f:/g:rw\n  - {host: /h}\n"
      "  - {host: /i, path: /j, writable: true}");
  std::vector<std::string> shown;
  for (const VolumeSpec& volume : file.volumes)
    shown.push_back(absl::StrCat(volume.host, " ", volume.path, volume.writable ? " rw" : ""));
  EXPECT_THAT(shown, ElementsAre("/a /a", "/b /data", "/c /c rw", "/d /e", "/f /g rw", "/h /h", "/i /j rw"));
}

TEST(ExperimentFile, TheRest) {
  const ExperimentFile file = Train(
      "framework: muster\nmuster: {version: 1.0, tensorboard: yes}\nconcurrency: 4\noutput: /results\nlog_limit: 10MB");
  EXPECT_TRUE(file.tensorboard);
  EXPECT_EQ(file.version, "1.0");
  EXPECT_EQ(file.concurrency, 4);
  EXPECT_EQ(file.output, "/results");
  EXPECT_EQ(file.log_bytes, 10 * kMb);
}

TEST(ExperimentFile, MayShareByAnchors) {
  const ExperimentFile file = Train(
      "framework: tensorflow\nresources: &small {cpus: 1}\n"
      "tensorflow: {distributed: {ps: {resources: *small}}}");
  EXPECT_EQ(file.distributed->ps.resources.cpus, 1);
}

// --- what is said besides ---

TEST(ExperimentFile, Warnings) {
  EXPECT_THAT(Train("image: gcr.io/tensorflow:1.5.0").warnings,
              ElementsAre("muster.yml:4: train.image: image is for backends that run images; here the version is "
                          "installed in a virtual environment"));
  EXPECT_THAT(Train("resources: {mem: 16}").warnings,
              ElementsAre(AllOf(HasSubstr("muster.yml:4: train.resources.mem: 16 is 16 MB"), HasSubstr("16GB"))));
  EXPECT_THAT(Train("framework: muster\nmuster:\n  distributed:\n    ps: {resources: {mem: 2}}").warnings,
              ElementsAre(HasSubstr("muster.yml:7: train.muster.distributed.ps.resources.mem: 2 is 2 MB")));
  EXPECT_THAT(Train("parameters: {a: [1, 2, 1]}").warnings,
              ElementsAre(HasSubstr("muster.yml:4: train.parameters.a: \"1\" is there twice")));
  EXPECT_THAT(Train("resources: {mem: 64}\nlog_limit: 1").warnings, IsEmpty());
}

// --- mistakes ---

TEST(ExperimentFileMistakes, AreSaidAllAtOnceByLine) {
  EXPECT_THAT(MistakesOf("project: \"\"\n"
                         "train:\n"
                         "  framework: tensorflwo\n"
                         "  resources: {cpus: 0, mem: lots, gpus: -1}\n"
                         "  rum: x\n"),
              ElementsAre(HasSubstr("muster.yml:1: project: is \"\"; accepted: a name of letters"),
                          "muster.yml:2: train.run: is missing; accepted: text, or a list of commands",
                          "muster.yml:3: train.framework: is \"tensorflwo\" (nearest: tensorflow); accepted: one of "
                          "muster, tensorflow, "
                          "pytorch, any",
                          "muster.yml:4: train.resources.cpus: is \"0\"; accepted: a number above 0",
                          "muster.yml:4: train.resources.mem: is \"lots\"; accepted: a number (MB) or one with a unit: "
                          "16384, 512MB, 16GB, 1.5GB",
                          "muster.yml:4: train.resources.gpus: is \"-1\"; accepted: a whole number from 0 to 64",
                          HasSubstr("muster.yml:5: train.rum: there is no such key (nearest: run); accepted: "
                                    "framework, tensorflow, muster, ")));
}

TEST(ExperimentFileMistakes, NoKeysAtAll) {
  EXPECT_THAT(MistakesOf(""), ElementsAre(AllOf(HasSubstr("muster.yml:1: is empty"), HasSubstr("muster init"))));
  EXPECT_THAT(MistakesOf("# later\n"), ElementsAre(HasSubstr("is empty")));
  EXPECT_THAT(MistakesOf("- a\n"), ElementsAre(HasSubstr("muster.yml:1: has no keys")));
  EXPECT_THAT(MistakesOf("word\n"), ElementsAre(HasSubstr("has no keys")));
  EXPECT_THAT(MistakesOf(std::string(2 << 20, '#')), ElementsAre(HasSubstr("muster.yml: is 2097152 bytes")));
}

TEST(ExperimentFileMistakes, WhatIsNoYaml) {
  EXPECT_THAT(MistakesOf("project: p\ntrain:\n\trun: x\n"),
              ElementsAre(AllOf(HasSubstr("muster.yml:3: isn't YAML: "), HasSubstr("blanks, not by tabs")), "   run: x",
                          "   ^"));
  EXPECT_THAT(MistakesOf("project: p\ntrain:\n  run: {{ program }}\n"),
              ElementsAre(AllOf(HasSubstr("muster.yml:3: "), HasSubstr("must stand in quotes"))));
}

TEST(ExperimentFileMistakes, ParametersInInstall) {
  EXPECT_EQ(Mistake("install:\n- make\n- make {{ depth }}"),
            "muster.yml:6: train.install[2]: has {{ depth }}, but is run once, whatever values the parameters have; "
            "accepted: parameters in train.run");
  EXPECT_THAT(Train("install: docker inspect -f '{{.Id}}'").install, ElementsAre("docker inspect -f '{{.Id}}'"));
}

TEST(ExperimentFile, CommandsAndResourcesKnowTheirPlaces) {
  const ExperimentFile file = Train(
      "resources: {cpus: 1}\nframework: tensorflow\n"
      "tensorflow:\n  distributed:\n    worker: 2\n    ps: {resources: {mem: 1GB}}");
  EXPECT_EQ(file.distributed->master.resources_place, file.resources_place);
  EXPECT_THAT(file.resources_place, HasSubstr(": train.resources"));
  EXPECT_THAT(file.distributed->ps.resources_place, HasSubstr(": train.tensorflow.distributed.ps.resources"));
  ASSERT_EQ(file.run_places.size(), file.run.size());
  EXPECT_THAT(file.run_places[0], HasSubstr(": train.run"));
}

TEST(ExperimentFile, HostsAreATextOrAListOfLines) {
  const auto hosts = [](const std::string& text) { return Parsed(text + "project: p\ntrain: {run: x}\n").hosts; };
  EXPECT_EQ(hosts("").hosts, std::vector<Host>());
  EXPECT_EQ(hosts("hosts: a,u@b:4\n").hosts, (std::vector<Host>{{.name = "a"}, {.name = "u@b", .slots = 4}}));
  EXPECT_EQ(hosts("hosts:\n  - a slots=2 gpus=0\n  - b address=10.0.0.2\n").hosts,
            (std::vector<Host>{{.name = "a", .slots = 2, .gpus = 0}, {.name = "b", .address = "10.0.0.2"}}));
  const HostsSpec all = hosts(
      "on: ssh\nhost_file: hosts.txt\nplacement: {ps: a, worker: [b, c]}\ngrace: 1m\nports: 40000-40100\nssh_config: "
      "ssh/config\n");
  EXPECT_EQ(all.on, "ssh");
  EXPECT_EQ(all.host_file, "hosts.txt");
  EXPECT_EQ(all.placement.at("ps"), std::vector<std::string>{"a"});
  EXPECT_EQ(all.placement.at("worker"), (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(all.grace, absl::Minutes(1));
  EXPECT_EQ(all.ports->ToString(), "40000-40100");
  EXPECT_EQ(all.ssh_config, "ssh/config");
}

TEST(ExperimentFile, SlurmHasOptionsOfSbatch) {
  const SlurmSetting slurm =
      Parsed(
          "on: slurm\nslurm: {partition: gpu, nodes: 2, exclusive: true, mem: null, signal: no, extra: [--nice=1], "
          "max_requeues: 4}\nproject: p\ntrain: {run: x}\n")
          .hosts.slurm;
  EXPECT_EQ(
      slurm.options,
      (SbatchOptions{
          {"partition", "gpu"}, {"nodes", "2"}, {"exclusive", ""}, {"mem", std::nullopt}, {"signal", std::nullopt}}));
  EXPECT_EQ(slurm.extra, std::vector<std::string>{"--nice=1"});
  EXPECT_EQ(slurm.max_requeues, 4);
}

TEST(ExperimentFileMistakes, OfSlurm) {
  EXPECT_THAT(
      MistakesOf(
          "slurm: {Foo: 1, wrap: x, max_requeues: many, extra: [--array=1, -N2, --signal=9@9], signal: USR1@60}\n"
          "project: p\ntrain: {run: x}"),
      UnorderedElementsAre(HasSubstr("muster.yml:1: slurm.Foo: 'Foo' isn't an option of sbatch"),
                           HasSubstr("slurm.wrap: sbatch's option wrap isn't for experiments"),
                           HasSubstr("slurm.max_requeues: max_requeues is 'many'"),
                           HasSubstr("slurm.extra: sbatch's option array isn't for experiments"),
                           HasSubstr("slurm.signal: signal is 'USR1@60'"),
                           HasSubstr("slurm.extra: '--signal=9@9': muster has its own signal"),
                           HasSubstr("slurm.extra: '-N2': accepted is an option of sbatch by its long name")));
}

TEST(ExperimentFileMistakes, OfHosts) {
  EXPECT_THAT(
      MistakesOf("hosts: a,a\non: shh\nhost_file: b\ngrace: 1s\nplacement: {chief: a}\nproject: p\ntrain: {run: x}"),
      UnorderedElementsAre(HasSubstr("muster.yml:1: hosts: 'a' is there twice"),
                           HasSubstr("muster.yml:2: on: is \"shh\" (nearest: ssh); accepted: one of local, ssh"),
                           HasSubstr("muster.yml:3: host_file: is there beside hosts"),
                           HasSubstr("muster.yml:4: grace: is 1s; accepted: 10s to 24h"),
                           HasSubstr("muster.yml:5: placement.chief: there is no such role; accepted: ps, worker")));
  EXPECT_THAT(MistakesOf("hosts: [a slot=2, a, -x]\nproject: p\ntrain: {run: x}"),
              ElementsAre(HasSubstr("muster.yml:1: hosts[1]: 'slot=2' isn't known (nearest: slots)"),
                          HasSubstr("muster.yml:1: hosts[3]: '-x' isn't a host's name")));
  EXPECT_THAT(MistakesOf("hosts: [a slots=2, a]\nproject: p\ntrain: {run: x}"),
              ElementsAre(HasSubstr("hosts[2]: 'a' is there twice")));
}

TEST(ExperimentFileMistakes, WhatIsMissing) {
  EXPECT_THAT(MistakesOf("train: {run: x}\n"), ElementsAre(HasSubstr("muster.yml:1: project: is missing")));
  EXPECT_THAT(MistakesOf("project: p\n"),
              ElementsAre("muster.yml:1: train: is missing; accepted: {framework, run, …}"));
  EXPECT_THAT(MistakesOf("project: p\ntrain:\n"),
              ElementsAre("muster.yml:2: train: has no value; accepted: {framework, run, …}"));
  EXPECT_THAT(MistakesOf("project: p\ntrain: {run: ''}\n"),
              ElementsAre("muster.yml:2: train.run: is \"\"; accepted: text, or a list of commands"));
  EXPECT_THAT(MistakesOf("project: p\ntrain: {run: []}\n"), ElementsAre(HasSubstr("train.run: is an empty list")));
  EXPECT_THAT(MistakesOf("project: p\ntrain: {run: [a, ''] }\n"),
              ElementsAre("muster.yml:2: train.run[2]: is \"\"; accepted: text"));
}

TEST(ExperimentFileMistakes, KeysThatThereAreNot) {
  EXPECT_THAT(
      MistakesOf("project: p\ndeploy: {}\ntrain: {run: x}\n"),
      ElementsAre("muster.yml:2: deploy: there is no such key; accepted: project, on, hosts, host_file, "
                  "placement, grace, ports, supervisor, slurm, ray, spark, kubernetes, hosts_by, ssh_config, train"));
  EXPECT_EQ(Mistake("framework: tensorflow\ntensorflow:\n  distributed: {wroker: 3}"),
            "muster.yml:6: train.tensorflow.distributed.wroker: there is no such key (nearest: worker); accepted: "
            "worker, ps, master, evaluator");
  EXPECT_THAT(Mistake("framework: tensorflow\ntensorflow:\n  distributed: {ps: {cuont: 3}}"),
              HasSubstr("train.tensorflow.distributed.ps.cuont: there is no such key (nearest: count); accepted: "
                        "count, resources, restart"));
  EXPECT_THAT(Mistake("resources: {memory: 3}"), HasSubstr("accepted: cpus, mem, gpus"));
  EXPECT_THAT(Mistake("restart: {polcy: never}"),
              HasSubstr("train.restart.polcy: there is no such key (nearest: policy)"));
  EXPECT_THAT(Mistake("volumes: [{host: /a, paht: /b}]"),
              HasSubstr("train.volumes[1].paht: there is no such key (nearest: path)"));
  EXPECT_THAT(Mistake("parameters: {a: {rnage: {min: 1, max: 2, step: 1}, range: {min: 1, max: 2, step: 1}}}"),
              HasSubstr("train.parameters.a.rnage: there is no such key (nearest: range)"));
  EXPECT_EQ(Mistake("on: slurm").substr(0, 68), "muster.yml:4: train.on: there is no such key here: it belongs at the");
  EXPECT_THAT(MistakesOf("project: p\nconcurrency: 2\ntrain: {run: x}\n").front(),
              HasSubstr("concurrency: there is no such key here: it belongs below train; accepted: "));
  EXPECT_THAT(Mistake("\"a\\nb\": 1"), HasSubstr("train.\"a\\nb\": there is no such key"));
}

TEST(ExperimentFileMistakes, KeysThatAreThereTwice) {
  EXPECT_EQ(Mistake("concurrency: 1\nconcurrency: 2"),
            "muster.yml:5: train.concurrency: is there twice, first in line 4; accepted: each key once");
  EXPECT_THAT(Mistake("parameters:\n  a: 1\n  a: 2"), HasSubstr("muster.yml:6: train.parameters.a: is there twice"));
  EXPECT_THAT(Mistake("env: {A: 1, A: 2}"), HasSubstr("train.env.A: is there twice"));
  EXPECT_THAT(Mistake("env: [A=1, A=2]"), HasSubstr("train.env.A: is there twice"));
  EXPECT_THAT(MistakesOf("project: p\nproject: q\ntrain: {run: x}\n"),
              ElementsAre(HasSubstr("muster.yml:2: project: is there twice, first in line 1")));
}

TEST(ExperimentFileMistakes, NumbersOfTasks) {
  const auto of_roles = [](const std::string& text) {
    return Mistake(absl::StrCat("framework: tensorflow\ntensorflow:\n  distributed:\n    ", text));
  };
  const std::string role = "accepted: a whole number from 1 to 1000, or {count, resources, restart}";
  for (const char* number : {"0", "-1", "1.5", "many", "1001", "99999999999999999999"})
    EXPECT_EQ(of_roles(absl::StrCat("worker: ", number)),
              absl::StrCat("muster.yml:7: train.tensorflow.distributed.worker: is \"", number, "\"; ", role));
  EXPECT_THAT(of_roles("worker: '3'"), AllOf(HasSubstr("is \"3\" in quotes, which is text; "), HasSubstr(role)));
  EXPECT_THAT(of_roles("worker: [3]"), AllOf(HasSubstr("is a list; "), HasSubstr(role)));
  EXPECT_THAT(of_roles("worker:"), AllOf(HasSubstr("has no value; "), HasSubstr(role)));
  EXPECT_THAT(of_roles("worker: {count: 0}"), HasSubstr("worker.count: is \"0\"; accepted: a whole number from 1"));
  EXPECT_THAT(of_roles("ps: -1"), HasSubstr("ps: is \"-1\"; accepted: a whole number from 0 to 1000, or {"));
  EXPECT_THAT(of_roles("master: 2"), HasSubstr("master: is \"2\"; accepted: 1, or {count, "));
  EXPECT_THAT(of_roles("master: {count: 2}"), HasSubstr("master.count: is \"2\"; accepted: 1"));
  EXPECT_THAT(of_roles("evaluator: 2"),
              HasSubstr("evaluator: is \"2\"; accepted: true or false, a whole number from 0 to 1"));
  EXPECT_THAT(of_roles("evaluator: maybe"), HasSubstr("evaluator: is \"maybe\""));
  EXPECT_THAT(Mistake("torchrun: {workers: 0}"), HasSubstr("train.torchrun.workers: is \"0\""));
  EXPECT_THAT(Mistake("torchrun: {processes: -2}"), HasSubstr("train.torchrun.processes: is \"-2\""));
  EXPECT_THAT(Mistake("torchrun: 2"), HasSubstr("train.torchrun: is \"2\"; accepted: {workers, "));
  EXPECT_THAT(Mistake("concurrency: 0"), HasSubstr("train.concurrency: is \"0\"; accepted: a whole number from 1"));
}

TEST(ExperimentFileMistakes, SectionsOfOtherFrameworks) {
  EXPECT_EQ(
      Mistake("framework: pytorch\ntensorflow: {version: 2.15.0}"),
      "muster.yml:5: train.tensorflow: doesn't go with framework: pytorch; accepted: framework: tensorflow, or no "
      "such section");
  EXPECT_THAT(Mistake("muster: {distributed: {worker: 2}}"),
              HasSubstr("train.muster: goes with a framework, and the file has no train.framework; accepted: "
                        "framework: muster"));
  EXPECT_THAT(Mistake("framework: any\npytorch: {version: 2.3.0}"), HasSubstr("framework: pytorch"));
  EXPECT_THAT(Mistake("framework: tensorflow\ntorchrun: {}"),
              HasSubstr("train.torchrun: doesn't go with framework: tensorflow; accepted: framework: pytorch or any"));
  EXPECT_THAT(Mistake("framework: muster\ntorchrun: {}"), HasSubstr("train.torchrun: doesn't go"));
  EXPECT_THAT(Mistake("framework: pytorch\npytorch: {distributed: {worker: 2}}"),
              HasSubstr("train.pytorch.distributed: there is no such key; accepted: version"));
}

TEST(ExperimentFileMistakes, WrongTypes) {
  EXPECT_THAT(MistakesOf("project: [a]\ntrain: x\n"),
              ElementsAre(HasSubstr("project: is a list; accepted: a name"),
                          "muster.yml:2: train: is \"x\"; accepted: {framework, run, …}"));
  EXPECT_THAT(Mistake("framework: [tensorflow]"), HasSubstr("train.framework: is a list"));
  EXPECT_THAT(Mistake("framework:"), HasSubstr("train.framework: has no value"));
  EXPECT_THAT(Mistake("framework: tensorflow\ntensorflow: 1.4"),
              HasSubstr("train.tensorflow: is \"1.4\"; accepted: {"));
  EXPECT_THAT(Mistake("framework: tensorflow\ntensorflow: {tensorboard: 5}"),
              HasSubstr("train.tensorflow.tensorboard: is \"5\"; accepted: true or false"));
  EXPECT_THAT(Mistake("framework: tensorflow\ntensorflow: {distributed: 3}"),
              HasSubstr("train.tensorflow.distributed: is \"3\"; accepted: {worker, "));
  EXPECT_THAT(Mistake("image: {name: x}"), HasSubstr("train.image: is a map; accepted: text"));
  EXPECT_THAT(Mistake("install: {a: b}"), HasSubstr("train.install: is a map; accepted: text, or a list of commands"));
  EXPECT_THAT(Mistake("install: [[a]]"), HasSubstr("train.install[1]: is a list; accepted: text"));
  EXPECT_THAT(Mistake("resources: 2"), HasSubstr("train.resources: is \"2\"; accepted: {cpus, mem, gpus}"));
  EXPECT_THAT(Mistake("resources: {cpus: two}"), HasSubstr("cpus: is \"two\"; accepted: a number above 0"));
  EXPECT_THAT(Mistake("resources: {cpus: .nan}"), HasSubstr("cpus: is \".nan\""));
  EXPECT_THAT(Mistake("resources: {mem: 0}"), HasSubstr("mem: is \"0\""));
  EXPECT_THAT(Mistake("resources: {mem: [1]}"), HasSubstr("mem: is a list"));
  EXPECT_THAT(Mistake("resources: {gpus: all}"), HasSubstr("gpus: is \"all\""));
  EXPECT_THAT(Mistake("output: results"), HasSubstr("train.output: is \"results\"; accepted: an absolute path"));
  EXPECT_THAT(Mistake("log_limit: many"), HasSubstr("train.log_limit: is \"many\"; accepted: a number (MB)"));
  EXPECT_THAT(Mistake("log_limit: 1KB"), HasSubstr("train.log_limit: is 1 KB; accepted: at least 64 KB"));
  EXPECT_THAT(Mistake("restart: never"), HasSubstr("train.restart: is \"never\"; accepted: {policy, limit, backoff}"));
  EXPECT_THAT(Mistake("restart: {policy: sometimes}"), HasSubstr("accepted: one of never, on-failure, always"));
  EXPECT_THAT(Mistake("restart: {limit: -1}"), HasSubstr("train.restart.limit: is \"-1\""));
  EXPECT_THAT(Mistake("restart: {backoff: soon}"),
              HasSubstr("train.restart.backoff: is \"soon\"; accepted: a duration"));
  EXPECT_THAT(Mistake("restart: {backoff: -1s}"), HasSubstr("train.restart.backoff: is \"-1s\""));
}

TEST(ExperimentFileMistakes, ProjectsAndVersions) {
  for (const char* name : {"a b", "-a", "a/b", "..", "é"})
    EXPECT_THAT(MistakesOf(absl::StrCat("project: \"", name, "\"\ntrain: {run: x}\n")),
                ElementsAre(HasSubstr("project: is \"")))
        << name;
  for (const char* version : {"newest", "1.2.1-cuda", "1.0; rm", ""})
    EXPECT_THAT(Mistake(absl::StrCat("framework: pytorch\npytorch: {version: \"", version, "\"}")),
                HasSubstr("train.pytorch.version: is \""))
        << version;
}

TEST(ExperimentFileMistakes, Parameters) {
  EXPECT_EQ(Mistake("parameters:\n  lr: {range: {min: 1, max: 2, step: 0}}"),
            "muster.yml:5: train.parameters.lr.range.step: is \"0\"; accepted: a number above 0");
  EXPECT_THAT(Mistake("parameters: {lr: {range: {min: 2, max: 1, step: 1}}}"),
              HasSubstr("train.parameters.lr.range: range from 2 to 1 by 1: max is below min; accepted: "));
  EXPECT_THAT(Mistake("parameters: {lr: {range: {min: 1, max: 2}}}"),
              HasSubstr("train.parameters.lr.range.step: is missing; accepted: a number above 0, or none with "));
  EXPECT_THAT(Mistake("parameters: {lr: {range: {max: 2, step: 1}}}"),
              HasSubstr("train.parameters.lr.range.min: is missing; accepted: a number"));
  EXPECT_THAT(Mistake("parameters: {lr: {range: {min: a, max: 2, step: 1}}}"), HasSubstr("range.min: is \"a\""));
  EXPECT_THAT(Mistake("parameters: {lr: {range: {min: 0, max: 1, step: 1e-9}}}"), HasSubstr("more than 10000 values"));
  EXPECT_THAT(Mistake("parameters: {lr: {range: {min: 1, max: 2, step: 1, logarithmic: true}}}"),
              HasSubstr("accepted: a step above 1"));
  EXPECT_THAT(Mistake("parameters: {lr: {range: {min: 0, max: 2, logarithmic: true}}}"),
              HasSubstr("accepted: a min above 0"));
  EXPECT_THAT(Mistake("parameters: {lr: {}}"), HasSubstr("train.parameters.lr.range: is missing"));
  EXPECT_THAT(
      Mistake("parameters: {lr: []}"),
      HasSubstr("train.parameters.lr: is an empty list; accepted: text, a list of values, at least one, or {range}"));
  EXPECT_THAT(Mistake("parameters: {lr: }"), HasSubstr("train.parameters.lr: has no value"));
  EXPECT_THAT(Mistake("parameters: {lr: [1, [2]]}"), HasSubstr("train.parameters.lr[2]: is a list; accepted: text"));
  EXPECT_THAT(Mistake("parameters: {lr: [1, ~]}"), HasSubstr("train.parameters.lr[2]: has no value"));
  EXPECT_THAT(Mistake("parameters: [lr]"), HasSubstr("train.parameters: is a list; accepted: a map from names"));
  EXPECT_THAT(Mistake("parameters: {2nd: 1}"),
              HasSubstr("train.parameters: \"2nd\" isn't a parameter name; accepted: letters"));
  EXPECT_THAT(Mistake("parameters: {path: 1}"), HasSubstr("environment variable PATH, which means something already"));
  EXPECT_THAT(Mistake("torchrun: {}\nparameters: {rank: 1}"),
              HasSubstr("train.parameters.rank: would be the environment variable RANK, which tells torchrun's tasks"));
  EXPECT_THAT(Train("parameters: {rank: 1}").parameters, SizeIs(1));
  EXPECT_THAT(Mistake("parameters: {num-layers: 1, num_layers: 2}"),
              HasSubstr("train.parameters.num_layers: is the environment variable NUM_LAYERS, as num-layers is"));
}

TEST(ExperimentFileMistakes, Templates) {
  EXPECT_THAT(MistakesOf("project: p\ntrain:\n  run: [a, 'x {{ lr']\n"),
              ElementsAre(AllOf(HasSubstr("muster.yml:3: train.run[2]: \"{{\" without \"}}\""))));
  EXPECT_THAT(MistakesOf("project: p\ntrain: {run: \"x {{ a b }}\"}\n"), ElementsAre(HasSubstr("no parameter's name")));
  // Its value may come from the command line.
  EXPECT_THAT(Parsed("project: p\ntrain: {run: \"x {{ undefined }}\"}\n").run, ElementsAre("x {{ undefined }}"));
}

TEST(ExperimentFileMistakes, Variables) {
  EXPECT_THAT(Mistake("env: [A]"), HasSubstr("train.env[1]: is \"A\"; accepted: NAME=VALUE"));
  EXPECT_THAT(Mistake(R"(env: {A: "a\0b"})"), HasSubstr("train.env.A: has a zero byte"));
  EXPECT_THAT(Mistake("env: [2A=1]"), HasSubstr("train.env[1]: is \"2A=1\"; accepted: NAME=VALUE"));
  EXPECT_THAT(Mistake("env: {a-b: 1}"), HasSubstr("train.env: \"a-b\" isn't a variable name; accepted: letters"));
  EXPECT_THAT(Mistake("env: {A: [1]}"), HasSubstr("train.env.A: is a list; accepted: text"));
  EXPECT_THAT(Mistake("env: {A: }"), HasSubstr("train.env.A: has no value"));
  EXPECT_THAT(Mistake("env: A=1"), HasSubstr("train.env: is \"A=1\"; accepted: a map from names to values, or a list"));
  EXPECT_THAT(Mistake("env: {TF_CONFIG: x}"), HasSubstr("train.env.TF_CONFIG: is what `muster train` sets itself"));
  EXPECT_THAT(Mistake("torchrun: {}\nenv: {MASTER_ADDR: x}"),
              HasSubstr("train.env.MASTER_ADDR: is what `muster train`"));
  EXPECT_THAT(Train("env: {MASTER_ADDR: x}").env, SizeIs(1));
  EXPECT_THAT(Mistake("parameters: {num-layers: 1}\nenv: {NUM_LAYERS: 2}"),
              HasSubstr("train.env.NUM_LAYERS: is the parameter num-layers already"));
}

TEST(ExperimentFileMistakes, Volumes) {
  for (const char* volume : {"data", "/a:b", "/a:/b:rx", "/a:/b:ro:rw", "''", "[]"})
    EXPECT_THAT(Mistake(absl::StrCat("volumes: [", volume, "]")),
                AllOf(HasSubstr("train.volumes[1]: is "), HasSubstr("accepted: /host, /host:/path, or either with")))
        << volume;
  EXPECT_THAT(Mistake("volumes: [{path: /a}]"), HasSubstr("train.volumes[1].host: is missing"));
  EXPECT_THAT(Mistake("volumes: [{host: a}]"),
              HasSubstr("train.volumes[1].host: is \"a\"; accepted: an absolute path"));
  EXPECT_THAT(Mistake("volumes: [{host: /a, writable: rw}]"),
              HasSubstr("writable: is \"rw\"; accepted: true or false"));
  EXPECT_THAT(Mistake("volumes: /a"), HasSubstr("train.volumes: is \"/a\"; accepted: a list of volumes"));
  EXPECT_THAT(Mistake("volumes: [/a, '/b:/a']"), HasSubstr("train.volumes: two have the path \"/a\""));
}

// --- which file ---

TEST(FindExperimentFile, PrefersOwnFiles) {
  const ScratchFolder scratch;
  const auto none = FindExperimentFile(scratch.path());
  EXPECT_EQ(none.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(none.status().message()), AllOf(HasSubstr("muster.yml"), HasSubstr("riseml.yml"),
                                                          HasSubstr(scratch.path()), HasSubstr("muster init")));
  scratch.Write("riseml.yml", "");
  EXPECT_EQ(FindExperimentFile(scratch.path()).value(), scratch / "riseml.yml");
  scratch.Write("muster.yml", "");
  EXPECT_EQ(FindExperimentFile(scratch.path()).value(), scratch / "muster.yml");
}

}  // namespace
}  // namespace muster::experiment_file_test
