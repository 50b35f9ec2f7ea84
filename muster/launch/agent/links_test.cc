// Both ends of the protocol between a supervisor and an agent, each with the other: muster/sim/agents does the same
// with random faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/launch/agent/agent_link.h"
#include "muster/launch/agent/supervisor_link.h"
#include "muster/launch/testing/noted_links.h"

namespace muster::links_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const TaskId kTask{"worker", 0};
const std::string kAgentId(16, 'a');

ByteSpan Bytes(std::string_view text) { return AsBytes(text.data(), text.size()); }

class LinksTest : public testing::Test {
 protected:
  LinksTest() {
    host_.record.agent_id = kAgentId;
    host_.record.answered = now_;
    MakeAgent();
    MakeSupervisor(1);
  }

  void MakeAgent() {
    agent_ = std::make_unique<SupervisorLink>(SupervisorLinkOptions{.job = "job"}, host_.record, host_, host_);
    agent_->Resume();
  }
  void MakeSupervisor(uint64_t number, char id = 's', AgentProgress progress = {}) {
    supervisor_ = std::make_unique<AgentLink>(
        AgentLinkOptions{
            .job = "job", .supervisor = number, .supervisor_id = std::string(16, id), .progress = std::move(progress)},
        events_, now_);
  }

  void Connect() {
    supervisor_->OnStream(now_);
    stream_ = agent_->OnStream(now_);
    Exchange();
  }
  void Cut() {
    supervisor_->OnStreamEnd();
    agent_->OnStreamEnd(stream_);
  }
  // Returns whether there was something.
  bool ToAgent() {
    bool any = false;
    for (std::string frame; !(frame = supervisor_->NextFrame(now_)).empty(); any = true)
      EXPECT_EQ(agent_->OnBytes(now_, stream_, Bytes(frame)), absl::OkStatus());
    return any;
  }
  bool ToSupervisor() {
    bool any = false;
    for (std::string frame; !(frame = agent_->NextFrame(now_, stream_)).empty(); any = true)
      EXPECT_EQ(supervisor_->OnBytes(now_, Bytes(frame)), absl::OkStatus());
    return any;
  }
  void Exchange() {
    while (ToAgent() || ToSupervisor()) {
    }
  }
  void Pass(absl::Duration time, bool to_agent = true, bool to_supervisor = true) {
    for (absl::Duration passed; passed < time; passed += absl::Milliseconds(250)) {
      now_ += absl::Milliseconds(250);
      supervisor_->OnNumberRead(now_);
      supervisor_->OnTime(now_);
      agent_->OnTime(now_);
      if (to_agent) ToAgent();
      if (to_supervisor) ToSupervisor();
    }
  }
  CommandId Launch(const std::string& program = "a") {
    return *supervisor_->Launch(LaunchEntry::Of({.task = kTask, .arguments = {program}}));
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  NotedHost host_;
  NotedEvents events_;
  std::unique_ptr<SupervisorLink> agent_;
  std::unique_ptr<AgentLink> supervisor_;
  SupervisorLink::StreamId stream_{};
};

TEST_F(LinksTest, InputIsGivenOnceAndNeverByANextLife) {
  Connect();
  const CommandId launch = Launch();
  Exchange();
  agent_->SendStarted(launch, kTask, 7);
  host_.launches = {{launch, kTask, 7}};
  Exchange();
  host_.Taken();
  ASSERT_TRUE(supervisor_->Input(launch, "abc").ok());
  Exchange();
  Cut();
  ASSERT_TRUE(supervisor_->Input(launch, "").ok());
  Connect();
  EXPECT_THAT(host_.Taken(), ElementsAre("input 1.1 3", "input 1.1 0"));
  Pass(absl::Seconds(1));
  EXPECT_THAT(host_.record.open, IsEmpty());
  // The agent dies with an input in its journal that it may have written.
  host_.record.open.push_back({.command = {1, 4}, .kind = EntryKind::kInput, .task = {}, .body = ""});
  host_.record.taken_in = 4;
  host_.record.life = 2;
  Cut();
  MakeAgent();
  EXPECT_THAT(host_.Taken(), IsEmpty());
  EXPECT_THAT(host_.record.open, IsEmpty());
}

TEST_F(LinksTest, CommandsAreExecutedAndAnswered) {
  Connect();
  EXPECT_THAT(events_.Taken(), ElementsAre("attached to life 1 with 0"));
  EXPECT_THAT(host_.Taken(), ElementsAre("drop reservations"));
  const CommandId reserve = *supervisor_->Reserve({.task = kTask, .ports = {0, 0}});
  const CommandId launch = Launch();
  EXPECT_TRUE(supervisor_->WriteHosts("worker:0 h:1\n").ok());
  Exchange();
  EXPECT_THAT(host_.Taken(), ElementsAre("reserve 1.1 2", "launch 1.2 a", "hosts worker:0 h:1\n"));
  EXPECT_EQ(host_.record.taken_in, 3u);
  EXPECT_EQ(host_.record.open.size(), 2u);  // without an acknowledged answer
  agent_->SendReserved(reserve, {"h:1"});
  agent_->SendStarted(launch, kTask, 7);
  agent_->SendUsage({});
  agent_->SendUsage({.launches = {{.launch = launch}}});
  agent_->SendNote("a line");
  agent_->SendOutput(launch, OutputStream::kStdout, 0, "hello");
  Exchange();
  EXPECT_THAT(events_.Taken(), ElementsAre("usage 1", "reserved 1.1 h:1", "started 1.2 worker:0 7", "a line"));
  EXPECT_EQ(events_.output, "hello");
  EXPECT_TRUE(supervisor_->End(launch, EndMode::kGently).ok());
  Exchange();
  EXPECT_THAT(host_.Taken(), ElementsAre("end 1.2"));
  EXPECT_THAT(host_.record.open, IsEmpty());
  agent_->SendExited(launch, kTask, {.code = 3}, {.out = 5});
  EXPECT_TRUE(supervisor_->Stop().ok());
  Pass(absl::Seconds(1));
  EXPECT_THAT(events_.Taken(), ElementsAre("exit 1.2 3"));
  EXPECT_THAT(host_.Taken(), ElementsAre("stop", "forget 1.2"));
  EXPECT_FALSE(agent_->stopped());
  agent_->SendStopped(4);
  Pass(absl::Seconds(1));
  EXPECT_THAT(events_.Taken(), ElementsAre("stopped 4"));
  EXPECT_TRUE(agent_->stopped());
  EXPECT_FALSE(supervisor_->Launch(LaunchEntry::Of({.task = kTask, .arguments = {"a"}})).ok());
}

TEST_F(LinksTest, AnotherAgentInItsPlaceIsNoticed) {
  Connect();
  const CommandId launch = Launch();
  Exchange();
  agent_->SendStarted(launch, kTask, 7);
  Exchange();
  Cut();
  EXPECT_FALSE(supervisor_->replaced());
  host_.record.agent_id = std::string(16, 'b');
  MakeAgent();
  supervisor_->OnStream(now_);
  stream_ = agent_->OnStream(now_);
  ToAgent();
  EXPECT_FALSE(supervisor_->OnBytes(now_, Bytes(agent_->NextFrame(now_, stream_))).ok());
  EXPECT_TRUE(supervisor_->replaced());
}

// Both directions, with each entry at each possible place of the cut: sent and lost, or taken in and its
// acknowledgement lost.
TEST_F(LinksTest, AnEntryTakesEffectOnceWhereverTheStreamIsCut) {
  Connect();
  host_.Taken();
  events_.Taken();
  uint64_t number = 0;
  for (const bool arrives : {false, true}) {
    const CommandId launch = Launch();
    const std::string frame = supervisor_->NextFrame(now_);
    if (arrives) {
      EXPECT_EQ(agent_->OnBytes(now_, stream_, Bytes(frame)), absl::OkStatus());
    }
    Cut();
    Connect();
    EXPECT_THAT(host_.Taken(), ElementsAre(absl::StrCat("launch 1.", ++number, " a")));
    agent_->SendStarted(launch, kTask, 7);
    const std::string answer = agent_->NextFrame(now_, stream_);
    if (arrives) {
      EXPECT_TRUE(supervisor_->OnBytes(now_, Bytes(answer)).ok());
    }
    host_.launches = {{launch, kTask, 7}};
    Cut();
    events_.Taken();
    const bool known = arrives;
    Connect();
    const std::string started = absl::StrCat("started 1.", number, " worker:0 7");
    if (known) {
      EXPECT_THAT(events_.Taken(), ElementsAre("attached to life 1 with 1"));
    } else {
      EXPECT_THAT(events_.Taken(), ElementsAre("attached to life 1 with 1", started));
    }
    agent_->SendExited(launch, kTask, {}, {});
    Pass(absl::Seconds(1));
    host_.launches.clear();
    host_.Taken();
    events_.Taken();
  }
}

TEST_F(LinksTest, AFrameThatIsCutInTheMiddleIsSentAgain) {
  Connect();
  host_.Taken();
  Launch("program");
  const std::string frame = supervisor_->NextFrame(now_);
  for (size_t at = 0; at < frame.size(); ++at) {
    EXPECT_TRUE(agent_->OnBytes(now_, stream_, Bytes(std::string_view(frame).substr(0, at))).ok());
    Cut();
    EXPECT_THAT(host_.Taken(), IsEmpty());
    supervisor_->OnStream(now_);
    stream_ = agent_->OnStream(now_);
    ToAgent();
    ToSupervisor();
    supervisor_->NextFrame(now_);  // the launch again
  }
  Cut();
  Connect();
  EXPECT_THAT(host_.Taken(), ElementsAre("launch 1.1 program"));
}

TEST_F(LinksTest, WhatBreaksTheProtocolClosesTheStream) {
  Connect();
  Launch();
  FrameStream other(FrameDirection::kToAgent, now_, std::nullopt);
  const auto refusal = [&](std::string frame) {
    const auto stream = agent_->OnStream(now_);
    const std::string why(agent_->OnBytes(now_, stream, Bytes(frame)).message());
    EXPECT_FALSE(agent_->Wants(stream));
    return why;
  };
  EXPECT_THAT(refusal(other.Make(now_, {}, EntryKind::kStop, 1, "")), HasSubstr("hasn't attached first"));
  const std::string attach = *EncodeEntry(AttachEntry{.job = "job",
                                                      .supervisor = 1,
                                                      .supervisor_id = std::string(16, 's'),
                                                      .agent_id = kAgentId,
                                                      .life = 1,
                                                      .seen = 9});
  EXPECT_THAT(
      refusal(FrameStream(FrameDirection::kToAgent, now_, std::nullopt).Make(now_, {}, EntryKind::kAttach, 0, attach)),
      HasSubstr("only 0 were sent"));
  // On the attached stream: a gap, and an answer to what was never sent.
  const auto next = [&](uint64_t acknowledged, uint64_t entry, uint64_t echo) {
    AgentFrame frame{.number = 2, .kind = EntryKind::kStop, .envelope = {entry, acknowledged, 1, echo}};
    Cut();
    supervisor_->OnStream(now_);
    stream_ = agent_->OnStream(now_);
    EXPECT_TRUE(agent_->OnBytes(now_, stream_, Bytes(supervisor_->NextFrame(now_))).ok());
    agent_->NextFrame(now_, stream_);
    return std::string(
        agent_->OnBytes(now_, stream_, Bytes(EncodeAgentFrame(frame, FrameDirection::kToAgent, nullptr))).message());
  };
  EXPECT_THAT(next(0, 5, 0), HasSubstr("command 5 comes after command 0"));
  EXPECT_THAT(next(1, 1, 0), HasSubstr("is acknowledged, but only 0"));
  EXPECT_THAT(next(0, 1, ~uint64_t{0} / 4), HasSubstr("answers one that wasn't sent"));
}

TEST_F(LinksTest, AnOlderSupervisorIsRefusedAndChangesNothing) {
  MakeSupervisor(2);
  Connect();
  host_.Taken();
  auto newer = std::move(supervisor_);
  const auto stream = stream_;
  for (const auto& [number, id] : std::map<uint64_t, char>{{1, 's'}, {2, 'x'}}) {
    MakeSupervisor(number, id);
    (void)supervisor_->Stop();
    Connect();
    ASSERT_TRUE(supervisor_->refused().has_value());
    EXPECT_EQ(supervisor_->refused()->reason, Refusal::kNewerSupervisor);
    EXPECT_EQ(supervisor_->refused()->supervisor, 2u);
    EXPECT_FALSE(agent_->Wants(stream_));
    EXPECT_FALSE(supervisor_->Launch(LaunchEntry::Of({.task = kTask, .arguments = {"a"}})).ok());
  }
  EXPECT_THAT(host_.Taken(), IsEmpty());
  supervisor_ = std::move(newer);
  stream_ = stream;
  Launch();
  Exchange();
  EXPECT_THAT(host_.Taken(), ElementsAre("launch 2.1 a"));
}

TEST_F(LinksTest, ASupervisorOfAnotherJobIsRefused) {
  supervisor_ = std::make_unique<AgentLink>(
      AgentLinkOptions{.job = "other", .supervisor = 9, .supervisor_id = std::string(16, 's')}, events_, now_);
  Connect();
  EXPECT_EQ(supervisor_->refused()->reason, Refusal::kOtherJob);
  EXPECT_EQ(host_.record.supervisor, 0u);
}

TEST_F(LinksTest, TheNextSupervisorLearnsWhatRunsAndTakesNoByteTwice) {
  Connect();
  const CommandId launch = Launch();
  Exchange();
  agent_->SendStarted(launch, kTask, 7);
  host_.launches = {{launch, kTask, 7}};
  agent_->SendOutput(launch, OutputStream::kStdout, 0, "abc");
  agent_->SendOutput(launch, OutputStream::kStdout, 3, "def");
  ToSupervisor();  // nothing is acknowledged
  events_.Taken();
  host_.Taken();
  Cut();
  MakeSupervisor(2, 't', {.outputs = {{launch, {.out = 4}}}});  // "abcd" is in the log
  events_.output = "abcd";
  Connect();
  EXPECT_THAT(events_.Taken(), ElementsAre("attached to life 1 with 1", "started 1.1 worker:0 7"));
  EXPECT_EQ(events_.output, "abcdef");
  EXPECT_EQ(*supervisor_->End(launch, EndMode::kAtOnce), (CommandId{2, 1}));
  Exchange();
  EXPECT_THAT(host_.Taken(), ElementsAre("drop reservations", "end 1.1"));
}

TEST_F(LinksTest, TheNextLifeFinishesWhatWasTakenIn) {
  Connect();
  const CommandId first = Launch("first");
  Launch("second");
  (void)supervisor_->Reserve({.task = kTask, .ports = {0}});
  Exchange();
  host_.Taken();
  events_.Taken();
  agent_->SendStarted(first, kTask, 7);
  agent_->SendOutput(first, OutputStream::kStdout, 0, "abc");  // dies with the agent
  host_.launches = {{first, kTask, 7}};
  Cut();
  ++host_.record.life;
  MakeAgent();
  EXPECT_THAT(host_.Taken(), ElementsAre("reserve 1.3 1"));
  Connect();
  EXPECT_THAT(events_.Taken(), ElementsAre("attached to life 2 with 2", "started 1.1 worker:0 7",
                                           "failed 1.2 the agent died before it had started the task"));
  agent_->SendOutput(first, OutputStream::kStdout, 3, "def");
  agent_->SendExited(first, kTask, {}, {.out = 8});
  Exchange();
  EXPECT_THAT(events_.Taken(), ElementsAre("lost 3 at 0", "lost 2 at 6", "exit 1.1 0"));
  agent_->SendExited(first, kTask, {}, {.out = 8});  // as a further life may do
  Exchange();
  EXPECT_THAT(events_.Taken(), IsEmpty());
}

TEST_F(LinksTest, AHostIsSuspectAndThenLost) {
  Connect();
  events_.Taken();
  Pass(absl::Minutes(2));
  EXPECT_THAT(events_.Taken(), IsEmpty());
  Pass(absl::Milliseconds(2750), true, false);
  EXPECT_FALSE(supervisor_->suspect());
  Pass(absl::Seconds(1), true, false);
  EXPECT_TRUE(supervisor_->suspect());
  ToSupervisor();
  EXPECT_THAT(events_.Taken(), ElementsAre("suspect", "heard again"));
  Pass(absl::Milliseconds(34750), true, false);
  EXPECT_FALSE(supervisor_->lost());
  Pass(absl::Milliseconds(500), true, false);
  EXPECT_TRUE(supervisor_->lost());
  EXPECT_EQ(supervisor_->deadline(), absl::InfiniteFuture());
}

// A link that is dead in one direction, either of them: whatever the agent still hears, it has ended its tasks when the
// supervisor takes it for lost.
TEST_F(LinksTest, OnlyAnAnswerRenewsTheGrace) {
  for (const bool hears : {false, true}) {
    host_.record = {.agent_id = kAgentId, .answered = now_};
    MakeAgent();
    MakeSupervisor(1);
    Connect();
    Pass(absl::Seconds(40));
    host_.Taken();
    EXPECT_FALSE(agent_->ending());
    Pass(absl::Seconds(29), hears, false);
    EXPECT_FALSE(agent_->ending());
    Pass(absl::Milliseconds(1500), hears, false);
    EXPECT_TRUE(agent_->ending());
    EXPECT_THAT(host_.Taken(), ElementsAre("end all"));
    EXPECT_FALSE(supervisor_->lost());
    Pass(absl::Milliseconds(3250), hears, false);
    EXPECT_THAT(host_.Taken(), ElementsAre("kill all"));
    EXPECT_FALSE(supervisor_->lost());
    Pass(absl::Milliseconds(1500), hears, false);
    EXPECT_TRUE(supervisor_->lost());
    MakeSupervisor(5);
    Connect();
    EXPECT_EQ(supervisor_->refused()->reason, Refusal::kEnding);
  }
}

TEST_F(LinksTest, TheGraceOfAnAgentThatWaitsLongForItsFirstSupervisorBeginsWithThat) {
  host_.record.answered = now_ + absl::Minutes(10);  // as AgentServer has it with AgentLimits::first
  MakeAgent();
  Pass(absl::Minutes(5));
  EXPECT_FALSE(agent_->ending());
  MakeSupervisor(1);
  Connect();
  EXPECT_EQ(host_.record.answered, now_);
  Pass(absl::Seconds(31), /*to_agent=*/false);
  EXPECT_TRUE(agent_->ending());
}

TEST_F(LinksTest, ASupervisorThatHasntReadItsNumberWritesNothing) {
  Connect();
  Launch();
  now_ += absl::Milliseconds(1001);
  EXPECT_EQ(supervisor_->NextFrame(now_), "");
  EXPECT_GT(supervisor_->deadline(), now_);  // it doesn't spin
  supervisor_->OnNumberRead(now_);
  EXPECT_NE(supervisor_->NextFrame(now_), "");
}

// What it is asked for was sent before its supervisor took it for lost; the task may run elsewhere by now.
TEST_F(LinksTest, AnAgentThatWasStoppedForLongerThanItsGraceTakesNoOldCommand) {
  Connect();
  host_.Taken();
  Launch();
  const std::string frame = supervisor_->NextFrame(now_);
  now_ += absl::Seconds(31);
  EXPECT_EQ(agent_->OnBytes(now_, stream_, Bytes(frame)), absl::OkStatus());
  EXPECT_TRUE(agent_->ending());
  EXPECT_THAT(host_.Taken(), ElementsAre("end all"));
}

// A stream that only ended would look like an agent that can't start.
TEST_F(LinksTest, WhoAttachesAfterTheGraceIsToldThatTheAgentEnds) {
  Connect();
  Cut();
  now_ += absl::Seconds(31);
  supervisor_->OnNumberRead(now_);
  Connect();
  EXPECT_TRUE(agent_->ending());
  ASSERT_TRUE(supervisor_->refused().has_value());
  EXPECT_EQ(supervisor_->refused()->reason, Refusal::kEnding);
}

TEST_F(LinksTest, AnAgentThatNobodyReadsPausesItsTasks) {
  Connect();
  const CommandId launch = Launch();
  Exchange();
  agent_->SendStarted(launch, kTask, 7);
  uint64_t position = 0;
  for (; agent_->may_send_output(); position += 100'000)
    agent_->SendOutput(launch, OutputStream::kStdout, position, std::string(100'000, 'x'));
  EXPECT_GE(position, 4'100'000u);
  EXPECT_LT(position, 4'300'000u);
  size_t on_its_way = 0;
  std::vector<std::string> frames;
  for (std::string frame; !(frame = agent_->NextFrame(now_, stream_)).empty();) {
    on_its_way += frame.size();
    frames.push_back(std::move(frame));
  }
  EXPECT_LE(on_its_way, size_t{1} << 20);
  for (const std::string& frame : frames) EXPECT_EQ(supervisor_->OnBytes(now_, Bytes(frame)), absl::OkStatus());
  Exchange();  // acknowledges without a clock: every 256 KiB
  EXPECT_TRUE(agent_->may_send_output());
  EXPECT_EQ(events_.output.size(), position);
}

TEST_F(LinksTest, PausedOutputIsKeptWhileOtherEventsAreTold) {
  Connect();
  const CommandId launch = Launch();
  const CommandId other = *supervisor_->Launch(LaunchEntry::Of({.task = {"worker", 1}, .arguments = {"b"}}));
  Exchange();
  agent_->SendStarted(launch, kTask, 7);
  Exchange();
  EXPECT_TRUE(supervisor_->PauseOutput(true).ok());
  events_.Taken();
  const uint64_t seen = supervisor_->progress().seen;
  agent_->SendOutput(launch, OutputStream::kStdout, 0, "kept ");
  agent_->SendStarted(other, {"worker", 1}, 8);
  Exchange();
  EXPECT_THAT(events_.Taken(), ElementsAre("started 1.2 worker:1 8"));
  EXPECT_EQ(events_.output, "");
  EXPECT_EQ(supervisor_->progress().seen, seen) << "nothing behind the output is acknowledged";

  // All of it comes again on the next stream, and once only to the user.
  host_.launches = {{launch, kTask, 7}, {other, {"worker", 1}, 8}};
  Cut();
  Connect();
  events_.Taken();
  EXPECT_TRUE(supervisor_->PauseOutput(false).ok());
  EXPECT_EQ(events_.output, "kept ");
  EXPECT_EQ(supervisor_->progress().seen, seen + 2);
  EXPECT_TRUE(supervisor_->PauseOutput(true).ok());
  agent_->SendOutput(launch, OutputStream::kStdout, 5, "until its end");
  agent_->SendExited(launch, kTask, {}, {.out = 18});
  Exchange();
  EXPECT_EQ(events_.output, "kept until its end");
  EXPECT_THAT(events_.Taken(), ElementsAre("exit 1.1 0"));
  EXPECT_EQ(supervisor_->progress().seen, seen + 4);
}

TEST_F(LinksTest, NoMoreOutputIsKeptThanAnAgentMaySend) {
  Connect();
  const CommandId launch = Launch();
  Exchange();
  agent_->SendStarted(launch, kTask, 7);
  Exchange();
  EXPECT_TRUE(supervisor_->PauseOutput(true).ok());
  for (uint64_t position = 0; agent_->may_send_output(); position += 100'000)
    agent_->SendOutput(launch, OutputStream::kStdout, position, std::string(100'000, 'x'));
  Pass(absl::Seconds(20));
  EXPECT_FALSE(supervisor_->suspect()) << "the agent is heard";
  EXPECT_EQ(events_.output, "");
  EXPECT_FALSE(agent_->may_send_output());
  // Another task's life from its start to its end isn't held up behind all that.
  const CommandId other = *supervisor_->Launch(LaunchEntry::Of({.task = {"worker", 1}, .arguments = {"b"}}));
  Exchange();
  events_.Taken();
  agent_->SendStarted(other, {"worker", 1}, 8);
  agent_->SendOutput(other, OutputStream::kStdout, 0, "its own");
  agent_->SendExited(other, {"worker", 1}, {}, {.out = 7});
  Pass(absl::Seconds(1));
  EXPECT_THAT(events_.Taken(), ElementsAre("started 1.2 worker:1 8", "exit 1.2 0"));
  EXPECT_EQ(events_.output, "its own");
  EXPECT_TRUE(supervisor_->PauseOutput(false).ok());
  Pass(absl::Seconds(1));
  EXPECT_TRUE(agent_->may_send_output());
}

TEST_F(LinksTest, ASupervisorHoldsCommandsBack) {
  int sent = 0;
  while (supervisor_->may_send()) {
    Launch(std::string(100'000, 'x'));
    ++sent;
  }
  EXPECT_EQ(sent, 42);
  EXPECT_EQ(supervisor_->Reserve({.task = kTask, .ports = {0}}).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(supervisor_->End({1, 1}, EndMode::kAtOnce).ok());  // to end something is always possible
  Connect();
  Pass(absl::Seconds(1));
  EXPECT_TRUE(supervisor_->may_send());
}

}  // namespace
}  // namespace muster::links_test
