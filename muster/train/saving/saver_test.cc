#include "muster/train/saving/saver.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/files/forwarding_file_system.h"
#include "muster/base/log.h"
#include "muster/base/testing/sanitizer_stride.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/checkpoint/checkpoint_reader.h"
#include "muster/train/testing/saving_job.h"
#include "muster/train/testing/training_process.h"

namespace muster::saver_test {
namespace {

using ::testing::AllOf, ::testing::Contains, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

using Job = SavingJob;

// Returns the values after ten steps and five more, when nothing is saved or restored.
std::vector<std::vector<float>> Undisturbed() {
  MemoryFileSystem disk;
  Job job(disk, 1);
  job.Start();
  job.Steps(15);
  return job.Values();
}

struct Layout {
  int num_ps;
  Placement placement = Placement::kRoundRobin;
  Partitioning partitioning;
};
constexpr Partitioning kInFive = {.kind = Partitioning::Kind::kFixed, .shards = 5};
constexpr Partitioning kByBytes = {.kind = Partitioning::Kind::kMaxBytes, .max_shard_bytes = 50000};
const Layout kLayouts[] = {
    {1}, {3}, {2, Placement::kGreedyBySize, kInFive}, {9, Placement::kGreedySorted}, {1, {}, kByBytes}};

TEST(SaverTest, AnotherRuleGoesOnWithTheValuesAndSlotsOfItsOwn) {
  const RuleSpec momentum = {.kind = RuleKind::kMomentum, .learning_rate = 0.01, .momentum = 0.9};
  MemoryFileSystem disk, elsewhere;
  Job before(disk, 1);
  before.Start();
  before.Steps(5);
  ASSERT_TRUE(before.saver->Save().ok());
  Job after(disk, 2, {.variables = kSavedVariables, .rule = momentum});
  const auto step = after.Restore().value();
  EXPECT_EQ(step, 5);
  EXPECT_EQ(after.Values(), before.Values());
  Job anew(elsewhere, 1, {.variables = kSavedVariables, .rule = momentum});
  for (size_t i = 0; i < kSavedVariables.size(); ++i) anew.chief->source.values(i) = before.Values()[i];
  anew.chief->StartAsChief();
  after.Steps(3);
  anew.Steps(3);
  EXPECT_EQ(after.Values(), anew.Values());
}

TEST(SaverTest, RestoresOntoAnyNumberOfPsAndAnyPartitioning) {
  const auto undisturbed = Undisturbed();
  for (const Layout& from : kLayouts) {
    for (const Layout& to : kLayouts) {
      SCOPED_TRACE(absl::StrCat("from ", from.num_ps, " ps to ", to.num_ps));
      const auto options = [](const Layout& layout) {
        return TrainingOptions{.variables = kSavedVariables,
                               .rule = kSavedRule,
                               .placement = layout.placement,
                               .partitioning = layout.partitioning};
      };
      MemoryFileSystem disk;
      Job first(disk, from.num_ps, options(from));
      first.Start();
      first.Steps(10);
      ASSERT_EQ(*first.saver->Save(), "model/model.ckpt-10");
      Job second(disk, to.num_ps, options(to));
      const auto step = second.Restore().value();
      EXPECT_EQ(*step, 10);
      EXPECT_EQ(second.saver->last_checkpoint(), "model/model.ckpt-10");
      EXPECT_EQ(second.Values(), first.Values());
      // Slots and step counters are the same: the next steps are those that would have come.
      second.Steps(5);
      EXPECT_EQ(second.Values(), undisturbed);
      EXPECT_EQ(*second.chief->client->ReadGlobalStep(), 15);
    }
  }
}

TEST(SaverTest, NoCheckpointIsNone) {
  MemoryFileSystem disk;
  Job job(disk, 1);
  const auto step = job.Restore().value();
  EXPECT_FALSE(step.has_value());
  EXPECT_EQ(job.saver->last_checkpoint(), "");
}

TEST(SaverTest, AnotherRuleStartsWithItsOwnSlots) {
  MemoryFileSystem disk;
  Job first(disk, 2);
  first.Start();
  first.Steps(4);
  ASSERT_TRUE(first.saver->Save().ok());
  Job second(disk, 1, {.variables = kSavedVariables, .rule = {.kind = RuleKind::kMomentum}});
  ASSERT_EQ(**second.Restore(), 4);
  EXPECT_EQ(second.Values(), first.Values());
  second.Steps(1);
}

TEST(SaverTest, APsThatDoesNotSeeTheDirectoryIsSavedThroughTheChief) {
  const auto undisturbed = Undisturbed();
  for (const std::vector<int>& elsewhere : std::vector<std::vector<int>>{{0}, {1}, {0, 1, 2}}) {
    MemoryFileSystem disk;
    MemoryFileSystem other;
    Job first(disk, 3);
    for (int ps : elsewhere) first.MoveToDisk(ps, other);
    first.Start();
    first.Steps(10);
    ASSERT_TRUE(first.saver->Save().ok());
    EXPECT_FALSE(other.Exists("model"));
    EXPECT_EQ(SavedNames(disk).size(), 3 + 2) << "three parts, the manifest, the state";
    // Nor must the ps see the directory to be restored.
    Job second(disk, 2);
    second.MoveToDisk(1, other);
    ASSERT_EQ(**second.Restore(), 10);
    second.Steps(5);
    EXPECT_EQ(second.Values(), undisturbed);
  }
}

// A disk that notes every file that is made, renamed or removed.
class NotingDisk final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForWriting(const std::string& path) override {
    changed.push_back(path);
    return ForwardingFileSystem::OpenForWriting(path);
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override {
    changed.push_back(path);
    return ForwardingFileSystem::CreateFile(path);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    changed.push_back(to);
    return ForwardingFileSystem::Rename(from, to);
  }
  absl::Status Remove(const std::string& path) override {
    changed.push_back(path);
    return ForwardingFileSystem::Remove(path);
  }

