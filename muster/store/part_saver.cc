#include "muster/store/part_saver.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/store/checkpoint_part.h"
#include "muster/store/messages.h"

namespace muster {

PartSaver::PartSaver(EventLoop& loop, FileSystem& files, Background background)
    : loop_(loop), files_(files), background_(std::move(background)) {}

PartSaver::~PartSaver() { *self_ = nullptr; }

void PartSaver::Send(absl::StatusOr<Answer> answer, Responder responder) {
  if (!answer.ok()) return responder.Fail(answer.status());
  responder.Send(std::move(answer->control), std::move(answer->bulk), std::move(answer->keep_alive));
}

void PartSaver::Save(std::shared_ptr<Arena> arena, const std::string& path, Responder responder, Mark mark) {
  if (path == last_path_) mark = Mark::kNew;  // a retry: what it marks is not written
  if (path != last_path_) last_answer_ = std::make_shared<std::optional<absl::StatusOr<Answer>>>();
  last_path_ = path;
  const auto write = [&files = files_, path](const Arena& marked) -> absl::StatusOr<Answer> {
    ASSIGN_OR_RETURN(const FileSummary written, WritePart(files, path, marked.model(), ViewAside(marked)));
    return Answer{.control = Encode(SavePartReply{written.bytes, written.crc32c})};
  };
  AfterMark({std::move(arena), std::move(responder),
             [write, answer = last_answer_](Arena& marked) {
               if (!answer->has_value()) *answer = write(marked);
               return **answer;
             }},
            mark);
}

void PartSaver::Export(std::shared_ptr<Arena> arena, Responder responder, Mark mark) {
  AfterMark({std::move(arena), std::move(responder),
             [](Arena& marked) -> absl::StatusOr<Answer> {
               const auto snapshot = std::make_shared<const PartSnapshot>(CopyAside(marked));
               return Answer{Encode(ExportPartReply{snapshot->steps}), {snapshot->bytes}, snapshot};
             }},
            mark);
}

// Training goes on at once; what it changes from here on it saves aside first.
void PartSaver::AfterMark(Marked marked, Mark mark) {
  if (mark == Mark::kGone || (mark == Mark::kPrepared && !prepared_))
    return marked.responder->Fail(absl::OutOfRangeError("the mark of this part is gone: cut and save again"));
  if (mark == Mark::kPrepared) {
    marked_.front() = std::move(marked);
    return Begin(*std::exchange(prepared_, std::nullopt));
  }
  marked_.push_back(std::move(marked));
  if (marked_.size() == 1) NextMark();
}

void PartSaver::Prepare(std::shared_ptr<Arena> arena) {
  MUSTER_CHECK(idle());
  prepared_ = arena->Mark();
  marked_.push_back({.arena = std::move(arena), .responder = std::nullopt, .work = nullptr});
}

void PartSaver::Drop() {
  if (!prepared_) return;
  marked_.front().work = [](Arena&) -> absl::StatusOr<Answer> { return Answer{}; };
  Begin(*std::exchange(prepared_, std::nullopt));
}

void PartSaver::NextMark() { Begin(marked_.front().arena->Mark()); }

void PartSaver::Begin(uint64_t mark) {
  Marked& next = marked_.front();
  background_([&loop = loop_, self = self_, arena = next.arena, mark, work = std::move(next.work)]() mutable {
    absl::StatusOr<Answer> answer = absl::FailedPreconditionError("other values were loaded meanwhile");
    if (arena->FinishMark(mark)) answer = work(*arena);
    arena->DiscardAside();
    loop.Post([self = std::move(self), answer = std::move(answer)]() mutable {
      if (*self == nullptr) return;
      PartSaver& saver = **self;
      std::optional<Responder> responder = std::move(saver.marked_.front().responder);
      saver.marked_.pop_front();
      if (!saver.marked_.empty()) saver.NextMark();
      if (responder) Send(std::move(answer), *std::move(responder));
    });
  });
}

void PartSaver::Commit(const std::string& directory, const std::string& text, const Retention& retention,
                       Responder responder) {
  const uint64_t number = ++last_commit_;
  commits_.emplace(number, std::move(responder));
  const auto commit = [&files = files_, directory, text, retention]() -> absl::StatusOr<Answer> {
    ASSIGN_OR_RETURN(const Manifest manifest, ParseManifest(text, "the chief's manifest"));
    if (!SeesSave(files, directory, manifest.save_id))
      return absl::NotFoundError(absl::StrCat("ps 0 does not see ", directory, ": the chief commits"));
    RETURN_IF_ERROR(CommitManifest(files, directory, manifest));
    // The new checkpoint is safe; trouble in tidying up is no reason to stop training. It is done here, where commits
    // are, one after the other: a chief that has lost its lease meanwhile can't take its successor's files away.
    if (const absl::Status tidied = Tidy(files, directory, retention, manifest.save_id); !tidied.ok())
      LogWarning("old checkpoints could not be removed: ", tidied.ToString());
    return Answer{};
  };
  background_([&loop = loop_, self = self_, commit, number]() mutable {
    loop.Post([self = std::move(self), answer = commit(), number]() mutable {
      if (*self == nullptr) return;
      auto waiting = (*self)->commits_.extract(number);
      if (!waiting.empty()) Send(std::move(answer), std::move(waiting.mapped()));
    });
  });
}

void PartSaver::FailAll(const absl::Status& status) {
  for (Marked& marked : marked_)
    if (marked.responder) std::exchange(marked.responder, std::nullopt)->Fail(status);
  for (auto& [number, responder] : std::exchange(commits_, {})) responder.Fail(status);
}

}  // namespace muster
