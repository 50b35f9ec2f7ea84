#include "muster/checkpoint/checkpoint_directory.h"

#include <gmock/gmock.h>

#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/files/memory_file_system.h"
#include "muster/base/log.h"
#include "muster/checkpoint/checkpoint_reader.h"
#include "muster/checkpoint/testing/checkpoint_test_data.h"

namespace muster::checkpoint_directory_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Not;

class CheckpointDirectoryTest : public ::testing::Test {
 protected:
  CheckpointDirectoryTest() { EXPECT_TRUE(files_.CreateDirectory("d").ok()); }

  std::string Latest(const LatestOptions& options = {}) {
    const auto latest = LatestCheckpoint(files_, "d", options);
    if (!latest.ok()) return std::string(latest.status().message());
    return latest->value_or("none");
  }
  std::vector<std::string> Names() { return *files_.ListDirectory("d"); }
  absl::Status PutState(const std::string& text) { return files_.WriteFile("d/checkpoint", text); }

  MemoryFileSystem files_;
};

TEST_F(CheckpointDirectoryTest, NamesAreTheOnesOfTheFormatDescription) {
  EXPECT_EQ(CheckpointName(100), "model.ckpt-100");
  EXPECT_EQ(ManifestFileName(100), "model.ckpt-100.manifest.json");
  EXPECT_EQ(PartFileName(100, 1, 3), "model.ckpt-100.ps-1-of-3.safetensors");
  EXPECT_EQ(PartFileName(100, 1, 3, 2), "model.ckpt-100.ps-1-of-3.save-2.safetensors");
  EXPECT_EQ(TemporaryName("x", "a7"), "x.a7.tmp");
}

TEST_F(CheckpointDirectoryTest, ADirectoryWhoseNameBeginsTheCheckpointsNames) {
  for (const std::string directory : {"model", "model.ckpt", "m/"}) {
    ASSERT_EQ(files_.CreateDirectory(directory), absl::OkStatus());
    ASSERT_EQ(Save(files_, directory, 5, "a"), absl::OkStatus());
    const auto latest = LatestCheckpoint(files_, directory).value();
    EXPECT_EQ(latest, JoinPath(directory, "model.ckpt-5"));
  }
}

TEST_F(CheckpointDirectoryTest, NothingIsNone) {
  EXPECT_EQ(Latest(), "none");
  EXPECT_EQ(LatestCheckpoint(files_, "nowhere")->value_or("none"), "none");
  EXPECT_TRUE(ListCheckpoints(files_, "nowhere")->empty());
  EXPECT_TRUE(RemoveLeftovers(files_, "nowhere").ok());
}

TEST_F(CheckpointDirectoryTest, ACommitMakesItTheLatestAndLeavesNoTemporaryFile) {
  ASSERT_TRUE(Save(files_, "d", 100, "a").ok());
  EXPECT_EQ(Latest(), "d/model.ckpt-100");
  ASSERT_TRUE(Save(files_, "d", 200, "b").ok());
  EXPECT_EQ(Latest(), "d/model.ckpt-200");
  EXPECT_THAT(Names(), ElementsAre("checkpoint", "model.ckpt-100.manifest.json", "model.ckpt-100.ps-0-of-2.safetensors",
                                   "model.ckpt-100.ps-1-of-2.safetensors", "model.ckpt-200.manifest.json",
                                   "model.ckpt-200.ps-0-of-2.safetensors", "model.ckpt-200.ps-1-of-2.safetensors"));
  EXPECT_EQ(*files_.ReadFile("d/checkpoint"),
            "model_checkpoint_path: \"model.ckpt-200\"\n"
            "all_model_checkpoint_paths: \"model.ckpt-100\"\n"
            "all_model_checkpoint_paths: \"model.ckpt-200\"\n"
            "all_model_checkpoint_timestamps: 100.000\n"
            "all_model_checkpoint_timestamps: 200.000\n"
            "last_preserved_timestamp: 99.999\n");
}

TEST_F(CheckpointDirectoryTest, PartsWithoutAManifestAreNotACheckpoint) {
  Manifest manifest;
  ASSERT_TRUE(WriteParts(files_, "d", 100, "a", manifest).ok());
  EXPECT_EQ(Latest(), "none");
  for (const ManifestPart& part : manifest.parts)
    ASSERT_TRUE(files_.Rename(JoinPath("d", TemporaryName(part.file, "a")), JoinPath("d", part.file)).ok());
  EXPECT_EQ(Latest(), "none");
  EXPECT_TRUE(CommitManifest(files_, "d", manifest).ok()) << "parts that a failed attempt has renamed are taken";
  EXPECT_EQ(Latest(), "d/model.ckpt-100");
}

