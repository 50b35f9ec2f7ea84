// The experiment file of RiseML's page on distributed TensorFlow, byte for byte, for tests: it must run, and pass every
// check, unchanged.
#pragma once

namespace muster {

inline constexpr char kToasterFile[] = R"(project: ai-toaster
train:
  framework: tensorflow
  resources:
    cpus: 2
    mem: 16384
    gpus: 4
  tensorflow:
    version: 1.2.1-gpu
    distributed:
      worker: 3
      ps:
        count: 2
        resources:
          cpus: 2
          mem: 16384
          gpus: 0
  run: >-
    python train_model.py --num-layers {{ num-layers }}
                          --learning-rate {{ learning-rate }}
                          --training-data /data/my-project
)";

}  // namespace muster
