// Ps that don't see the chief's directory: what the chief fetches and writes for them, and what it says.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/checkpoint/checkpoint_reader.h"
#include "muster/checkpoint/manifest.h"
#include "muster/store/checkpoints/checkpoint_part.h"
#include "muster/store/messages/messages.h"
#include "muster/store/service/passing_handler.h"
#include "muster/train/saving/saver.h"
#include "muster/train/testing/saving_job.h"

namespace muster::saver_elsewhere_test {
namespace {

using ::testing::AllOf, ::testing::AnyOf, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Not;
using Job = SavingJob;

// A variable whose part takes several messages: 4.8 MB, with Adam's slots 14.4 MB.
TrainingOptions LargeModel() {
  std::vector<VariableSpec> variables = kSavedVariables;
  variables.push_back({.name = "large", .shape = {1200, 1000}});
  return {.variables = std::move(variables), .rule = kSavedRule};
}

TEST(SaverElsewhereTest, TheChiefWritesTheVeryFilesThatThePsWouldWrite) {
  MemoryFileSystem shared, disk, other;
  for (MemoryFileSystem* const of_ps : {&shared, &other}) {
    MemoryFileSystem& of_chief = of_ps == &shared ? shared : disk;
    Job job(of_chief, 3, LargeModel());
    for (int ps = 0; ps < 3; ++ps) job.MoveToDisk(ps, *of_ps);
    job.Start();
    job.Steps(3);
    const auto saved = job.saver->Save();
    ASSERT_TRUE(saved.ok()) << saved.status();
  }
  EXPECT_FALSE(other.Exists("model"));
  ASSERT_EQ(SavedNames(disk), SavedNames(shared));
  for (const std::string& name : SavedNames(shared))
    if (absl::StrContains(name, ".safetensors")) {
      EXPECT_TRUE(*disk.ReadFile(JoinPath("model", name)) == *shared.ReadFile(JoinPath("model", name))) << name;
    }
  // The manifests differ only by when and by whom the save was made.
  const auto manifest = [](MemoryFileSystem& files) {
    const std::string path = "model/model.ckpt-3.manifest.json";
    return ParseManifest(files.ReadFile(path).value(), path).value();
  };
  Manifest ours = manifest(disk);
  const Manifest theirs = manifest(shared);
  ours.saved_at = theirs.saved_at;
  ours.save_id = theirs.save_id;
  EXPECT_EQ(SerializeManifest(ours), SerializeManifest(theirs));
}

// Has something happen to a ps before it answers a fetch.
class EventfulFetch final : public PassingHandler {
 public:
  EventfulFetch(StoreService& inner, std::function<void(const FetchPartRequest&)> before)
      : PassingHandler(inner), before_(std::move(before)) {}
  void Handle(IncomingRequest& request, std::unique_ptr<BulkTarget> bulk, Responder responder) override {
    FetchPartRequest fetch;
    if (request.method == static_cast<uint16_t>(StoreMethod::kFetchPart) && Decode(request.control, fetch).ok())
      before_(fetch);
    inner_.Handle(request, std::move(bulk), std::move(responder));
  }

