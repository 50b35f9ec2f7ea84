// What a ps answers about checkpoints once its disk has done its part: parts written or handed out as they were at a
// mark, manifests committed. Training goes on meanwhile. Lives on the store's event loop; the work runs in the
// background.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "muster/base/file_system.h"
#include "muster/store/arena.h"
#include "muster/store/messages.h"
#include "muster/transport/event_loop.h"
#include "muster/transport/listener.h"

namespace muster {

class CheckpointAnswers {
 public:
  // Runs its arguments some time, one after the other, on any thread.
  using Background = std::function<void(absl::AnyInvocable<void()>)>;

  // `loop`, `files` and what `background` runs must outlive it.
  CheckpointAnswers(EventLoop& loop, FileSystem* files, Background background)
      : loop_(loop), files_(files), background_(std::move(background)) {}
  ~CheckpointAnswers() { *self_ = nullptr; }
  CheckpointAnswers(const CheckpointAnswers&) = delete;
  CheckpointAnswers& operator=(const CheckpointAnswers&) = delete;

  // The senders have been checked.
  void SavePart(std::shared_ptr<Arena> arena, const SavePartRequest& message, Responder responder);
  void ExportPart(std::shared_ptr<Arena> arena, Responder responder);
  void Commit(const CommitCheckpointRequest& message, Responder responder);

 private:
  struct Answer {
    std::string control;
    Segments bulk;
    std::shared_ptr<const void> keep_alive;
  };
  using MarkedWork = absl::AnyInvocable<absl::StatusOr<Answer>(Arena& arena)>;
  struct Marked {
    std::shared_ptr<Arena> arena;
    Responder responder;
    MarkedWork work;
  };

  static absl::StatusOr<Answer> WriteAside(FileSystem& files, const std::string& path, const Arena& arena);
  // The work runs elsewhere on what a mark of its own has set aside; marks follow one after the other.
  void AnswerFromMark(Marked marked);
  void NextMark();
  void AnswerFromBackground(Responder responder, absl::AnyInvocable<absl::StatusOr<Answer>()> work);

  EventLoop& loop_;
  FileSystem* const files_;
  const Background background_;
  std::deque<Marked> marked_;  // the first one is under way
  // The last part that was written, and what was answered: a request that arrives again must not write it again, for it
  // may be committed by then.
  std::string last_part_;
  std::shared_ptr<std::optional<absl::StatusOr<Answer>>> last_part_answer_;
  // Handed to what runs in the background, so that it finds out if the store has gone.
  std::shared_ptr<CheckpointAnswers*> self_ = std::make_shared<CheckpointAnswers*>(this);
};

}  // namespace muster