  std::vector<std::string> changed;
};

TEST(SaverTest, APsWithAModelDirWritesNowhereElseAndTheChiefDoesIt) {
  MemoryFileSystem disk;
  NotingDisk of_ps(disk);
  Job job(disk, 2);
  for (const std::string model_dir : {"configured", "model"}) {
    for (int ps = 0; ps < 2; ++ps) {
      job.store.KillPs(ps);
      job.store.StartPs(ps, &of_ps, model_dir);
    }
    if (model_dir == "configured") job.Start();
    job.Steps(1);
    const auto path = job.saver->Save();
    ASSERT_TRUE(path.ok()) << path.status();
    EXPECT_TRUE(CheckpointReader::Open(disk, *path).ok());
    EXPECT_EQ(of_ps.changed.empty(), model_dir == "configured") << absl::StrJoin(of_ps.changed, ", ");
  }
}

TEST(SaverTest, AnAnnouncementThatAnotherJobLeftBehindFoolsNobody) {
  // A job on a disk that only the ps sees now was killed in its first save.
  MemoryFileSystem other;
  {
    Job dead(other, 3);  // another incarnation than the next chief
    dead.Start();
    other.Resume();
    other.StopAfter(6);
    ASSERT_FALSE(dead.saver->Save().ok());
    other.Resume();
    ASSERT_THAT(SavedNames(other), Contains(HasSubstr(".save-")))
        << "the test needs an announcement that was left behind";
  }
  MemoryFileSystem disk;
  Job job(disk, 2);
  job.MoveToDisk(1, other);
  job.Start();
  const auto saved = job.saver->Save();
  EXPECT_TRUE(saved.ok()) << saved.status();
}

TEST(SaverTest, SavingAStepAgainNeverTouchesThePartsOfTheFirst) {
  MemoryFileSystem disk;
  Job first(disk, 2);
  first.Start();
  first.Steps(3);
  ASSERT_TRUE(first.saver->Save().ok());
  const std::vector<std::string> before = SavedNames(disk);
  // The next job saves the step that it has restored, and is killed at every possible point: the first checkpoint stays
  // whole.
  for (int64_t changes = 0;; ++changes) {
    Job next(disk, 2);
    ASSERT_EQ(**next.Restore(), 3);
    next.Steps(1);  // with values that differ from those of the first
    disk.Resume();
    disk.StopAfter(changes);
    const bool saved = next.saver->Save().ok();
    disk.Resume();
    const auto latest = LatestCheckpoint(disk, "model");
    ASSERT_TRUE(latest.ok()) << "killed after " << changes << " changes: " << latest.status();
    const auto names = SavedNames(disk);
    const bool old = std::includes(names.begin(), names.end(), before.begin(), before.end());
    const bool replaced = next.saver->last_checkpoint() == "model/model.ckpt-3" || !old;
    if (replaced || saved) break;
    ASSERT_LT(changes, 100);
  }
}

TEST(SaverTest, AFullDiskIsAnErrorAndTheOldCheckpointStays) {
  MemoryFileSystem disk;
  Job job(disk, 2);
  job.Start();
  job.Steps(1);
  ASSERT_TRUE(job.saver->Save().ok());
  job.Steps(1);
  bool saved = false;
  int failures = 0;
  for (uint64_t room = 0; !saved; room += 20000) {
    disk.FillAfter(room);
    const auto path = job.saver->Save();
    saved = path.ok();
    disk.Unfill();
    if (saved) break;
    ++failures;
    EXPECT_TRUE(absl::IsResourceExhausted(path.status())) << path.status();
    EXPECT_THAT(path.status().message(), HasSubstr("model"));
    ASSERT_EQ(**LatestCheckpoint(disk, "model"), "model/model.ckpt-1") << "with room for " << room;
    EXPECT_EQ(SavedNames(disk).size(), 3 + 1) << "what was written is removed: " << room;
    EXPECT_TRUE(job.saver->IsWorthARetry(path.status()));
    EXPECT_EQ(job.saver->failures(), failures);
    EXPECT_EQ(job.saver->last_failure(), path.status().message());
    EXPECT_EQ(job.saver->last_checkpoint(), "model/model.ckpt-1");
  }
  EXPECT_GT(failures, 20);
  EXPECT_EQ(**LatestCheckpoint(disk, "model"), "model/model.ckpt-2");
  EXPECT_EQ(SavedNames(disk).size(), 2 * 3 + 1);
  EXPECT_EQ(job.saver->last_failure(), "");
}

TEST(SaverTest, AReadOnlyDiskIsAnErrorThatNamesTheDirectory) {
  MemoryFileSystem disk;
  Job job(disk, 1);
  job.Start();
  ASSERT_TRUE(job.saver->Save().ok());
  disk.SetReadOnly(true);
  const auto path = job.saver->Save();
  EXPECT_TRUE(absl::IsPermissionDenied(path.status())) << path.status();
  EXPECT_THAT(path.status().message(), HasSubstr("model"));
  EXPECT_EQ(**LatestCheckpoint(disk, "model"), "model/model.ckpt-0");
  EXPECT_TRUE(job.saver->IsWorthARetry(path.status())) << "it could be written before";
  Saver fresh(disk, job.store.loop, *job.chief->client, "model", SaverOptions{});
  EXPECT_FALSE(fresh.IsWorthARetry(fresh.Save().status())) << "a first save";
}

// Codes of the system that mean something else to a session: Aborted (a stale handle) is a lost model.
TEST(SaverTest, TheSystemsCodesDoNotReachTheSession) {
  MemoryFileSystem disk, other;
  for (const bool ps_sees : {true, false}) {
    Job job(disk, 1);
    if (!ps_sees) job.MoveToDisk(0, other);
    job.Start();
    ASSERT_TRUE(job.saver->Save().ok());
    for (int64_t changes = 0;; ++changes) {
      job.Steps(1);
      disk.Resume();
      disk.StopAfter(changes);  // Aborted
      const auto path = job.saver->Save();
      disk.Resume();
      if (path.ok()) break;
      EXPECT_TRUE(absl::IsResourceExhausted(path.status())) << changes << ": " << path.status();
      ASSERT_LT(changes, 100);
    }
  }
}

TEST(SaverTest, AModelDirThatWasDeletedIsMadeAgainWithAWarning) {
  MemoryFileSystem disk;
  Job job(disk, 2);
  job.Start();
  ASSERT_TRUE(job.saver->Save().ok());
  EXPECT_TRUE(job.saver->LastIsThere());
  ASSERT_TRUE(disk.RemoveTree("model").ok());
  EXPECT_FALSE(job.saver->LastIsThere());
  job.Steps(1);
  ::testing::internal::CaptureStderr();
  SetUpLog("");
  ASSERT_EQ(*job.saver->Save(), "model/model.ckpt-1");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("model is gone, with the checkpoints in it"));
  EXPECT_EQ(**LatestCheckpoint(disk, "model"), "model/model.ckpt-1");
  EXPECT_TRUE(disk.Exists("model/checkpoint"));
}

// A disk on which another checkpoint's parts take the place of the verified ones before they are read.
class SwappingDisk final : public ForwardingFileSystem {
 public:
  SwappingDisk(MemoryFileSystem& inner, std::string from, std::string to)
      : ForwardingFileSystem(inner), from_(std::move(from)), to_(std::move(to)) {}
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenForReading(const std::string& path) override {
    auto file = ForwardingFileSystem::OpenForReading(path);
    if (!file.ok() || path != to_) return file;
    return std::make_unique<Swapping>(*std::move(file), inner_, from_, to_);
  }