 private:
  const std::function<void(const FetchPartRequest&)> before_;
};

TEST(SaverElsewhereTest, APartComesInPiecesOfALimitedSizeAndThePsFreesItsMemoryAfterwards) {
  MemoryFileSystem disk, other;
  Job job(disk, 1, LargeModel());
  uint64_t fetched = 0;
  uint64_t largest = 0;
  job.store.wrap = [&](StoreService& service) {
    return std::make_unique<EventfulFetch>(service, [&](const FetchPartRequest& fetch) {
      fetched += fetch.bytes;
      largest = std::max(largest, fetch.bytes);
    });
  };
  job.MoveToDisk(0, other);
  job.Start();
  job.Steps(1);
  ASSERT_TRUE(job.saver->Save().ok());
  const StoreModel model = job.chief->client->ModelOf(0);
  const uint64_t bytes = ValueBytes(model) + SlotBytes(model);
  EXPECT_EQ(fetched, bytes);
  EXPECT_LE(largest, kMostFetchedBytes);
  EXPECT_GT(largest, kMostFetchedBytes / 2) << "a large tensor isn't cut finer than it must be";
  job.store.Pass(absl::Milliseconds(1));
  EXPECT_EQ(CopyAside(*job.store.service(0).MakeView().arena, 0, bytes), std::vector<std::byte>(bytes));
}

TEST(SaverElsewhereTest, APsThatDiesWhileItsPartIsFetchedLeavesTheOlderCheckpoint) {
  for (const bool comes_back : {true, false}) {
    for (int at = 1; at <= 4; ++at) {
      SCOPED_TRACE(absl::StrCat("at fetch ", at, comes_back ? ", comes back" : ""));
      MemoryFileSystem disk, other;
      Job job(disk, 2, LargeModel());
      int fetches = -1;  // -1: not counted
      job.store.wrap = [&](StoreService& service) {
        return std::make_unique<EventfulFetch>(service, [&](const FetchPartRequest&) {
          if (fetches < 0 || ++fetches != at) return;
          job.store.loop.Post([&] {
            job.store.KillPs(0);
            if (comes_back) job.store.StartPs(0, &other);
          });
        });
      };
      for (int ps = 0; ps < 2; ++ps) job.MoveToDisk(ps, other);
      job.Start();
      job.Steps(1);
      ASSERT_TRUE(job.saver->Save().ok());
      job.Steps(1);
      fetches = 0;
      const auto second = job.saver->Save();
      // On its memory, a ps goes on where it was; the mark is gone, so the chief cuts again.
      EXPECT_EQ(second.ok(), comes_back) << second.status();
      EXPECT_GE(fetches, at);
      const auto latest = OpenLatestCheckpoint(disk, "model");
      ASSERT_TRUE(latest.ok()) << latest.status();
      EXPECT_EQ((*latest)->path(), comes_back ? "model/model.ckpt-2" : "model/model.ckpt-1");
      EXPECT_EQ(SavedNames(disk).size(), comes_back ? 2 * 3 + 1 : 3 + 1) << "nothing of the save that failed is left";
    }
  }
}

TEST(SaverElsewhereTest, AChiefThatDiesWhileItFetchesLeavesTheOlderCheckpointAndPsThatTheNextOneCanCut) {
  for (int64_t changes = 0;; ++changes) {
    SCOPED_TRACE(changes);
    MemoryFileSystem disk, other;
    Job job(disk, 2);
    for (int ps = 0; ps < 2; ++ps) job.MoveToDisk(ps, other);
    job.Start();
    job.Steps(1);
    ASSERT_TRUE(job.saver->Save().ok());
    job.Steps(1);
    disk.Resume();
    disk.StopAfter(changes);
    const bool saved = job.saver->Save().ok();
    disk.Resume();
    const auto latest = OpenLatestCheckpoint(disk, "model");
    ASSERT_TRUE(latest.ok()) << latest.status();
    if (!saved) {
      EXPECT_THAT((*latest)->path(), AnyOf("model/model.ckpt-1", "model/model.ckpt-2"));
    }
    TrainingProcess next(job.store, "chief:0", {.variables = kSavedVariables, .rule = kSavedRule, .files = &disk});
    job.chief->client.reset();
    job.store.Pass(absl::Seconds(11));  // the lease of the dead one
    ASSERT_EQ(next.client->Join(true), absl::OkStatus());
    next.client->Bind(next.algorithm->binding());
    ASSERT_TRUE(next.client->AwaitReady(absl::InfiniteFuture()).ok());
    Saver saver(disk, job.store.loop, *next.client, "model", SaverOptions{});
    const auto again = saver.Save();
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(CheckpointReader::Open(disk, *again).ok());
    if (saved) break;
    ASSERT_LT(changes, 100);
  }
}

TEST(SaverElsewhereTest, WhichPsDoNotSeeTheDirectoryIsSaidOnceAndAgainOnlyIfItChanges) {
  MemoryFileSystem disk, other;
  Job job(disk, 3);
  job.MoveToDisk(1, other);
  job.Start();
  const auto said = [&] {
    ::testing::internal::CaptureStderr();
    SetUpLog("");
    EXPECT_EQ(job.saver->SayWhoSeesTheDirectory(), absl::OkStatus());
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said(),
              AllOf(HasSubstr("ps:1 (ps1:2222) does not see model"), HasSubstr("evaluator"), Not(HasSubstr("ps:0 ("))));
  EXPECT_THAT(SavedNames(disk), IsEmpty()) << "the announcement is removed";
  EXPECT_EQ(said(), "");
  job.MoveToDisk(2, other);
  ASSERT_EQ(job.chief->client->Join(true), absl::OkStatus());
  EXPECT_THAT(said(), HasSubstr("ps:1 (ps1:2222), ps:2 (ps2:2222) do not see model"));
  for (const int ps : {1, 2}) job.MoveToDisk(ps, disk);
  ASSERT_EQ(job.chief->client->Join(true), absl::OkStatus());
  EXPECT_THAT(said(), HasSubstr("Every ps sees model now"));
  EXPECT_EQ(said(), "");
  disk.SetReadOnly(true);
  EXPECT_EQ(said(), "") << "the first save says what is wrong";
}

}  // namespace
}  // namespace muster::saver_elsewhere_test
