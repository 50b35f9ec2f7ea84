#include "muster/store/server/ask_loop.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "muster/base/mutex.h"

namespace muster {
namespace {

struct Answer {
  Mutex mutex;
  CondVar changed;
  std::optional<std::string> text ABSL_GUARDED_BY(mutex);
};

}  // namespace

absl::StatusOr<std::string> AskLoop(EventLoop& loop, std::function<std::string()> question, absl::Duration patience) {
  const auto answer = std::make_shared<Answer>();  // freed by the last user
  loop.Post([answer, question = std::move(question)] {
    std::string text = question();
    MutexLock lock(answer->mutex);
    answer->text = std::move(text);
    answer->changed.NotifyAll();
  });
  const absl::Time give_up = absl::Now() + patience;
  MutexLock lock(answer->mutex);
  while (!answer->text && absl::Now() < give_up) answer->changed.WaitFor(answer->mutex, give_up - absl::Now());
  if (!answer->text)
    return absl::UnavailableError(absl::StrCat("busy: no answer within ", absl::FormatDuration(patience)));
  return *std::move(answer->text);
}

}  // namespace muster