 private:
  class Swapping final : public ReadableFile {
   public:
    Swapping(std::unique_ptr<ReadableFile> file, FileSystem& files, std::string from, std::string to)
        : file_(std::move(file)), files_(files), from_(std::move(from)), to_(std::move(to)) {}
    absl::Status ReadAt(uint64_t offset, MutableByteSpan into) const override {
      const absl::Status read = file_->ReadAt(offset, into);
      const bool verified = offset == 0 && into.size() == *file_->Size();
      if (verified) {
        EXPECT_EQ(files_.Rename(from_, to_), absl::OkStatus());
      }
      return read;
    }
    absl::StatusOr<uint64_t> Size() const override { return file_->Size(); }

   private:
    const std::unique_ptr<ReadableFile> file_;
    FileSystem& files_;
    const std::string from_;
    const std::string to_;
  };

  const std::string from_;
  const std::string to_;
};

TEST(SaverTest, WhatWasVerifiedIsWhatIsRestored) {
  MemoryFileSystem disk;
  Job first(disk, 1);
  first.Start();
  ASSERT_TRUE(first.saver->Save().ok());
  const auto saved = first.Values();
  first.Steps(1);
  ASSERT_TRUE(first.saver->Save().ok());
  for (const std::string file : {"model.ckpt-1.manifest.json", "checkpoint"})
    ASSERT_TRUE(disk.Remove(JoinPath("model", file)).ok());
  // Another file of the same layout, whole by itself, takes the part's name once it was verified.
  SwappingDisk swapping(disk, "model/model.ckpt-1.ps-0-of-1.safetensors", "model/model.ckpt-0.ps-0-of-1.safetensors");
  Job second(disk, 1);
  Saver saver(swapping, second.store.loop, *second.chief->client, "model", SaverOptions{});
  ASSERT_EQ(second.chief->client->Join(true), absl::OkStatus());
  second.chief->client->Bind(second.chief->algorithm->binding());
  ASSERT_EQ(**saver.RestoreLatest(), 0);
  EXPECT_FALSE(disk.Exists("model/model.ckpt-1.ps-0-of-1.safetensors")) << "the test needs the swap";
  ASSERT_EQ(second.chief->client->Pull(PullWhat::kEverything), absl::OkStatus());
  EXPECT_EQ(second.Values(), saved);
}

TEST(SaverTest, ACheckpointOfAnotherModelIsRefusedWithTheFirstVariable) {
  MemoryFileSystem disk;
  Job first(disk, 1);
  first.Start();
  ASSERT_TRUE(first.saver->Save().ok());
  const auto restore = [&](const std::vector<VariableSpec>& variables) {
    Job job(disk, 1, {.variables = variables, .rule = kSavedRule});
    const auto step = job.Restore();
    EXPECT_TRUE(absl::IsFailedPrecondition(step.status())) << step.status();
    EXPECT_FALSE(job.chief->client->AwaitReady(job.store.loop.Now() + absl::Seconds(1)).ok());
    return std::string(step.status().message());
  };
  std::vector<VariableSpec> other = kSavedVariables;
  other[1].shape = {8};
  EXPECT_THAT(restore(other),
              AllOf(HasSubstr("model/model.ckpt-0"), HasSubstr("'b' is float32[7] there and float32[8] here")));
  other = kSavedVariables;
  other[2].name = "factor";
  EXPECT_THAT(restore(other), HasSubstr("it has no variable 'factor'"));
  other = kSavedVariables;
  other.erase(other.begin() + 1);
  EXPECT_THAT(restore(other), HasSubstr("it has a variable 'b' that this model lacks"));
}

TEST(SaverTest, ADamagedPartIsNamedAndNeverTakenForNoCheckpoint) {
  MemoryFileSystem disk;
  Job first(disk, 2);
  first.Start();
  ASSERT_TRUE(first.saver->Save().ok());
  std::string part;
  for (const std::string& name : SavedNames(disk))
    if (absl::StrContains(name, ".ps-1-of-2")) part = JoinPath("model", name);
  ASSERT_EQ(disk.Corrupt(part, *disk.FileSize(part) - 1, 0x10), absl::OkStatus());
  {
    Job second(disk, 1);
    const auto step = second.Restore();
    EXPECT_TRUE(absl::IsDataLoss(step.status())) << step.status();
    EXPECT_THAT(step.status().message(), HasSubstr(part));
  }
  ASSERT_EQ(disk.Remove(part), absl::OkStatus());
  Job third(disk, 1);
  const auto step = third.Restore();
  EXPECT_TRUE(absl::IsDataLoss(step.status())) << step.status();
  EXPECT_THAT(step.status().message(), HasSubstr(part));
}

TEST(SaverTest, SaveablesComeBackAsTheyWere) {
  MemoryFileSystem disk;
  const std::string state("\0\xff{\"", 4);
  Job first(disk, 1);
  first.Start();
  first.saver->Add({"random", [&] { return state; }, {}});
  first.saver->Add({"position", [] { return std::string(); }, {}});
  ASSERT_TRUE(first.saver->Save().ok());
  Job second(disk, 1);
  std::vector<std::string> restored;
  const auto keep = [&](const std::string& bytes) {
    restored.push_back(bytes);
    return absl::OkStatus();
  };
  second.saver->Add({"position", [] { return "x"; }, keep});
  second.saver->Add({"random", [] { return "x"; }, keep});
  second.saver->Add({"not saved then", [] { return "x"; }, keep});
  ASSERT_TRUE(second.Restore().ok());
  EXPECT_THAT(restored, ElementsAre("", state));
  Job third(disk, 1);
  third.saver->Add(
      {"random", [] { return "x"; }, [](const std::string&) { return absl::InvalidArgumentError("odd"); }});
  EXPECT_EQ(third.Restore().status(), absl::InvalidArgumentError("odd"));
}

TEST(SaverTest, AChiefThatLostItsLeaseCommitsNothing) {
  MemoryFileSystem disk;
  MemoryFileSystem other;
  for (const bool ps0_sees : {true, false}) {
    Job job(disk, 2);
    if (!ps0_sees) job.MoveToDisk(0, other);
    job.Start();
    job.store.Pass(absl::Seconds(11));  // without heartbeats
    auto heir = job.store.Client("worker:0");
    ASSERT_EQ(heir->Join(true), absl::OkStatus());
    const auto path = job.saver->Save();
    EXPECT_TRUE(absl::IsFailedPrecondition(path.status())) << path.status();
    EXPECT_THAT(*ListCheckpoints(disk, "model"), IsEmpty());
  }
}

// A disk on which something happens before a manifest is renamed.
class EventfulDisk final : public ForwardingFileSystem {
 public:
  EventfulDisk(FileSystem& inner, std::function<void()> before)
      : ForwardingFileSystem(inner), before_(std::move(before)) {}
  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (to.ends_with(".manifest.json")) before_();
    return ForwardingFileSystem::Rename(from, to);
  }

