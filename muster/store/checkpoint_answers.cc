#include "muster/store/checkpoint_answers.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/store/checkpoint_part.h"

namespace muster {

void CheckpointAnswers::SavePart(std::shared_ptr<Arena> arena, const SavePartRequest& message, Responder responder) {
  if (message.file != last_part_) last_part_answer_ = std::make_shared<std::optional<absl::StatusOr<Answer>>>();
  last_part_ = message.file;
  AnswerFromMark({std::move(arena), std::move(responder),
                  [files = files_, answer = last_part_answer_,
                   path = JoinPath(message.directory, TemporaryName(message.file))](Arena& marked) {
                    if (!answer->has_value()) *answer = WriteAside(*files, path, marked);
                    return **answer;
                  }});
}

absl::StatusOr<CheckpointAnswers::Answer> CheckpointAnswers::WriteAside(FileSystem& files, const std::string& path,
                                                                        const Arena& arena) {
  ASSIGN_OR_RETURN(const FileSummary written, WritePart(files, path, arena.model(), ViewAside(arena)));
  return Answer{.control = Encode(SavePartReply{written.bytes, written.crc32c})};
}

void CheckpointAnswers::ExportPart(std::shared_ptr<Arena> arena, Responder responder) {
  AnswerFromMark({std::move(arena), std::move(responder), [](Arena& marked) -> absl::StatusOr<Answer> {
                    const auto snapshot = std::make_shared<const PartSnapshot>(CopyAside(marked));
                    return Answer{Encode(ExportPartReply{snapshot->steps}), {snapshot->bytes}, snapshot};
                  }});
}

void CheckpointAnswers::Commit(const CommitCheckpointRequest& message, Responder responder) {
  if (message.directory.empty()) return responder.Send({});
  AnswerFromBackground(std::move(responder),
                       [files = files_, directory = message.directory,
                        text = message.manifest]() -> absl::StatusOr<Answer> {
                         ASSIGN_OR_RETURN(const Manifest manifest, ParseManifest(text, "the chief's manifest"));
                         if (!SeesSave(*files, directory, manifest.save_id))
                           return absl::NotFoundError(
                               absl::StrCat("ps 0 does not see ", directory, ": the chief commits"));
                         RETURN_IF_ERROR(CommitManifest(*files, directory, manifest));
                         return Answer{};
                       });
}

// Training goes on at once; what it changes from here on it saves aside first.
void CheckpointAnswers::AnswerFromMark(Marked marked) {
  marked_.push_back(std::move(marked));
  if (marked_.size() == 1) NextMark();
}

void CheckpointAnswers::NextMark() {
  Marked& next = marked_.front();
  background_([&loop = loop_, self = self_, arena = next.arena, mark = next.arena->Mark(),
               work = std::move(next.work)]() mutable {
    absl::StatusOr<Answer> answer = absl::FailedPreconditionError("other values were loaded meanwhile");
    if (arena->FinishMark(mark)) answer = work(*arena);
    arena->DiscardAside();
    loop.Post([self = std::move(self), answer = std::move(answer)]() mutable {
      if (*self == nullptr) return;
      CheckpointAnswers& answers = **self;
      Responder responder = std::move(answers.marked_.front().responder);
      answers.marked_.pop_front();
      if (!answers.marked_.empty()) answers.NextMark();
      if (!answer.ok()) return responder.Fail(answer.status());
      responder.Send(std::move(answer->control), std::move(answer->bulk), std::move(answer->keep_alive));
    });
  });
}

// Disks take their time: `work` does it elsewhere, the answer leaves from the loop.
void CheckpointAnswers::AnswerFromBackground(Responder responder, absl::AnyInvocable<absl::StatusOr<Answer>()> work) {
  auto answer = std::make_shared<Responder>(std::move(responder));
  background_([&loop = loop_, self = self_, work = std::move(work), answer = std::move(answer)]() mutable {
    loop.Post([self = std::move(self), result = work(), answer = std::move(answer)]() mutable {
      if (*self == nullptr) return;
      if (!result.ok()) return answer->Fail(result.status());
      answer->Send(std::move(result->control), std::move(result->bulk), std::move(result->keep_alive));
    });
  });
}

}  // namespace muster