TEST_F(CheckpointDirectoryTest, ACommitOfMissingOrOtherPartsIsRefused) {
  Manifest manifest;
  ASSERT_TRUE(WriteParts(files_, "d", 100, "a", manifest).ok());
  Manifest other = manifest;
  other.parts[1].bytes += 1;
  EXPECT_THAT(std::string(CommitManifest(files_, "d", other).message()), HasSubstr("its writer reported"));
  other = manifest;
  other.parts[1].file = "model.ckpt-100.ps-0-of-2.safetensors";
  EXPECT_TRUE(absl::IsInvalidArgument(CommitManifest(files_, "d", other)));
  other = manifest;
  other.variables[0].slices.pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument(CommitManifest(files_, "d", other)));
  ASSERT_TRUE(files_.Remove(JoinPath("d", TemporaryName(manifest.parts[0].file, "a"))).ok());
  EXPECT_TRUE(absl::IsDataLoss(CommitManifest(files_, "d", manifest)));
  EXPECT_EQ(Latest(), "none");
}

TEST_F(CheckpointDirectoryTest, AStepThatIsSavedAgainGetsTheLowestFreeNumber) {
  EXPECT_EQ(FreeSaveNumber(files_, "nowhere", 100), 1);
  ASSERT_TRUE(Save(files_, "d", 100, "a").ok());
  EXPECT_EQ(FreeSaveNumber(files_, "d", 100), 2);
  EXPECT_EQ(FreeSaveNumber(files_, "d", 10), 1);
  ASSERT_TRUE(Save(files_, "d", 100, "b").ok());
  EXPECT_TRUE(files_.Exists("d/model.ckpt-100.ps-0-of-2.safetensors")) << "the first save's, until they are leftovers";
  EXPECT_EQ(FreeSaveNumber(files_, "d", 100), 3);
  ASSERT_TRUE(RemoveLeftovers(files_, "d", "b").ok());
  EXPECT_THAT(Names(),
              ElementsAre("checkpoint", "model.ckpt-100.manifest.json", "model.ckpt-100.ps-0-of-2.save-2.safetensors",
                          "model.ckpt-100.ps-1-of-2.save-2.safetensors"));
  EXPECT_EQ(Latest(), "d/model.ckpt-100");
  EXPECT_EQ(FreeSaveNumber(files_, "d", 100), 1);
}

// Two chiefs, one of them without knowing that it was replaced, save the same step under the same names.
TEST_F(CheckpointDirectoryTest, OfTwoSavesWithTheSameNamesOneIsCommittedAndStaysWhole) {
  for (const bool tidied : {false, true}) {
    MemoryFileSystem files;
    ASSERT_TRUE(files.CreateDirectory("d").ok());
    Manifest first, second;
    ASSERT_TRUE(WriteParts(files, "d", 100, "a", first).ok());
    ASSERT_TRUE(WriteParts(files, "d", 100, "b", second).ok());
    ASSERT_EQ(first.parts[0].file, second.parts[0].file);
    first.parts[0].crc32c ^= 1;  // other values than the second's
    ASSERT_EQ(CommitManifest(files, "d", second), absl::OkStatus());
    if (tidied) {
      ASSERT_EQ(RemoveLeftovers(files, "d", "b"), absl::OkStatus());
    }
    const absl::Status refused = CommitManifest(files, "d", first);
    EXPECT_EQ(refused.code(), tidied ? absl::StatusCode::kDataLoss : absl::StatusCode::kAlreadyExists) << refused;
    EXPECT_EQ(CheckpointReader::Open(files, "d/model.ckpt-100").value()->manifest().save_id, "b");
  }
}

TEST_F(CheckpointDirectoryTest, ASaveThatIsGivenUpGivesItsSpaceBack) {
  ASSERT_TRUE(Save(files_, "d", 100, "a").ok());
  const std::vector<std::string> before = Names();
  Manifest manifest;
  ASSERT_TRUE(AnnounceSave(files_, "d", "b").ok());
  ASSERT_TRUE(WriteParts(files_, "d", 200, "b", manifest).ok());
  Manifest other;
  ASSERT_TRUE(WriteParts(files_, "d", 200, "c", other).ok());
  AbandonSave(files_, "d", "b");
  EXPECT_FALSE(SeesSave(files_, "d", "b"));
  EXPECT_EQ(CommitManifest(files_, "d", other), absl::OkStatus()) << "another save's parts are left alone";
  EXPECT_EQ(Names().size(), before.size() + 3);
}

