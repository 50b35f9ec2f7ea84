// An experiment file for distributed TensorFlow, with the keys that such files of other launchers have, for tests: it
// must run, and pass every check, unchanged.
#pragma once

namespace muster {

inline constexpr char kTensorflowFile[] = R"(project: tea-timer
train:
  framework: tensorflow
  resources:
    cpus: 2
    mem: 8192
    gpus: 2
  tensorflow:
    version: 1.4.0-gpu
    distributed:
      ps:
        count: 2
        resources:
          gpus: 0
          mem: 8192
          cpus: 2
      worker: 3
  run: >-
    python learn.py --depth {{ depth }}
                    --step-size {{ step-size }}
                    --data /data/kettles
)";

}  // namespace muster
