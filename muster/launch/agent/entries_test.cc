#include "muster/launch/agent/entries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "muster/transport/messages/codec.h"

namespace muster::entries_test {
namespace {

using ::testing::HasSubstr;

const TaskId kTask{"worker", 3};
const CommandId kCommand{2, 17};

LaunchEntry SomeLaunch() {
  ProcessSpec process{.task = kTask,
                      .address = "h:1",
                      .node = "b",
                      .arguments = {"/bin/sh", "", "-c\nécho"},
                      .environment = {{"A", "1\n2"}, {"BASH_FUNC_f%%", "() { :; }"}, {"EMPTY", ""}},
                      .directory = "/w",
                      .limits = {.cpus = 1.5, .mem_bytes = int64_t{1} << 40},
                      .mounts = {{"/h", "/p", true}, {"/i", "/q", false}},
                      .release_ports = true,
                      .takes_input = true};
  return LaunchEntry::Of(process);
}

TEST(EntriesTest, AProcessArrivesAsItWasSent) {
  const auto decoded = DecodeEntry<LaunchEntry>(*EncodeEntry(SomeLaunch()));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const ProcessSpec process = decoded->ToSpec();
  EXPECT_EQ(process.task, kTask);
  EXPECT_EQ(process.address, "h:1");
  EXPECT_EQ(process.node, "b");
  EXPECT_THAT(process.arguments, ::testing::ElementsAre("/bin/sh", "", "-c\nécho"));
  ASSERT_EQ(process.environment.size(), 3u);
  EXPECT_EQ(process.environment[1].first, "BASH_FUNC_f%%");
  EXPECT_EQ(process.environment[0].second, "1\n2");
  EXPECT_EQ(process.directory, "/w");
  EXPECT_EQ(process.limits.cpus, 1.5);
  EXPECT_EQ(process.limits.mem_bytes, int64_t{1} << 40);
  ASSERT_EQ(process.mounts.size(), 2u);
  EXPECT_TRUE(process.mounts[0].writable);
  EXPECT_EQ(process.mounts[1].path, "/q");
  EXPECT_TRUE(process.release_ports);
  EXPECT_TRUE(process.takes_input);
  const ProcessSpec without = LaunchEntry::Of({.task = kTask, .arguments = {"a"}}).ToSpec();
  EXPECT_FALSE(without.limits.cpus.has_value() || without.limits.mem_bytes.has_value());
}

TEST(EntriesTest, EachKindHasItsOwnNumber) {
  std::set<EntryKind> kinds;
  ForEachEntry([&]<typename Entry>() { kinds.insert(Entry::kKind); });
  EXPECT_EQ(kinds.size(), kEntryKinds - 1u);  // all but kNone
  EXPECT_EQ(kinds.count(EntryKind::kNone), 0u);
  EXPECT_LT(static_cast<uint16_t>(*kinds.rbegin()), kEntryKinds);
}

TEST(EntriesTest, AFailureArrivesAsAStatus) {
  const auto entry =
      DecodeEntry<FailedEntry>(*EncodeEntry(FailedEntry::Of(kCommand, kTask, absl::NotFoundError("no x"))));
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ(entry->ToStatus(), absl::NotFoundError("no x"));
}

// Each is refused at both ends: a sender sends nothing that its receiver must refuse for ever.
template <typename Entry>
void ExpectRefused(const Entry& entry, const std::string& why) {
  EXPECT_THAT(std::string(EncodeEntry(entry).status().message()), HasSubstr(why));
  EXPECT_THAT(std::string(DecodeEntry<Entry>(Encode(entry)).status().message()), HasSubstr(why));
}

TEST(EntriesTest, WhatNoProcessCanHaveIsRefused) {
  const auto with = [](const auto& change) {
    LaunchEntry entry = SomeLaunch();
    change(entry);
    return entry;
  };
  using E = LaunchEntry;
  ExpectRefused(with([](E& e) { e.arguments.clear(); }), "has no program");
  ExpectRefused(with([](E& e) { e.arguments[1] = std::string("a\0b", 3); }), "an argument has a zero byte");
  ExpectRefused(with([](E& e) { e.environment[0].name = "A=B"; }), "has a '='");
  ExpectRefused(with([](E& e) { e.environment[0].value = std::string(1, '\0'); }), "value of a variable has a zero");
  ExpectRefused(with([](E& e) { e.directory = "relative"; }), "isn't absolute");
  ExpectRefused(with([](E& e) { e.mounts[0].host = ""; }), "isn't absolute");
  ExpectRefused(with([](E& e) { e.cpus = std::numeric_limits<double>::quiet_NaN(); }), "limit of processors");
  ExpectRefused(with([](E& e) { e.mem_bytes = -1; }), "negative");
  ExpectRefused(with([](E& e) { e.task.index = -1; }), "out of range");
  ExpectRefused(with([](E& e) { e.task.job = "a/b"; }), "");
  ExpectRefused(with([](E& e) { e.environment[0].value = std::string(300 << 10, 'x'); }), "accepted: up to 262144");
}

TEST(EntriesTest, TheUseOfGpusArrivesWithWhatIsUnknown) {
  for (const GpusInUse& gpus :
       {GpusInUse{.count = 2, .percent = 12.5, .mem_bytes = 0, .mem_total = 1 << 30}, GpusInUse{.count = 1},
        GpusInUse{.count = 1, .mem_bytes = 7, .mem_total = 8}, GpusInUse{}}) {
    LaunchUsage usage{.launch = kCommand};
    usage.SetGpus(gpus);
    const auto entry = DecodeEntry<UsageEntry>(*EncodeEntry(UsageEntry{{usage}}));
    ASSERT_EQ(entry.status(), absl::OkStatus());
    EXPECT_EQ(entry->launches[0].InUse(), gpus);
  }
}

TEST(EntriesTest, OtherEntriesHaveLimits) {
  ExpectRefused(AttachEntry{"job", 0, std::string(16, 'a')}, "number is 0");
  ExpectRefused(AttachEntry{"job", 1, "short"}, "id has another length");
  ExpectRefused(AttachEntry{std::string(257, 'j'), 1, std::string(16, 'a')}, "accepted: up to 256");
  ExpectRefused(AttachedEntry{std::string(16, 'a'), 0}, "life is 0");
  ExpectRefused(AttachedEntry{std::string(16, 'a'), 1, 0, 1, {{kCommand, kTask, -1}}}, "negative");
  ExpectRefused(ReserveEntry{kTask, std::vector<uint32_t>(65)}, "accepted: 1 to 64");
  ExpectRefused(ReserveEntry{kTask, {0}, "", 40000, 70000}, "beyond 65535");
  ExpectRefused(ReserveEntry{kTask, {0}, "", 40000, 39999}, "no first or no last");
  ExpectRefused(ReserveEntry{kTask, {0}, "", 0, 40000}, "no first or no last");
  ExpectRefused(ReserveEntry{kTask, {0}, "", 0, 0, std::vector<uint32_t>(65)}, "shall not have");
  ExpectRefused(ReserveEntry{kTask, {0}, "", 0, 0, {65536}}, "beyond 65535");
  ExpectRefused(ReservedEntry{kCommand, {std::string(301, 'h')}}, "accepted: up to 300");
  ExpectRefused(StartedEntry{kCommand, kTask, -1}, "negative");
  ExpectRefused(StartedEntry{{0, 1}, kTask, 1}, "has a zero");
  ExpectRefused(FailedEntry{kCommand, kTask, 17}, "doesn't exist");
  ExpectRefused(ExitedEntry{kCommand, kTask, {.code = 256}}, "no process ends");
  ExpectRefused(ExitedEntry{kCommand, kTask, {.signal = -9}}, "no process ends");
  ExpectRefused(OutputEntry{kCommand, OutputStream::kStderr, 0, ""}, "without bytes");
  ExpectRefused(OutputEntry{kCommand, OutputStream::kStderr, 0, std::string((64 << 10) + 1, 'x')}, "up to 65536");
  ExpectRefused(OutputEntry{kCommand, OutputStream::kStderr, ~uint64_t{0}, "x"}, "can't be");
  ExpectRefused(InputEntry{kCommand, std::string((64 << 10) + 1, 'x')}, "up to 65536");
  ExpectRefused(InputEntry{{1, 0}, ""}, "has a zero");
  ExpectRefused(UsageEntry{{{kCommand, -1}}}, "negative");
  ExpectRefused(NoteEntry{std::string(1025, 'n')}, "up to 1024");
}

TEST(EntriesTest, UnknownValuesAreRefused) {
  EXPECT_THAT(
      std::string(DecodeEntry<EndEntry>(Encode(EndEntry{kCommand, static_cast<EndMode>(2)})).status().message()),
      HasSubstr("unknown way to end"));
  EXPECT_FALSE(DecodeEntry<RefusedEntry>(Encode(RefusedEntry{static_cast<Refusal>(3)})).ok());
  EXPECT_FALSE(DecodeEntry<OutputEntry>(Encode(OutputEntry{kCommand, static_cast<OutputStream>(2), 0, "x"})).ok());
  EXPECT_FALSE(DecodeEntry<NoteEntry>("\x0a\xff").ok());
}

}  // namespace
}  // namespace muster::entries_test
