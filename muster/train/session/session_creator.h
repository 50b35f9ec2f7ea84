// Which task does what when a session is created, and again at every recovery: the chief prepares the model, the others
// wait for it. TensorFlow's SessionCreator, ChiefSessionCreator and WorkerSessionCreator
// (python/training/monitored_session.py). Programs may implement their own, which calls one of the manager's three
// functions, or another creator's CreateSession. Used by the session's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/train/session/scaffold.h"
#include "muster/train/session/session_config.h"
#include "muster/train/session/session_manager.h"

namespace muster {

struct SessionCreatorOptions {
  std::shared_ptr<Scaffold> scaffold;
  std::string master;  // see SessionOptions::master
  SessionConfig config;
  std::string checkpoint_dir;  // the chief's; empty: no hook can save
  // For the chief, instead of a checkpoint_dir (both are InvalidArgument): exactly this checkpoint
  // ("dir/model.ckpt-100") is restored if the ps don't hold the model, at the start and at every recovery. NotFound
  // (exit code 2): no such checkpoint.
  std::string checkpoint_filename_with_path;
  double max_wait_secs = 30 * 60;  // a worker's; TensorFlow's default
};

class SessionCreator {
 public:
  virtual ~SessionCreator() = default;
  // Called once, before the hooks begin.
  virtual SessionCreatorOptions options() const { return {}; }
  // Unset: what the cluster says.
  virtual std::optional<bool> is_chief() const { return std::nullopt; }
  // Returns the global step once this process has the model's values. Errors: as SessionManager's; Aborted is retried.
  virtual absl::StatusOr<int64_t> CreateSession(SessionManager& manager) = 0;
};

class ChiefSessionCreator final : public SessionCreator {
 public:
  explicit ChiefSessionCreator(SessionCreatorOptions options = {}) : options_(std::move(options)) {}
  SessionCreatorOptions options() const override { return options_; }
  std::optional<bool> is_chief() const override { return true; }
  absl::StatusOr<int64_t> CreateSession(SessionManager& manager) override { return manager.PrepareSession(); }

 private:
  const SessionCreatorOptions options_;
};

class WorkerSessionCreator final : public SessionCreator {
 public:
  explicit WorkerSessionCreator(SessionCreatorOptions options = {}) : options_(std::move(options)) {}
  SessionCreatorOptions options() const override { return options_; }
  std::optional<bool> is_chief() const override { return false; }
  absl::StatusOr<int64_t> CreateSession(SessionManager& manager) override {
    return manager.WaitForSession(absl::Seconds(options_.max_wait_secs));
  }

 private:
  const SessionCreatorOptions options_;
};

}  // namespace muster
