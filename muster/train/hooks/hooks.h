// All hooks: those that every TensorFlow user knows, with the same defaults, trigger rules and log lines
// (python/training/basic_session_run_hooks.py), and others. Each is used by one session's training thread.
// docs/hooks.md has all of them in one table.
#pragma once

#include "muster/train/hooks/checkpoint_saver.h"
#include "muster/train/hooks/checkpoint_saver_listener.h"
#include "muster/train/hooks/early_stopping_by_run.h"
#include "muster/train/hooks/feed_fn.h"
#include "muster/train/hooks/final_ops.h"
#include "muster/train/hooks/global_step_waiter.h"
#include "muster/train/hooks/gradients.h"
#include "muster/train/hooks/learning_rate_logger.h"
#include "muster/train/hooks/logging_tensor.h"
#include "muster/train/hooks/nan_tensor.h"
#include "muster/train/hooks/profiler.h"
#include "muster/train/hooks/progress_bar.h"
#include "muster/train/hooks/second_or_step_timer.h"
#include "muster/train/hooks/step_counter.h"
#include "muster/train/hooks/stop_at_step.h"
#include "muster/train/hooks/summary_saver.h"
