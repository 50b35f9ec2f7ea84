// A Backend that starts nothing and notes what it is asked for: the test says what comes of it. Not thread-safe;
// test-only.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/launch/backends/backend.h"
#include "muster/launch/task/task_environment.h"

namespace muster {

// What it was asked for, in lines; and what it says when it is asked.
struct Script {
  std::vector<std::string> lines;
  std::string move_to;  // answers the next Move
  bool can_give_up = true;
  std::vector<TaskId> left_behind;                   // answers LeaveOut
  std::map<TaskId, MoveWish> elsewhere;              // that it was allowed
  std::map<TaskId, std::vector<std::string>> lives;  // of each launch

  std::vector<std::string> Taken() { return std::exchange(lines, {}); }
};

class ScriptedBackend final : public Backend {
 public:
  explicit ScriptedBackend(Script& script) : script_(script) {}

  absl::Status Start() override { return absl::OkStatus(); }
  int Stop() override { return 0; }
  void Reserve(const TaskId& task, const std::vector<uint16_t>&) override { Note("reserve ", task); }
  void AllowElsewhere(const TaskId& task, const MoveWish& wish) override { script_.elsewhere[task] = wish; }
  std::vector<TaskId> LeaveOut(const std::string& host, const std::string& why) override {
    script_.lines.push_back(absl::StrCat("leave out ", host, ": ", why));
    return script_.left_behind;
  }
  void Launch(const ProcessSpec& process) override {
    script_.lines.push_back(absl::StrCat("launch ", process.task.ToString(), " at ", process.address));
    script_.lives[process.task].push_back(process.environment.back().second);
    EXPECT_EQ(process.environment.back().first, kTaskLifeVariable);
  }
  void End(const TaskId& task, EndMode mode) override { Note(mode == EndMode::kGently ? "end " : "kill ", task); }
  void PauseOutput(bool) override {}
  void Input(const TaskId&, std::string_view) override {}
  std::string Move(const TaskId&, const MoveWish&) override { return std::exchange(script_.move_to, ""); }
  bool CanGiveUp(const TaskId&, const MoveWish&) const override { return script_.can_give_up; }
  void GiveUp(const TaskId& task) override { Note("give up ", task); }
  void WriteHosts(const std::string& file) override { script_.lines.push_back("hosts " + file); }
  absl::Time deadline() const override { return absl::InfiniteFuture(); }
  void OnTime() override {}

 private:
  void Note(const char* what, const TaskId& task) { script_.lines.push_back(absl::StrCat(what, task.ToString())); }

  Script& script_;
};

}  // namespace muster
