#include "muster/store/checkpoints/part_saver.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/checkpoint/save_trouble.h"
#include "muster/store/arena/shared_memory_order.h"
#include "muster/store/checkpoints/checkpoint_part.h"
#include "muster/store/messages/messages.h"

namespace muster {
namespace {

absl::Status MarkIsGone() { return absl::OutOfRangeError("the mark of this part is gone: cut and save again"); }
absl::Status OthersWereLoaded() { return absl::FailedPreconditionError("other values were loaded meanwhile"); }

}  // namespace

PartSaver::PartSaver(EventLoop& loop, FileSystem& files, Background background, const std::string& model_dir)
    : loop_(loop),
      files_(files),
      background_(std::move(background)),
      where_(std::make_shared<SaveDirectory>(files, model_dir)) {}

PartSaver::~PartSaver() {
  if (close_timer_) loop_.CancelTimer(*close_timer_);
}

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
  if (Is(Stage::kOpen)) return Close();
  if (!Is(Stage::kPrepared)) return;
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
  if (!of_mark || !Is(Stage::kPrepared)) return Send(MarkIsGone(), std::move(responder));
  last_path_ = path;
  last_answer_.reset();
  marked_->stage = Stage::kWriting;
  waiting_.push_back(std::move(responder));
  background_([this, &loop = loop_, &files = files_, token = lifetime_.token(), path, marked = *marked_]() mutable {
    absl::StatusOr<Answer> answer = OthersWereLoaded();
    if (marked.arena->FinishMark(marked.mark)) {
      const auto written = WritePart(files, path, marked.arena->model(), ViewAside(*marked.arena));
      if (written.ok()) {
        answer = Answer{.control = Encode(SavePartReply{written->bytes, written->crc32c})};
      } else {
        answer = AsSaveTrouble(written.status());
      }
    }
    marked.arena->DiscardAside();
    loop.Post([this, token = std::move(token), answer = std::move(answer)] {
      if (token.alive()) Finish(answer);
    });
  });
}

void PartSaver::Finish(const absl::StatusOr<Answer>& answer) {
  marked_.reset();
  last_answer_ = answer;
  for (Responder& responder : std::exchange(waiting_, {})) Send(answer, std::move(responder));
}

void PartSaver::Open(bool of_mark, Responder responder) {
  if (!of_mark || !marked_ || Is(Stage::kWriting) || Is(Stage::kClosing))
    return Send(MarkIsGone(), std::move(responder));
  waiting_.push_back(std::move(responder));
  if (Is(Stage::kOpen)) return Opened(true);
  if (std::exchange(marked_->stage, Stage::kOpening) == Stage::kOpening) return;
  background_([this, &loop = loop_, token = lifetime_.token(), marked = *marked_]() mutable {
    const bool whole = marked.arena->FinishMark(marked.mark);
    loop.Post([this, token = std::move(token), whole] {
      if (token.alive()) Opened(whole);
    });
  });
}

void PartSaver::Opened(bool whole) {
  absl::StatusOr<Answer> answer = OthersWereLoaded();
  if (whole) {
    marked_->stage = Stage::kOpen;
    answer = Answer{.control = Encode(ExportPartReply{marked_->arena->AsideSteps()})};
    CloseIfNothingIsFetched();
  } else {
    Close();
  }
  for (Responder& responder : std::exchange(waiting_, {})) Send(answer, std::move(responder));
}

void PartSaver::Fetch(bool of_mark, uint64_t first, uint64_t bytes, Responder responder) {
  if (!of_mark || !Is(Stage::kOpen)) return Send(MarkIsGone(), std::move(responder));
  const Arena& arena = *marked_->arena;
  const uint64_t all = ValueBytes(arena.model()) + SlotBytes(arena.model());
  if (bytes > kMostFetchedBytes || first > all || bytes > all - first)
    return responder.Fail(absl::InvalidArgumentError(
        absl::StrCat(bytes, " bytes from byte ", first, " on of a part of ", all,
                     " bytes were asked for; accepted: ", kMostFetchedBytes, " at once, and none beyond its end")));
  if (Observe(marked_->arena->header().mark) != marked_->mark) {
    Close();
    return responder.Fail(OthersWereLoaded());
  }
  CloseIfNothingIsFetched();
  auto piece = std::make_shared<const std::vector<std::byte>>(CopyAside(arena, first, bytes));
  Send(Answer{.bulk = {*piece}, .keep_alive = piece}, std::move(responder));
}

void PartSaver::CloseIfNothingIsFetched() {
  if (close_timer_) loop_.CancelTimer(*close_timer_);
  close_timer_ = loop_.CallAt(loop_.Now() + kFetchPatience, [this] {
    close_timer_.reset();
    LogWarning("the chief has fetched nothing of its checkpoint's part for ", absl::FormatDuration(kFetchPatience),
               ": its memory is freed");
    Close();
  });
}

// In the background: to give a large model's pages back takes a while.
void PartSaver::Close() {
  if (close_timer_) loop_.CancelTimer(*std::exchange(close_timer_, std::nullopt));
  marked_->stage = Stage::kClosing;
  background_([this, &loop = loop_, token = lifetime_.token(), arena = marked_->arena]() mutable {
    arena->DiscardAside();
    loop.Post([this, token = std::move(token)] {
      if (token.alive()) marked_.reset();
    });
  });
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