 private:
  const std::function<void()> before_;
};

TEST(SaverTest, AChiefThatWasReplacedInItsCommitSaysSo) {
  MemoryFileSystem disk;
  MemoryFileSystem other;
  for (const bool replaced : {true, false}) {
    Job job(disk, 2);
    job.MoveToDisk(0, other);
    job.Start();
    std::unique_ptr<StoreClient> heir;
    EventfulDisk eventful(disk, [&] {
      if (replaced) {
        job.store.Pass(absl::Seconds(11));  // without heartbeats
        heir = job.store.Client("worker:0");
        ASSERT_EQ(heir->Join(true), absl::OkStatus());
      }
      ASSERT_EQ(RemoveLeftovers(disk, "model"), absl::OkStatus());
    });
    Saver saver(eventful, job.store.loop, *job.chief->client, "model", SaverOptions{});
    const absl::Status saved = saver.Save().status();
    EXPECT_EQ(saved.code(), replaced ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kResourceExhausted)
        << saved;
    EXPECT_THAT(*ListCheckpoints(disk, "model"), IsEmpty());
  }
}

TEST(SaverTest, TrainingGoesOnWhileAPartIsWritten) {
  MemoryFileSystem disk;
  Job job(disk, 1);
  job.Start();
  auto worker = std::make_unique<TrainingProcess>(job.store, "worker:0",
                                                  TrainingOptions{.variables = kSavedVariables, .rule = kSavedRule});
  ASSERT_EQ(worker->client->Join(false), absl::OkStatus());
  worker->client->Bind(worker->algorithm->binding());
  ASSERT_TRUE(worker->client->AwaitReady(absl::InfiniteFuture()).ok());
  // The worker's steps fall between the snapshot and the end of the save. They are made one after the other: a worker's
  // step can't begin within another.
  int steps = 0;
  const std::function<void()> step = [&] {
    worker->Step();
    if (++steps < 5) job.store.loop.Post([&step] { step(); });
  };
  job.store.loop.Post([&step] { step(); });
  const auto path = job.saver->Save();
  job.store.loop.RunUntil([&] { return steps == 5; }, absl::InfiniteFuture());
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*job.chief->client->ReadGlobalStep(), 5);
  EXPECT_TRUE(CheckpointReader::Open(disk, *path).ok());
}