TEST_F(CheckpointDirectoryTest, PartsWithTheNamesOfVersion02AreReadRetainedAndRemoved) {
  Manifest manifest;
  ASSERT_TRUE(WriteParts(files_, "d", 100, "a", manifest).ok());
  for (int part = 0; part < 2; ++part) {
    const std::string old = absl::StrCat("model.ckpt-100.part-0000", part, "-of-00002.a.safetensors");
    ASSERT_TRUE(files_.Rename(JoinPath("d", TemporaryName(manifest.parts[part].file, "a")), JoinPath("d", old)).ok());
    manifest.parts[part].file = old;
  }
  ASSERT_TRUE(files_.WriteFile("d/model.ckpt-100.manifest.json", SerializeManifest(manifest)).ok());
  EXPECT_EQ(Latest(), "d/model.ckpt-100");
  ASSERT_TRUE(Save(files_, "d", 200, "b").ok());
  ASSERT_TRUE(Tidy(files_, "d", {.keep = 2}, "b").ok());
  EXPECT_THAT(*ListCheckpoints(files_, "d"), ElementsAre("model.ckpt-100", "model.ckpt-200"));
  EXPECT_TRUE(CheckpointReader::Open(files_, "d/model.ckpt-100").ok());
  ASSERT_TRUE(Save(files_, "d", 100, "c").ok()) << "a job that went back to it saves its step again";
  ASSERT_TRUE(Tidy(files_, "d", {.keep = 1}, "c").ok());
  EXPECT_THAT(Names(), ElementsAre("checkpoint", "model.ckpt-100.manifest.json", "model.ckpt-100.ps-0-of-2.safetensors",
                                   "model.ckpt-100.ps-1-of-2.safetensors"));
}

enum class Death { kProcess, kPower, kPowerManifestsAhead, kPowerPartsAhead };

void Die(MemoryFileSystem& files, Death death) {
  const auto is_manifest = [](const std::string& path) { return absl::EndsWith(path, ".manifest.json"); };
  files.Resume();
  if (death == Death::kPower) files.LosePower();
  if (death == Death::kPowerManifestsAhead) files.LosePower(is_manifest);
  if (death == Death::kPowerPartsAhead) files.LosePower(std::not_fn(is_manifest));
}

// Kills the process, or the machine, after every single change that a save makes: a reader then finds the old
// checkpoint or the whole new one, and the next save works.
TEST_F(CheckpointDirectoryTest, WhereverASaveStopsTheLatestIsTheOldOrTheWholeNew) {
  const auto saved_again = [](FileSystem& files, int64_t step, const std::string& save_id) {
    absl::Status status = Save(files, "d", step, save_id);
    if (status.ok()) status = RetainNewest(files, "d", 1);
    if (status.ok()) status = RemoveLeftovers(files, "d");
    return status;
  };
  // A later step, or the same step again, and once more.
  for (const auto& [second_step, third_step] : {std::pair<int64_t, int64_t>{200, 300}, {100, 300}, {100, 100}}) {
    int64_t changes = 0;
    bool seen_old = false, seen_new = false;
    for (int64_t stop = 0; stop == 0 || stop <= changes; ++stop) {
      for (const Death death : {Death::kProcess, Death::kPower, Death::kPowerManifestsAhead, Death::kPowerPartsAhead}) {
        MemoryFileSystem files;
        ASSERT_TRUE(files.CreateDirectory("d").ok());
        ASSERT_TRUE(saved_again(files, 100, "a").ok());
        files.Resume();
        if (stop > 0) files.StopAfter(stop - 1);
        const absl::Status status = saved_again(files, second_step, "b");
        if (stop == 0) changes = files.Resume();
        Die(files, death);

        const auto latest = LatestCheckpoint(files, "d");
        ASSERT_TRUE(latest.ok() && latest->has_value()) << "stopped after " << stop << ": " << latest.status();
        const auto reader = CheckpointReader::Open(files, **latest).value();
        const bool is_new = reader->manifest().save_id == "b";
        (is_new ? seen_new : seen_old) = true;
        EXPECT_TRUE(is_new || !status.ok()) << "the save was acknowledged but is not there";
        std::vector<float> w(10);
        ASSERT_TRUE(reader->ReadVariable("w", AsMutableBytes(w.data(), 10)).ok());
        EXPECT_EQ(w[9], WeightOf(is_new ? second_step : 100, 9));

        ASSERT_TRUE(RemoveLeftovers(files, "d").ok());
        ASSERT_TRUE(saved_again(files, third_step, "c").ok());
        EXPECT_EQ(LatestCheckpoint(files, "d")->value_or("none"), JoinPath("d", CheckpointName(third_step)));
        EXPECT_EQ(files.ListDirectory("d")->size(), 4u) << "leftovers of stop " << stop;
      }
    }
    EXPECT_GT(changes, 15);
    EXPECT_TRUE(seen_old && seen_new);
  }
}

