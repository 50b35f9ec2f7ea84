// The engine for hosts that the user's own commands have got and reach (docs/command_engine.md). Before a host is
// reached again, `state` is asked whether it is still the run's: one that isn't is given up at once. Used by the loop's
// thread.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "muster/base/clock.h"
#include "muster/launch/engines/command/command_run.h"
#include "muster/launch/engines/contact/contact_engine.h"
#include "muster/launch/engines/engine.h"
#include "muster/launch/hosts/command_setting.h"
#include "muster/launch/system/fd_loop.h"

namespace muster {

class CommandEngine final : public Engine {
 public:
  // `contact`: its way, folder and patience are set here. Borrows `loop` and `clock`.
  CommandEngine(const CommandHosts& hosts, ContactOptions contact, FdLoop& loop, const Clock& clock);

  // NotFound or PermissionDenied: the file of muster can't be read.
  absl::Status Start(EngineEvents& events) override;
  void Connect(const std::string& host) override;
  std::string LastWords(const std::string& host) const override;
  absl::Time deadline() const override;
  void OnTime() override;

 private:
  struct Question {
    std::string host;
    std::vector<std::string> lines;
    std::unique_ptr<CommandRun> run;
    bool answered = false;
  };

  void Ask(const std::string& host);
  void OnAnswer(Question& question, const CommandEnd& end);

  // Constant after construction.
  const CommandHosts hosts_;
  const std::vector<std::string> environment_;
  FdLoop& loop_;
  const Clock& clock_;

  EngineEvents* events_ = nullptr;  // from Start on
  ContactEngine contact_;
  std::set<std::string> reached_;    // or tried
  std::deque<std::string> waiting_;  // for a question
  std::vector<std::unique_ptr<Question>> questions_;
};

// Returns why a host isn't the run's any more, as `state` has ended and what it has printed say; "": it may be.
std::string WhyGone(const CommandTemplate& state, const ExitStatus& status, const std::vector<std::string>& lines);

}  // namespace muster
