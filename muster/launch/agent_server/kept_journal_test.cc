#include "muster/launch/agent_server/kept_journal.h"

#include <gmock/gmock.h>

#include <map>
#include <string>

#include "muster/launch/testing/kept_values.h"

namespace muster::kept_journal_test {
namespace {

using ::testing::IsEmpty;

class KeptJournalTest : public ::testing::Test {
 protected:
  std::map<std::string, KeptThing> kept_;
  absl::Time answered_ = absl::InfinitePast();
  KeptJournal journal_{{.keep = [this](const ValueChanges& changes) { KeepIn(kept_, changes); },
                        .answered = [this](absl::Time answered) { answered_ = answered; }}};
};

TEST_F(KeptJournalTest, ANewOneIsEmpty) {
  const AgentRecord record = KeptJournal::Read(kept_);
  EXPECT_EQ(record.supervisor, 0U);
  EXPECT_EQ(record.taken_in, 0U);
  EXPECT_THAT(record.open, IsEmpty());
  EXPECT_FALSE(record.stopping);
}

TEST_F(KeptJournalTest, IsReadAsItWasWritten) {
  journal_.SetSupervisor(3, std::string(kIdBytes, '\0'));
  for (uint64_t number = 1; number <= 12; ++number)
    journal_.TakeIn({.command = {3, number}, .kind = EntryKind::kReserve, .task = {"ps", 1}, .body = "body"});
  journal_.Close({3, 2});
  journal_.SetAnswered(absl::FromUnixSeconds(5));
  const AgentRecord record = KeptJournal::Read(kept_);
  EXPECT_EQ(record.supervisor, 3U);
  EXPECT_EQ(record.supervisor_id, std::string(kIdBytes, '\0'));
  EXPECT_EQ(record.taken_in, 12U);
  ASSERT_EQ(record.open.size(), 11U);
  EXPECT_EQ(record.open[1].command.number, 3U) << "in their order, and not as texts";
  EXPECT_EQ(record.open[10].command.number, 12U);
  EXPECT_EQ(record.open[0].kind, EntryKind::kReserve);
  EXPECT_EQ(record.open[0].task, (TaskId{"ps", 1}));
  EXPECT_EQ(record.open[0].body, "body");
  EXPECT_FALSE(record.stopping);
  EXPECT_EQ(answered_, absl::FromUnixSeconds(5));
}

TEST_F(KeptJournalTest, ANewSupervisorCountsFromTheBeginning) {
  journal_.SetSupervisor(1, std::string(kIdBytes, 'a'));
  journal_.TakeIn({.command = {1, 1}, .kind = EntryKind::kStop});
  journal_.SetSupervisor(2, std::string(kIdBytes, 'b'));
  const AgentRecord record = KeptJournal::Read(kept_);
  EXPECT_EQ(record.supervisor, 2U);
  EXPECT_EQ(record.taken_in, 0U);
  EXPECT_EQ(record.open.size(), 1U) << "the older one's command is finished all the same";
  EXPECT_TRUE(record.stopping);
}

}  // namespace
}  // namespace muster::kept_journal_test