TEST_F(CheckpointDirectoryTest, AFullDiskFailedRenamesAndAReadOnlyDiskKeepTheOldOne) {
  ASSERT_TRUE(Save(files_, "d", 100, "a").ok());
  for (uint64_t room = 0; room < 2500; room += 50) {
    files_.FillAfter(room);
    const absl::Status status = Save(files_, "d", 200, "b");
    files_.Unfill();
    const auto latest = LatestCheckpoint(files_, "d").value();
    if (latest == "d/model.ckpt-200") break;  // only the state file didn't fit
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << room << ": " << status;
    EXPECT_EQ(latest, "d/model.ckpt-100") << room;
    ASSERT_LT(room, 2450u) << "the save should fit";
  }
  ASSERT_TRUE(Save(files_, "d", 300, "c").ok());
  for (int rename = 1; rename <= 3; ++rename) {  // two parts, the manifest
    files_.FailRename(rename);
    EXPECT_TRUE(absl::IsUnavailable(Save(files_, "d", 400, "d"))) << rename;
    EXPECT_EQ(Latest(), "d/model.ckpt-300");
  }
  files_.SetReadOnly(true);
  EXPECT_TRUE(absl::IsPermissionDenied(Save(files_, "d", 400, "e")));
  EXPECT_EQ(Latest(), "d/model.ckpt-300");
}

TEST_F(CheckpointDirectoryTest, ADamagedNewestIsAnErrorUnlessAnOlderOneIsAllowed) {
  ASSERT_TRUE(Save(files_, "d", 100, "a").ok());
  ASSERT_TRUE(Save(files_, "d", 200, "b").ok());
  const std::string part = "d/model.ckpt-200.ps-1-of-2.safetensors";
  ASSERT_TRUE(files_.Corrupt(part, *files_.FileSize(part) - 1, 1).ok());
  EXPECT_TRUE(absl::IsDataLoss(LatestCheckpoint(files_, "d").status()));
  EXPECT_THAT(Latest(), HasSubstr(part + " is damaged"));
  EXPECT_THAT(Latest(), HasSubstr("allow an older checkpoint, or remove d/model.ckpt-200.manifest.json"));
  EXPECT_EQ(Latest({.allow_older = true}), "d/model.ckpt-100");
  EXPECT_EQ(Latest({.verify_checksums = false}), "d/model.ckpt-200");
  ASSERT_TRUE(files_.Remove(part).ok());
  EXPECT_THAT(Latest(), HasSubstr(part));
  EXPECT_EQ(Latest({.allow_older = true}), "d/model.ckpt-100");
  ASSERT_TRUE(files_.Truncate("d/model.ckpt-200.manifest.json", 50).ok());
  EXPECT_THAT(Latest(), HasSubstr("d/model.ckpt-200.manifest.json is damaged"));
  EXPECT_EQ(Latest({.allow_older = true}), "d/model.ckpt-100");
  ASSERT_TRUE(files_.Truncate("d/model.ckpt-100.manifest.json", 50).ok());
  EXPECT_THAT(Latest({.allow_older = true}), HasSubstr("d/model.ckpt-200.manifest.json is damaged"));
}

