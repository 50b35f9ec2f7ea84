#include "apps/muster/experiment/shown_states.h"

#include <cstdio>

#include "apps/muster/experiment/shown_log.h"
#include "muster/base/status_macros.h"
#include "muster/launch/task_log/shown_line.h"

namespace muster {

absl::StatusOr<ShownStates> ShownStates::Begin(const OpenedHome& opened, const RunRecord& run) {
  ASSIGN_OR_RETURN(const size_t width, WidthOfNames(*opened.registry, run));
  ShownStates shown(run.id, OpenLog(opened, run), width);
  shown.reader_->StartAtLast(0);
  RETURN_IF_ERROR(shown.Show());
  return shown;
}

absl::Status ShownStates::Show() {
  RETURN_IF_ERROR(reader_->ReadMore([this](const LogLineRecord& line) {
    if (line.kind != LogKind::kState && line.kind != LogKind::kMuster) return;
    std::printf("%s\n", ShownLine(NameOfLine(id_, line), width_, line, false).c_str());
  }));
  std::fflush(stdout);
  return absl::OkStatus();
}

}  // namespace muster