// Whichever request of a save is cut, doubled or delayed, the checkpoint is complete.
TEST(SaverTest, ASaveSurvivesFaultsOfTheWay) {
  for (const FaultKind kind : {FaultKind::kCutReply, FaultKind::kCutRequest, FaultKind::kDelayReply, FaultKind::kRefuse,
                               FaultKind::kDuplicateRequest}) {
    for (const bool ps1_elsewhere : {false, true}) {
      for (uint64_t first = 1;; first += kSanitizerStride) {
        SCOPED_TRACE(
            absl::StrCat("fault ", static_cast<int>(kind), " at request ", first, " elsewhere ", ps1_elsewhere));
        MemoryFileSystem disk;
        MemoryFileSystem other;
        FaultScript script;
        Job job(disk, 2, {.variables = kSavedVariables, .rule = kSavedRule, .faults = &script});
        if (ps1_elsewhere) job.MoveToDisk(1, other);
        job.Start();
        job.Steps(2);
        script.Add({.kind = kind, .first = first, .delay = absl::Seconds(1)});
        const auto path = job.saver->Save();
        job.store.Pass(absl::Seconds(5));
        if (script.met() == 0) break;
        ASSERT_TRUE(path.ok()) << path.status();
        Job next(disk, 1);
        const auto step = next.Restore().value();
        EXPECT_EQ(*step, 2);
        EXPECT_EQ(next.Values(), job.Values());
      }
    }
  }
}

}  // namespace
}  // namespace muster::saver_test