TEST_F(CheckpointDirectoryTest, ANewestThatTheStateNamesButIsGoneIsNeverASilentRestart) {
  ASSERT_TRUE(Save(files_, "d", 100, "a").ok());
  ASSERT_TRUE(Save(files_, "d", 200, "b").ok());
  ASSERT_TRUE(files_.Remove("d/model.ckpt-200.manifest.json").ok());
  EXPECT_THAT(Latest(), HasSubstr("d/model.ckpt-200.manifest.json is missing, but the file checkpoint names it"));
  EXPECT_EQ(Latest({.allow_older = true}), "d/model.ckpt-100");
  ASSERT_TRUE(files_.Remove("d/model.ckpt-100.manifest.json").ok());
  EXPECT_THAT(Latest({.allow_older = true}), HasSubstr("is missing"));
  ASSERT_TRUE(files_.Remove("d/checkpoint").ok());
  EXPECT_EQ(Latest(), "none");
}

// It is only a hint: the manifests say everything but which of them is meant.
TEST_F(CheckpointDirectoryTest, AStateFileThatCannotBeUnderstoodIsAWarningAndTheHighestStepIsTaken) {
  ASSERT_TRUE(Save(files_, "d", 50, "0").ok());
  ASSERT_TRUE(Save(files_, "d", 100, "a").ok());
  for (const char* text :
       {"", "\n", "garbage", "model_checkpoint_path: model.ckpt-100\n", "model_checkpoint_path: \"x\"",
        "model_checkpoint_path: \"model.ckpt-0100\"", "model_checkpoint_path: \"model.ckpt--1\"",
        "model_checkpoint_path: \"/elsewhere/model.ckpt-100\"", "model_checkpoint_path: \"model.ckpt-1",
        "model_checkpoint_path: \"model.ckpt-100\"\nlast_preserved_timestamp: soon\n",
        "model_checkpoint_path: \"model.ckpt-100\"\nall_model_checkpoint_timestamps: nan\n",
        "all_model_checkpoint_paths: \"model.ckpt-100\"\n", "\xff\xfe\n"}) {
    ASSERT_TRUE(PutState(text).ok());
    EXPECT_TRUE(absl::IsDataLoss(ReadCheckpointState(files_, "d").status())) << text;
    EXPECT_EQ(Latest(), "d/model.ckpt-100") << text;
    EXPECT_THAT(*ListCheckpoints(files_, "d"), ElementsAre("model.ckpt-50", "model.ckpt-100"));
  }
  ASSERT_TRUE(PutState(std::string(300, '\x01')).ok());
  EXPECT_LT(ReadCheckpointState(files_, "d").status().message().size(), 300u) << "binary is cut";
  for (const bool first : {true, false}) {
    ::testing::internal::CaptureStderr();
    SetUpLog("");
    EXPECT_EQ(Latest(), "d/model.ckpt-100");
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(absl::StrContains(said, "d/checkpoint can't be understood: line '\\x01"), first)
        << "once: an evaluator looks again and again: " << said;
  }
  const std::string part = "d/model.ckpt-100.ps-0-of-2.safetensors";
  ASSERT_TRUE(files_.Corrupt(part, *files_.FileSize(part) - 1, 1).ok());
  EXPECT_THAT(Latest(), HasSubstr(part + " is damaged")) << "a damaged newest is never skipped in silence";
  EXPECT_EQ(Latest({.allow_older = true}), "d/model.ckpt-50");
  EXPECT_TRUE(Save(files_, "d", 200, "b").ok()) << "a save writes it anew";
  EXPECT_EQ(Latest(), "d/model.ckpt-200");
}

TEST_F(CheckpointDirectoryTest, StateFilesAsTensorFlowWritesThemAreUnderstood) {
  ASSERT_TRUE(Save(files_, "d", 100, "a").ok());
  ASSERT_TRUE(Save(files_, "d", 200, "b").ok());
  ASSERT_TRUE(PutState("model_checkpoint_path: \"d/model.ckpt-100\"\r\n"
                       "all_model_checkpoint_paths: \"model.ckpt-200\"\n"
                       "all_model_checkpoint_paths: \"model.ckpt-100\"\n"
                       "all_model_checkpoint_timestamps: 1700000000.5\nlast_preserved_timestamp: 1.0\n")
                  .ok());
  EXPECT_EQ(Latest(), "d/model.ckpt-100") << "a user went back to an older one by hand";
  const auto state = ReadCheckpointState(files_, "d").value();
  EXPECT_EQ(state.latest, "model.ckpt-100");
  EXPECT_THAT(state.all, ElementsAre("model.ckpt-200", "model.ckpt-100"));
}

