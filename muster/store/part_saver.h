// The ps's side of a checkpoint: what its arena held at a mark becomes a file, or the bytes of an answer, while
// training goes on. Marks follow one after the other; files are written in the background, answers leave from the loop.
// Lives on the store's event loop.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "muster/base/bytes.h"
#include "muster/base/file_system.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/store/arena.h"
#include "muster/transport/event_loop.h"
#include "muster/transport/listener.h"

namespace muster {

class PartSaver {
 public:
  // Runs its arguments some time, one after the other, on any thread.
  using Background = std::function<void(absl::AnyInvocable<void()>)>;

  // All borrowed for its life; what `background` runs may outlive it.
  PartSaver(EventLoop& loop, FileSystem& files, Background background);
  ~PartSaver();

  // Answers with SavePartReply once the part is in the file `path`. A path that was written already is not written
  // again: by the time that a request arrives twice, its file may have been committed.
  enum class Mark { kNew, kPrepared, kGone };  // gone: OutOfRange
  void Save(std::shared_ptr<Arena> arena, const std::string& path, Responder responder, Mark mark = Mark::kNew);
  // Answers with ExportPartReply, the part being its bulk.
  void Export(std::shared_ptr<Arena> arena, Responder responder, Mark mark = Mark::kNew);

  // Sets the mark of the next part with Mark::kPrepared. To be called only if nothing is under way.
  void Prepare(std::shared_ptr<Arena> arena);
  // No such part will be asked for.
  void Drop();
  bool idle() const { return marked_.empty(); }

  // Answers once the manifest (JSON) is committed in `directory`, and old checkpoints are removed. NotFound: the
  // directory isn't seen from here.
  void Commit(const std::string& directory, const std::string& manifest, const Retention& retention,
              Responder responder);

  // Who waits for any of it is told so, and it is finished for nobody.
  void FailAll(const absl::Status& status);

 private:
  struct Answer {
    std::string control;
    Segments bulk;
    std::shared_ptr<const void> keep_alive;
  };
  using Work = absl::AnyInvocable<absl::StatusOr<Answer>()>;
  using MarkedWork = absl::AnyInvocable<absl::StatusOr<Answer>(Arena& arena)>;
  struct Marked {
    std::shared_ptr<Arena> arena;
    std::optional<Responder> responder;
    MarkedWork work;
  };

  static void Send(absl::StatusOr<Answer> answer, Responder responder);
  void AfterMark(Marked marked, Mark mark);
  void NextMark();
  // The first one's work.
  void Begin(uint64_t mark);

  EventLoop& loop_;
  FileSystem& files_;
  const Background background_;
  std::deque<Marked> marked_;              // the first one is under way
  std::optional<uint64_t> prepared_;       // … or has this mark, and waits for its work
  std::map<uint64_t, Responder> commits_;  // under way
  uint64_t last_commit_ = 0;
  std::string last_path_;
  std::shared_ptr<std::optional<absl::StatusOr<Answer>>> last_answer_;
  // Handed to what runs in the background, so that it finds out if this has gone.
  std::shared_ptr<PartSaver*> self_ = std::make_shared<PartSaver*>(this);
};

}  // namespace muster
