#include "muster/store/checkpoints/part_saver.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/checkpoint/save_trouble.h"
#include "muster/store/checkpoints/checkpoint_part.h"
#include "muster/store/messages/messages.h"

namespace muster {
namespace {

absl::Status MarkIsGone() { return absl::OutOfRangeError("the mark of this part is gone: cut and save again"); }

}  // namespace

PartSaver::PartSaver(EventLoop& loop, FileSystem& files, Background background, const std::string& model_dir)
    : loop_(loop),
      files_(files),
      background_(std::move(background)),
      where_(std::make_shared<SaveDirectory>(files, model_dir)) {}

void PartSaver::Send(absl::StatusOr<Answer> answer, Responder responder) {
  if (!answer.ok()) return responder.Fail(answer.status());
  responder.Send(answer->control, answer->bulk, std::move(answer->keep_alive));
}

// Training goes on at once; from here on it saves aside what it changes.
void PartSaver::Prepare(std::shared_ptr<Arena> arena) {
  MUSTER_CHECK(idle());
  const uint64_t mark = arena->Mark();
  marked_ = {std::move(arena), mark};
}

void PartSaver::Drop() {
  if (!IsPrepared(true)) return;
  marked_->arena->DiscardAside();
  marked_.reset();
}

void PartSaver::FindDirectory(const std::string& directory, const std::string& save_id, Found found) {
  const uint64_t number = ++last_search_;
  searches_.emplace(number, std::move(found));
  background_([this, &loop = loop_, token = lifetime_.token(), where = where_, directory, save_id, number]() mutable {
    loop.Post([this, token = std::move(token), answer = where->For(directory, save_id), number]() mutable {
      if (!token.alive()) return;
      auto waiting = searches_.extract(number);
      if (!waiting.empty()) waiting.mapped()(std::move(answer));
    });
  });
}

void PartSaver::Save(const std::string& path, bool of_mark, Responder responder) {
  if (path == last_path_) {
    if (last_answer_) return Send(*last_answer_, std::move(responder));
    return waiting_.push_back(std::move(responder));
  }
  if (!IsPrepared(of_mark)) return Send(MarkIsGone(), std::move(responder));
  last_path_ = path;
  last_answer_.reset();
  Begin(std::move(responder), [&files = files_, path](Arena& arena) -> absl::StatusOr<Answer> {
    const auto written = WritePart(files, path, arena.model(), ViewAside(arena));
    if (!written.ok()) return AsSaveTrouble(written.status());
    return Answer{.control = Encode(SavePartReply{written->bytes, written->crc32c})};
  });
}

void PartSaver::Export(bool of_mark, Responder responder) {
  if (!IsPrepared(of_mark)) return Send(MarkIsGone(), std::move(responder));
  Begin(std::move(responder), [](Arena& arena) -> absl::StatusOr<Answer> {
    const auto snapshot = std::make_shared<const PartSnapshot>(CopyAside(arena));
    return Answer{Encode(ExportPartReply{snapshot->steps}), {snapshot->bytes}, snapshot};
  });
}

void PartSaver::Begin(Responder responder, Work work) {
  marked_->under_way = true;
  waiting_.push_back(std::move(responder));
  background_([this, &loop = loop_, token = lifetime_.token(), marked = *marked_, work = std::move(work)]() mutable {
    absl::StatusOr<Answer> answer = absl::FailedPreconditionError("other values were loaded meanwhile");
    if (marked.arena->FinishMark(marked.mark)) answer = work(*marked.arena);
    marked.arena->DiscardAside();
    loop.Post([this, token = std::move(token), answer = std::move(answer)] {
      if (token.alive()) Finish(answer);
    });
  });
}

void PartSaver::Finish(const absl::StatusOr<Answer>& answer) {
  marked_.reset();
  if (!last_path_.empty() && !last_answer_) last_answer_ = answer;
  for (Responder& responder : std::exchange(waiting_, {})) Send(answer, std::move(responder));
}

void PartSaver::Commit(const std::string& directory, const std::string& text, const Retention& retention,
                       Responder responder) {
  const uint64_t number = ++last_commit_;
  commits_.emplace(number, std::move(responder));
  const auto commit = [&files = files_, where = where_, directory, text, retention]() -> absl::StatusOr<Answer> {
    ASSIGN_OR_RETURN(const Manifest manifest, ParseManifest(text, "the chief's manifest"));
    const absl::StatusOr<std::string> own = where->For(directory, manifest.save_id);
    if (!own.ok())
      return absl::NotFoundError(absl::StrCat("ps 0 does not see ", own.status().message(), ": the chief commits"));
    if (const absl::Status failed = CommitManifest(files, *own, manifest); !failed.ok()) {
      RemoveLeftovers(files, *own, manifest.save_id).IgnoreError();  // gives the space back
      return absl::IsInvalidArgument(failed) ? failed : AsSaveTrouble(failed);
    }
    // The new checkpoint is safe; trouble in tidying up is no reason to stop training. Commits run here one after the
    // other, so that a chief that has lost its lease meanwhile can't remove its successor's files.
    if (const absl::Status tidied = Tidy(files, *own, retention, manifest.save_id); !tidied.ok())
      LogWarning("old checkpoints could not be removed: ", tidied.ToString());
    return Answer{};
  };
  background_([this, &loop = loop_, token = lifetime_.token(), commit, number]() mutable {
    loop.Post([this, token = std::move(token), answer = commit(), number]() mutable {
      if (!token.alive()) return;
      auto waiting = commits_.extract(number);
      if (!waiting.empty()) Send(std::move(answer), std::move(waiting.mapped()));
    });
  });
}

void PartSaver::FailAll(const absl::Status& status) {
  for (Responder& responder : std::exchange(waiting_, {})) responder.Fail(status);
  for (auto& [number, responder] : std::exchange(commits_, {})) responder.Fail(status);
  for (auto& [number, found] : std::exchange(searches_, {})) found(status);
}

}  // namespace muster