TEST_F(CheckpointDirectoryTest, WhatWasCommittedLastIsNewestEvenAtALowerStep) {
  ASSERT_TRUE(Save(files_, "d", 100, "a").ok());
  ASSERT_TRUE(Save(files_, "d", 200, "b").ok());
  ASSERT_TRUE(Save(files_, "d", 150, "c").ok());  // after going back to 100
  EXPECT_EQ(Latest(), "d/model.ckpt-150");
  EXPECT_THAT(*ListCheckpoints(files_, "d"), ElementsAre("model.ckpt-100", "model.ckpt-200", "model.ckpt-150"));
  // A commit that stopped before it wrote the state file.
  const std::string state = *files_.ReadFile("d/checkpoint");
  ASSERT_TRUE(Save(files_, "d", 160, "d").ok());
  ASSERT_TRUE(PutState(state).ok());
  EXPECT_EQ(Latest(), "d/model.ckpt-160");
}

TEST_F(CheckpointDirectoryTest, RetentionKeepsTheNewest) {
  for (int64_t step : {100, 200, 300, 150}) ASSERT_TRUE(Save(files_, "d", step, absl::StrCat("s", step)).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(RetainNewest(files_, "d", -1)));
  ASSERT_TRUE(RetainNewest(files_, "d", 0).ok());
  ASSERT_TRUE(RetainNewest(files_, "d", 4).ok());
  EXPECT_EQ(Names().size(), 13u);
  ASSERT_TRUE(RetainNewest(files_, "d", 2).ok());
  EXPECT_THAT(*ListCheckpoints(files_, "d"), ElementsAre("model.ckpt-300", "model.ckpt-150"));
  EXPECT_EQ(Names().size(), 7u);
  ASSERT_TRUE(RetainNewest(files_, "d", 1).ok());
  EXPECT_EQ(Latest(), "d/model.ckpt-150");
  EXPECT_EQ(Names().size(), 4u);
  EXPECT_THAT(*files_.ReadFile("d/checkpoint"), Not(HasSubstr("ckpt-300")));
}

// Saves at second `second` and then retains, as a process that has just started would.
absl::Status SaveAndRetain(FileSystem& files, int64_t step, int64_t second, int keep, absl::Duration every) {
  Manifest manifest;
  absl::Status status = WriteParts(files, "d", step, absl::StrCat("s", step, "t", second), manifest);
  manifest.saved_at = second * 1000;
  if (status.ok()) status = CommitManifest(files, "d", manifest);
  if (status.ok()) status = RetainNewest(files, "d", keep, every);
  if (status.ok()) status = RemoveLeftovers(files, "d");
  return status;
}

TEST_F(CheckpointDirectoryTest, OneIsKeptForEverWhenSoMuchTimeHasPassed) {
  for (int hour = 0; hour < 10; ++hour)
    ASSERT_TRUE(SaveAndRetain(files_, hour, 3600 * hour, /*keep=*/2, absl::Hours(3)).ok());
  EXPECT_THAT(*ListCheckpoints(files_, "d"),
              ElementsAre("model.ckpt-3", "model.ckpt-6", "model.ckpt-8", "model.ckpt-9"));
  EXPECT_EQ(ReadCheckpointState(files_, "d")->last_preserved, absl::FromUnixSeconds(3600 * 6));
  EXPECT_EQ(Names().size(), 13u) << "the parts go with their manifests";
  // A smaller number to keep deletes none of the preserved ones.
  ASSERT_TRUE(RetainNewest(files_, "d", 1, absl::Hours(10000)).ok());
  EXPECT_THAT(*ListCheckpoints(files_, "d"), ElementsAre("model.ckpt-3", "model.ckpt-6", "model.ckpt-9"));
}

// The reference is CheckpointManager._sweep, with its names.
TEST_F(CheckpointDirectoryTest, PreservesWhatTensorFlowPreserves) {
  const absl::Duration every = absl::Seconds(50);
  std::vector<std::pair<std::string, int64_t>> maybe_delete;
  std::vector<std::string> kept;
  int64_t last_preserved = 0;
  int64_t second = 0;
  for (int step = 0; step < 60; ++step) {
    second += 1 + (step * 7919 + 13) % 31;
    if (step == 0) last_preserved = second;
    ASSERT_TRUE(SaveAndRetain(files_, step, second, /*keep=*/3, every).ok());
    maybe_delete.emplace_back(CheckpointName(step), second);
    while (maybe_delete.size() > 3) {
      const auto [name, timestamp] = maybe_delete.front();
      maybe_delete.erase(maybe_delete.begin());
      if (timestamp - 50 < last_preserved) continue;
      last_preserved = timestamp;
      kept.push_back(name);
    }
    std::vector<std::string> expected = kept;
    for (const auto& [name, timestamp] : maybe_delete) expected.push_back(name);
    ASSERT_EQ(*ListCheckpoints(files_, "d"), expected) << "after step " << step;
  }
  EXPECT_GT(kept.size(), 5u);
}

