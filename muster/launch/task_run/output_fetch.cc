#include "muster/launch/task_run/output_fetch.h"

#include <sys/stat.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/project/decimal_size.h"

namespace muster {
namespace {

constexpr size_t kMostErrorText = 4096;  // of a task's stderr

}  // namespace

std::vector<std::string> OutputFetch::Run() {
  std::vector<std::string> lines;
  for (const OutputFetchOrder::From& from : order_.hosts) lines.push_back(FetchFrom(from));
  return lines;
}

std::string OutputFetch::FetchFrom(const OutputFetchOrder::From& from) {
  receiver_.emplace(order_.to);
  failed_ = absl::OkStatus();
  ended_ = false;
  stderr_text_.clear();
  task_ = {kSendJob, from.index};
  absl::Status why = tasks_.Launch({{.task = task_,
                                     .arguments = {"muster", "send", from.folder},
                                     .environment = order_.environment,
                                     .takes_input = true}});
  if (why.ok()) {
    GiveInput(task_);
    tasks_.Supervise({.chief = task_, .rule = EndRule::kChiefDecides});
    why = failed_;
    if (why.ok() && !receiver_->done())
      why = absl::UnavailableError(stderr_text_.empty() ? "`muster send` has ended before it had sent all"
                                                        : stderr_text_);
  }
  tasks_.ForgetTasks();
  if (!why.ok())
    return absl::StrCat("the output on ", from.host, " couldn't be brought here (", OneLine(std::string(why.message())),
                        "); it is there in ", from.folder);
  come_.insert(from.host);
  const uint64_t links = receiver_->links();
  return absl::StrCat("output from ", from.host, ": ", receiver_->files(), " new files (",
                      DecimalSize(static_cast<int64_t>(receiver_->bytes())), ")",
                      links > 0 ? absl::StrCat(", without ", links, " symbolic links") : "",
                      stderr_text_.empty() ? "" : absl::StrCat("; left out there: ", OneLine(stderr_text_)));
}

void OutputFetch::OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes) {
  if (stream == OutputStream::kStderr) {
    stderr_text_ += bytes.substr(0, kMostErrorText - std::min(kMostErrorText, stderr_text_.size()));
    return;
  }
  if (ended_) return;
  Let([&] { return receiver_->Take(bytes); });
  GiveInput(task);
}

bool OutputFetch::Work() {
  if (ended_ || !receiver_.has_value() || !receiver_->has_work()) return false;
  Let([&] { return receiver_->Work(); });
  GiveInput(task_);
  return !ended_ && receiver_->has_work();
}

void OutputFetch::Let(absl::FunctionRef<absl::Status()> receive) {
  const mode_t own = umask(order_.umask);
  failed_ = receive();
  umask(own);
}

void OutputFetch::GiveInput(const TaskId& task) {
  if (const std::string output = receiver_->Output(); !output.empty()) tasks_.Input(task, output);
  if (ended_ || (failed_.ok() && !receiver_->done())) return;
  ended_ = true;
  tasks_.Input(task, "");
}

}  // namespace muster
