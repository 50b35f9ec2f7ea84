#include "muster/launch/spec/file_template.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "muster/base/absl_view.h"

namespace muster {
namespace {

constexpr char kTemplateBegin[] = R"(# What `muster train` runs. All keys: `muster schema`.
# Lines that begin with # without a blank are examples: remove the # to use them.

project: PROJECT

# Where the tasks run, unless on this machine: on hosts that ssh reaches (`muster train --help` has more places).
#hosts: h1,h2

train:
  # The framework of the program: muster, tensorflow, pytorch or any.
  framework: FRAMEWORK
)";

constexpr char kTemplateMuster[] = R"(
  # Several tasks, which find each other by TF_CONFIG. Without this key, one task.
  muster:
    distributed:
      # The first worker is the master.
      worker: 2
      # Parameter servers: `muster ps`, not the program.
      ps: 1
      #evaluator: true
    # A TensorBoard beside the experiment.
    #tensorboard: true

  # Run once for the same code, before the first task.
  #install: cmake -B build && cmake --build build
  # Run in each task, up to the first command that fails. {{ name }} is a parameter's value.
  run: ./train --learning_rate {{ learning-rate }}
)";

constexpr char kTemplateTensorflow[] = R"(
  tensorflow:
    # Installed in a virtual environment. Without this key, the version on PATH.
    #version: 2.15.0
    # A TensorBoard beside the experiment.
    #tensorboard: true
    # Several tasks, which find each other by TF_CONFIG. Without this key, one task.
    distributed:
      # The first worker is the master. Each role may have resources of its own.
      worker: {count: 3}
      ps: 1
      #evaluator: true

  # Run once for the same code and version, before the first task.
  #install: pip install -r requirements.txt
  # Run in each task, up to the first command that fails. {{ name }} is a parameter's value.
  run: python train.py --learning-rate {{ learning-rate }}
)";

constexpr char kTemplatePytorch[] = R"(
  # Installed in a virtual environment. Without this key, the version on PATH.
  #pytorch: {version: 2.3.0}
  # Processes that find each other as under torchrun. Without this key, one process.
  torchrun: {workers: 1, processes: 2}

  # Run once for the same code and version, before the first task.
  #install: pip install -r requirements.txt
  # Run in each task, up to the first command that fails. {{ name }} is a parameter's value.
  run: python train.py --learning-rate {{ learning-rate }}
)";

constexpr char kTemplateAny[] = R"(
  # Run once for the same code, before the first command.
  #install: pip install -r requirements.txt
  # A command or a list, run up to the first that fails. {{ name }} is a parameter's value.
  run:
    - echo "learning rate {{ learning-rate }}, results to $OUTPUT_DIR"
)";

constexpr char kTemplateEnd[] = R"(
  # Parameters with several values make a grid: one run per combination. Tasks also get them as environment
  # variables (LEARNING_RATE).
  parameters:
    learning-rate: 0.1
    #batch-size: [32, 64, 128]
    #dropout: {range: {min: 0.1, max: 0.5, step: 0.1}}
    #decay: {range: {min: 0.0001, max: 0.1, logarithmic: true}}
  # How many runs of a grid run at a time.
  #concurrency: 2

  # Limits of each task: cores, memory (a bare number is MB), GPUs.
  #resources: {cpus: 2, mem: 4GB, gpus: 0}
  # When a task that failed is restarted.
  #restart: {policy: on-failure, limit: 3, backoff: 250ms}

  #env: {OMP_NUM_THREADS: 2}
  # Folders of this machine that the tasks may read (with rw also write).
  #volumes: ["/data", "/scratch:/tmp/scratch:rw"]
  # The folder below which each experiment gets its OUTPUT_DIR.
  #output: /data/results
  # Size up to which a task's output is kept.
  #log_limit: 256MB
)";

const char* TemplateOf(Framework framework) {
  switch (framework) {
    case Framework::kMuster:
      return kTemplateMuster;
    case Framework::kTensorflow:
      return kTemplateTensorflow;
    case Framework::kPytorch:
      return kTemplatePytorch;
    case Framework::kAny:
      break;
  }
  return kTemplateAny;
}

}  // namespace

std::string ExperimentFileTemplate(Framework framework, const std::string& project) {
  return absl::StrCat(
      absl::StrReplaceAll(kTemplateBegin, {{"PROJECT", project}, {"FRAMEWORK", AbslView(Name(framework))}}),
      TemplateOf(framework), kTemplateEnd);
}

std::string ProjectNameOf(std::string_view folder) {
  std::string name;
  for (const char c : folder.substr(0, 100)) {
    const bool alphanumeric = absl::ascii_isalnum(static_cast<unsigned char>(c));
    if (name.empty() && !alphanumeric) continue;  // a name must begin with a letter or digit
    name += alphanumeric || c == '-' || c == '_' || c == '.' ? c : '-';
  }
  return name.empty() ? "project" : name;
}

std::string_view Name(Framework framework) {
  switch (framework) {
    case Framework::kMuster:
      return "muster";
    case Framework::kTensorflow:
      return "tensorflow";
    case Framework::kPytorch:
      return "pytorch";
    case Framework::kAny:
      break;
  }
  return "any";
}

}  // namespace muster