TEST_F(CheckpointDirectoryTest, APreservedOneStaysSoWhenAJobGoesBackToIt) {
  for (int hour = 0; hour < 6; ++hour)
    ASSERT_TRUE(SaveAndRetain(files_, hour, 3600 * hour, /*keep=*/1, absl::Hours(3)).ok());
  ASSERT_THAT(*ListCheckpoints(files_, "d"), ElementsAre("model.ckpt-3", "model.ckpt-5"));
  ASSERT_TRUE(files_.Remove("d/model.ckpt-5.manifest.json").ok());
  ASSERT_TRUE(SaveAndRetain(files_, 3, 3600 * 6, 1, absl::Hours(3)).ok()) << "the step that was restored, again";
  EXPECT_EQ(Latest(), "d/model.ckpt-3");
  for (int hour = 7; hour < 9; ++hour) ASSERT_TRUE(SaveAndRetain(files_, hour, 3600 * hour, 1, absl::Hours(100)).ok());
  EXPECT_THAT(*ListCheckpoints(files_, "d"), ElementsAre("model.ckpt-3", "model.ckpt-8"));
}

TEST_F(CheckpointDirectoryTest, AClockThatWasSetBackPreservesNothing) {
  for (int hour = 0; hour < 6; ++hour)
    ASSERT_TRUE(SaveAndRetain(files_, hour, 3600 * (hour + 100), /*keep=*/1, absl::Hours(3)).ok());
  for (int step = 6; step < 10; ++step) ASSERT_TRUE(SaveAndRetain(files_, step, step, 1, absl::Hours(3)).ok());
  EXPECT_THAT(*ListCheckpoints(files_, "d"), ElementsAre("model.ckpt-3", "model.ckpt-9"));
}

// A retention that was stopped must not make an old checkpoint the newest.
TEST_F(CheckpointDirectoryTest, WhereverRetentionStopsTheLatestStays) {
  int64_t changes = 1;
  for (int64_t stop = 0; stop <= changes; ++stop) {
    for (const Death death : {Death::kProcess, Death::kPower, Death::kPowerManifestsAhead, Death::kPowerPartsAhead}) {
      SCOPED_TRACE(absl::StrCat("stopped after ", stop, " of ", changes));
      MemoryFileSystem files;
      ASSERT_TRUE(files.CreateDirectory("d").ok());
      for (int hour = 0; hour < 5; ++hour)
        ASSERT_TRUE(SaveAndRetain(files, hour, 3600 * hour, /*keep=*/0, absl::Hours(1)).ok());
      files.Resume();
      if (stop > 0) files.StopAfter(stop - 1);
      const absl::Status status = RetainNewest(files, "d", 1, absl::Hours(2));
      if (stop == 0) changes = files.Resume();
      EXPECT_EQ(status.ok(), stop == 0);
      Die(files, death);
      EXPECT_EQ(LatestCheckpoint(files, "d")->value_or("none"), "d/model.ckpt-4");
      ASSERT_TRUE(RetainNewest(files, "d", 1, absl::Hours(2)).ok());
      EXPECT_THAT(*ListCheckpoints(files, "d"), ElementsAre("model.ckpt-2", "model.ckpt-4"));
    }
  }
  EXPECT_GT(changes, 5);
}

TEST_F(CheckpointDirectoryTest, APathOfAUserIsACheckpointOrADirectoryOfThem) {
  ASSERT_TRUE(Save(files_, "d", 100, "a").ok());
  ASSERT_TRUE(Save(files_, "d", 200, "b").ok());
  EXPECT_EQ(*FindCheckpoint(files_, "d"), "d/model.ckpt-200");
  EXPECT_EQ(*FindCheckpoint(files_, "d/model.ckpt-100"), "d/model.ckpt-100");
  EXPECT_EQ(*FindCheckpoint(files_, "d/model.ckpt-100.manifest.json"), "d/model.ckpt-100");
  ASSERT_TRUE(files_.CreateDirectory("empty").ok());
  for (const char* path : {"d/model.ckpt-300", "nowhere"}) {
    const auto found = FindCheckpoint(files_, path);
    EXPECT_TRUE(absl::IsNotFound(found.status())) << found.status();
    EXPECT_THAT(std::string(found.status().message()), HasSubstr(path));
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(FindCheckpoint(files_, "empty").status()));
}

