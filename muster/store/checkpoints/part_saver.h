// The ps's side of a checkpoint: turns what its arena held at a mark into a file, or lets the chief fetch it in pieces,
// while training goes on. One mark at a time; files are written in the background, answers leave from the loop. Lives
// on the store's event loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/bytes.h"
#include "muster/base/files/file_system.h"
#include "muster/base/lifetime.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/store/arena/arena.h"
#include "muster/store/checkpoints/save_directory.h"
#include "muster/transport/event_loop.h"
#include "muster/transport/listener.h"

namespace muster {

class PartSaver {
 public:
  // Runs its arguments later, one after the other, on any thread.
  using Background = std::function<void(absl::AnyInvocable<void()>)>;

  // Borrows all of them for its life; what `background` runs may outlive it. `model_dir`: see SaveDirectory.
  PartSaver(EventLoop& loop, FileSystem& files, Background background, const std::string& model_dir);
  ~PartSaver();

  // How long an open part stays for a chief that fetches nothing of it: it may be dead, and the memory is the
  // machine's. The chief's disk may stall for as long between two pieces.
  static constexpr absl::Duration kFetchPatience = absl::Minutes(2);

  // Sets the mark of the next part. Only when idle.
  void Prepare(std::shared_ptr<Arena> arena);
  // Drops the mark, whose part nobody will request, or closes the open part. A part that is being written stays.
  void Drop();
  // Whether no mark waits for its part, and none is being written, open or being freed.
  bool idle() const { return !marked_; }

  // Looks up, in the background because a disk may hang, where to write for that save (SaveDirectory::For), and tells
  // `found` on the loop.
  using Found = absl::AnyInvocable<void(absl::StatusOr<std::string> directory)>;
  void FindDirectory(const std::string& directory, const std::string& save_id, Found found);

  // Answers with SavePartReply once the part is in the file `path`. `of_mark`: the request means the mark that was set
  // last. OutOfRange: it doesn't, or the mark was used. IsSaveTrouble: the file can't be written. A path that was
  // already written isn't written again: by the time a request arrives twice, its file may have been committed.
  void Save(const std::string& path, bool of_mark, Responder responder);
  // Opens the part, and answers with ExportPartReply once all of it is aside; otherwise likewise. Open already: answers
  // again.
  void Open(bool of_mark, Responder responder);
  // Answers with the bytes [first, first + bytes) of the open part as its bulk. OutOfRange: it isn't open.
  // FailedPrecondition: other values were loaded meanwhile. InvalidArgument: more than kMostFetchedBytes, or bytes that
  // the part hasn't.
  void Fetch(bool of_mark, uint64_t first, uint64_t bytes, Responder responder);

  // Answers once the manifest (JSON) is committed and old checkpoints are removed. NotFound: `directory` isn't where
  // this ps may write. IsSaveTrouble: its files can't be written.
  void Commit(const std::string& directory, const std::string& manifest, const Retention& retention,
              Responder responder);

  // Fails every waiting request; work under way is finished, but nobody is answered.
  void FailAll(const absl::Status& status);

 private:
  struct Answer {
    std::string control;
    Segments bulk;
    std::shared_ptr<const void> keep_alive;
  };
  enum class Stage { kPrepared, kWriting, kOpening, kOpen, kClosing };
  struct Marked {
    std::shared_ptr<Arena> arena;
    uint64_t mark = 0;
    Stage stage = Stage::kPrepared;
  };

  static void Send(absl::StatusOr<Answer> answer, Responder responder);
  bool Is(Stage stage) const { return marked_ && marked_->stage == stage; }
  void Finish(const absl::StatusOr<Answer>& answer);
  void Opened(bool whole);
  void Close();
  void CloseIfNothingIsFetched();

  EventLoop& loop_;
  FileSystem& files_;
  const Background background_;
  const std::shared_ptr<SaveDirectory> where_;  // used in the background only
  std::optional<Marked> marked_;
  std::vector<Responder> waiting_;         // for the current part
  std::map<uint64_t, Responder> commits_;  // under way
  uint64_t last_commit_ = 0;
  std::map<uint64_t, Found> searches_;  // under way
  uint64_t last_search_ = 0;
  std::string last_path_;
  std::optional<absl::StatusOr<Answer>> last_answer_;  // to its request; none: the file is being written
  std::optional<EventLoop::TimerId> close_timer_;
  Lifetime lifetime_;  // what runs in the background may outlive this
};

}  // namespace muster
