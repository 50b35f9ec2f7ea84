// What a training program includes: everything of muster that a user's main needs. README.md shows a whole program.
#pragma once

#include "muster/cluster/compute_device.h"
#include "muster/cluster/device_scope.h"
#include "muster/cluster/replica_device_setter.h"
#include "muster/cluster/task_config.h"
#include "muster/optim/rule_options.h"
#include "muster/torch_bridge/embedding.h"
#include "muster/torch_bridge/module_devices.h"
#include "muster/torch_bridge/module_source.h"
#include "muster/torch_bridge/random_state.h"
#include "muster/torch_bridge/sessions.h"
#include "muster/torch_bridge/training.h"
#include "muster/train/coordinator.h"
#include "muster/train/error.h"
#include "muster/train/hooks.h"
#include "muster/train/looper_thread.h"
#include "muster/train/session_config.h"