TEST_F(CheckpointDirectoryTest, LeftoversGoAndEverythingElseStays) {
  ASSERT_TRUE(Save(files_, "d", 100, "a").ok());
  ASSERT_TRUE(Save(files_, "d", 200, "b").ok());
  ASSERT_TRUE(files_.Truncate("d/model.ckpt-200.manifest.json", 9).ok());  // its parts are then unknown
  const std::vector<std::string> before = Names();
  // A part under its own name doesn't say whose it is: it may be of the later save that is announced.
  const std::vector<std::string> live = {"model.ckpt-300.ps-0-of-2.safetensors.live.tmp",
                                         "model.ckpt-300.ps-1-of-2.safetensors",
                                         "model.ckpt-300.part-00000-of-00002.live.safetensors.tmp",
                                         "model.ckpt-300.part-00001-of-00002.live.safetensors", "model.ckpt.save-live"};
  const std::vector<std::string> foreign = {"events.out.tfevents.1",
                                            "model.ckpt-5.index",
                                            "notes.tmp",
                                            "model.ckpt-x.ps-0-of-1.safetensors",
                                            "model.ckpt-5.ps-00-of-1.safetensors",
                                            "model.ckpt-5.ps-0-of-1.safetensors.bak",
                                            "model.ckpt-x.part-1.a.safetensors"};
  const std::vector<std::string> dead = {"model.ckpt-300.ps-0-of-1.safetensors.dead.tmp",
                                         "model.ckpt-300.ps-0-of-1.save-3.safetensors.dead.tmp",
                                         "model.ckpt-100.part-00000-of-00002.dead.safetensors",
                                         "model.ckpt-300.part-00000-of-00001.dead.safetensors.tmp",
                                         "model.ckpt-300.manifest.json.tmp4711",
                                         "checkpoint.tmp12",
                                         "model.ckpt.save-dead"};
  for (const auto& names : {live, foreign, dead})
    for (const std::string& name : names) ASSERT_TRUE(files_.WriteFile(JoinPath("d", name), "x").ok());
  ASSERT_TRUE(RemoveLeftovers(files_, "d", "f").ok());
  for (const auto& names : {before, live, foreign})
    for (const std::string& name : names) EXPECT_TRUE(files_.Exists(JoinPath("d", name))) << name;
  for (const std::string& name : dead) EXPECT_FALSE(files_.Exists(JoinPath("d", name))) << name;
  ASSERT_TRUE(RemoveLeftovers(files_, "d").ok());
  for (const std::string& name : live) EXPECT_FALSE(files_.Exists(JoinPath("d", name))) << name;
}

TEST_F(CheckpointDirectoryTest, SaveIdsAreInOrderOfTime) {
  const absl::Time now = absl::FromUnixSeconds(1700000000);
  EXPECT_LT(NewSaveId(now, 0xffff, 9), NewSaveId(now + absl::Microseconds(1), 1, 1));
  EXPECT_LT(NewSaveId(now, 2, 1), NewSaveId(now + absl::Hours(100000), 1, 1));
  EXPECT_LT(NewSaveId(now, 2, 9), NewSaveId(now, 2, 10));
  EXPECT_LT("i7s3", NewSaveId(now, 1, 1)) << "ids of an earlier kind count as earlier";
  EXPECT_LE(NewSaveId(now, ~uint64_t{0}, ~uint64_t{0}).size(), 64u);
}

TEST_F(CheckpointDirectoryTest, AnAnnouncementIsSeenInTheSameDirectoryOnly) {
  ASSERT_TRUE(AnnounceSave(files_, "e/f", "a1").ok());
  EXPECT_TRUE(SeesSave(files_, "e/f", "a1"));
  EXPECT_FALSE(SeesSave(files_, "e/f", "a2"));
  EXPECT_FALSE(SeesSave(files_, "d", "a1"));
  MemoryFileSystem other_host;
  EXPECT_FALSE(SeesSave(other_host, "e/f", "a1"));
}

}  // namespace
}  // namespace muster::checkpoint_directory_test
