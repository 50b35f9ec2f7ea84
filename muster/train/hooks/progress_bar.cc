#include "muster/train/hooks/progress_bar.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/base/log.h"
#include "muster/base/wrong_configuration.h"

namespace muster {
namespace {

constexpr int kUsualWidth = 80;
constexpr int kLongestBar = 40;
constexpr int kShortestBar = 5;
// Returns to the beginning of the line and clears it.
constexpr char kClearLine[] = "\r\x1b[K";

int WidthOfStandardError() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualWidth;
}

// "0:47", "1:02:03".
std::string TimeText(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(seconds));
  if (whole < 3600) return absl::StrFormat("%d:%02d", whole / 60, whole % 60);
  return absl::StrFormat("%d:%02d:%02d", whole / 3600, whole / 60 % 60, whole % 60);
}

class ProgressBarHook final : public SessionHook {
 public:
  explicit ProgressBarHook(const ProgressBarOptions& options)
      : options_(options),
        terminal_(options.terminal ? *options.terminal : StandardError()),
        last_step_(options.last_step) {}
  ~ProgressBarHook() override { EndLine(); }

  absl::Status Begin() override {
    if (options_.num_steps.has_value() == options_.last_step.has_value())
      return WrongOptionError("ProgressBar: exactly one of num_steps and last_step must be given");
    return absl::OkStatus();
  }
  absl::Status AfterCreateSession(const SessionContext& session) override {
    if (!last_step_) last_step_ = session.global_step + *options_.num_steps;
    began_at_ = session.global_step;
    began_ = session.now;
    return absl::OkStatus();
  }
  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    now_ = context.session().now;
    step_ = values.global_step;
    loss_ = values.loss;
    if (now_ - shown_ < (terminal_.is_terminal ? options_.redraw : options_.log_every)) return absl::OkStatus();
    Show();
    return absl::OkStatus();
  }
  absl::Status End(const SessionContext&) override {
    if (step_ >= 0 && terminal_.is_terminal) Show();
    EndLine();
    return absl::OkStatus();
  }

 private:
  void Show() {
    shown_ = now_;
    const double part = *last_step_ > 0 ? static_cast<double>(step_) / static_cast<double>(*last_step_) : 1;
    const double done = std::clamp(part, 0.0, 1.0);
    const std::string percent = absl::StrFormat("%3d%%", static_cast<int>(100 * done));
    const std::string rest = Numbers();
    if (!terminal_.is_terminal) return LogInfo(percent, " ", rest);
    // A line as wide as the terminal would wrap into the next one.
    const int room = terminal_.width() - 1;
    const int bar = std::min(kLongestBar, room - static_cast<int>(percent.size() + rest.size()) - 4);
    std::string line = absl::StrCat(percent, " ", bar < kShortestBar ? "" : absl::StrCat(Bar(done, bar), " "), rest);
    line.resize(std::min(line.size(), static_cast<size_t>(std::max(room, 0))));
    // The cursor stays at the beginning of the line: on a terminal a log line (base/log.cc) clears from there on.
    terminal_.write(absl::StrCat(kClearLine, line, "\r"));
    line_open_ = true;
  }
  static std::string Bar(double done, int width) {
    const int full = static_cast<int>(done * width);
    std::string bar(static_cast<size_t>(full), '=');
    if (full < width) bar += '>';
    bar.resize(static_cast<size_t>(width), ' ');
    return absl::StrCat("[", bar, "]");
  }
  std::string Numbers() const {
    std::string text = absl::StrCat(step_, "/", *last_step_);
    const double seconds = absl::ToDoubleSeconds(now_ - began_);
    const auto steps = static_cast<double>(step_ - began_at_);
    if (seconds > 0 && steps > 0) {
      const auto left = static_cast<double>(std::max<int64_t>(*last_step_ - step_, 0));
      absl::StrAppend(&text, absl::StrFormat("  %.1f steps/s", steps / seconds), "  ETA ",
                      TimeText(left * seconds / steps));
    }
    return absl::StrCat(text, absl::StrFormat("  loss %.4g", loss_));
  }
  void EndLine() {
    if (line_open_) terminal_.write("\n");
    line_open_ = false;
  }

  const ProgressBarOptions options_;
  const Terminal terminal_;
  std::optional<int64_t> last_step_;
  int64_t began_at_ = 0;
  absl::Time began_;
  absl::Time shown_ = absl::InfinitePast();
  absl::Time now_;
  int64_t step_ = -1;  // no run yet
  double loss_ = 0;
  bool line_open_ = false;
};

}  // namespace

Terminal StandardError() {
  return {.is_terminal = isatty(STDERR_FILENO) == 1, .width = WidthOfStandardError, .write = [](std::string_view text) {
            std::fwrite(text.data(), 1, text.size(), stderr);
            std::fflush(stderr);
          }};
}

std::shared_ptr<SessionHook> ProgressBar(const ProgressBarOptions& options) {
  return std::make_shared<ProgressBarHook>(options);
}

}  // namespace muster
