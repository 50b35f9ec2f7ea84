#include "muster/launch/registry/former_registry.h"

#include <gmock/gmock.h>
#include <sqlite3.h>

#include <filesystem>
#include <optional>
#include <string>

#include "muster/launch/registry/registry.h"
#include "muster/launch/testing/registry_fixture.h"

namespace muster::former_registry_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::SizeIs;

// The tables of format 3, two experiments of which one is a grid that was running, and what older formats lacked.
constexpr char kFormat3[] = R"(
CREATE TABLE experiments (number INTEGER PRIMARY KEY AUTOINCREMENT, project TEXT NOT NULL, folder TEXT NOT NULL,
  tree TEXT NOT NULL, runs INTEGER NOT NULL, file_name TEXT NOT NULL, options TEXT NOT NULL,
  environment BLOB NOT NULL, file_text TEXT NOT NULL) STRICT;
CREATE TABLE runs (number INTEGER NOT NULL, run INTEGER NOT NULL, state TEXT NOT NULL, attempt INTEGER NOT NULL,
  supervisor INTEGER NOT NULL, boot TEXT NOT NULL, created_us INTEGER NOT NULL, ended_us INTEGER,
  exit_code INTEGER NOT NULL, tree TEXT NOT NULL, output_dir TEXT NOT NULL, reason TEXT NOT NULL,
  parameters TEXT NOT NULL, run_id TEXT NOT NULL DEFAULT '', PRIMARY KEY (number, run)) STRICT, WITHOUT ROWID;
CREATE INDEX runs_open ON runs (run, number) WHERE ended_us IS NULL;
CREATE INDEX runs_left ON runs (number, run) WHERE run_id <> '' AND ended_us IS NOT NULL;
CREATE TABLE tasks (id INTEGER PRIMARY KEY, number INTEGER NOT NULL, run INTEGER NOT NULL, job TEXT NOT NULL,
  task INTEGER NOT NULL, state TEXT NOT NULL, since_us INTEGER NOT NULL, pid INTEGER NOT NULL, cgroup TEXT NOT NULL,
  status_address TEXT NOT NULL, gpus TEXT NOT NULL, mem_limit INTEGER NOT NULL, restarts INTEGER NOT NULL,
  exit_code INTEGER, exit_signal INTEGER, reason TEXT NOT NULL, host TEXT NOT NULL DEFAULT '',
  UNIQUE (number, run, job, task)) STRICT;
CREATE TABLE gpu_leases (gpu INTEGER PRIMARY KEY, number INTEGER NOT NULL, run INTEGER NOT NULL,
  since_us INTEGER NOT NULL) STRICT;
INSERT INTO experiments VALUES (1, 'one', '/f', 't', 0, 'muster.yml', '{"no_gpus":true}', CAST('PATH=/bin' || x'00'
  || 'KEY=verysecret' || x'00' AS BLOB), 'text');
INSERT INTO experiments VALUES (7, 'seven', '/f', 't', 2, 'muster.yml', '{}', x'', 'text');
INSERT INTO runs VALUES (1, 0, 'FINISHED', 2, 0, 'b', 5, 9, 0, 't', '/out', 'done', '{"a":"1"}', '');
INSERT INTO runs VALUES (7, 0, 'RUNNING', 1, 12, 'b', 6, NULL, 0, 't', '/out', '', '{}', '');
INSERT INTO runs VALUES (7, 1, 'FAILED', 1, 0, 'b', 6, 8, 3, 't', '/out', 'why', '{"a":"1"}', '');
INSERT INTO runs VALUES (7, 2, 'CREATED', 1, 0, 'b', 6, NULL, 0, 't', '', '', '{"a":"2"}', '');
INSERT INTO tasks (number, run, job, task, state, since_us, pid, cgroup, status_address, gpus, mem_limit, restarts,
  exit_code, exit_signal, reason) VALUES (1, 0, 'worker', 1, 'FINISHED', 8, 0, '', '', '0', 5, 2, 0, 0, 'r');
PRAGMA application_id = 1299412082;
PRAGMA user_version = 3;
)";

class FormerRegistryTest : public RegistryFixture {
 protected:
  void Write(const std::string& sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(home_.former_database().c_str(), &database), SQLITE_OK);
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK)
        << (error == nullptr ? "" : error);
    sqlite3_free(error);
    ASSERT_EQ(sqlite3_close(database), SQLITE_OK);
  }
  void ExpectTakenOver() {
    auto registry = Open();
    EXPECT_FALSE(std::filesystem::exists(home_.former_database()));
    const RunRecord one = Get(*registry, {1, 0});
    EXPECT_EQ(one.state, RunState::kFinished);
    EXPECT_EQ(one.attempt, 2);
    EXPECT_EQ(one.reason, "done");
    EXPECT_EQ(one.output_dir, "/out");
    EXPECT_EQ(one.parameters, (ParameterValues{{"a", "1"}}));
    EXPECT_EQ(one.ended, absl::FromUnixMicros(9));
    const auto specification = registry->Specification(1).value();
    EXPECT_TRUE(specification.options.no_gpus);
    EXPECT_THAT(specification.environment, ElementsAre("PATH=/bin"));
    ASSERT_THAT(*registry->Tasks({1, 0}), SizeIs(1));
    EXPECT_EQ(registry->Tasks({1, 0})->at(0).restarts, 2);
    ASSERT_THAT(*registry->Runs(7), SizeIs(2));
    EXPECT_EQ(Get(*registry, {7, 1}).exit_code, 3);
    EXPECT_EQ(Get(*registry, {7, 2}).state, RunState::kCreated);
    // Nobody has renewed it since the machine was up again.
    scratch_.MakeOld("experiments/7/state.json", absl::Minutes(1));
    EXPECT_THAT(*registry->Reconcile(), ElementsAre(ExperimentId{7, 0}, ExperimentId{7, 2}));
    EXPECT_EQ(Get(*registry, {7, 0}).reason, "the machine was restarted");
    EXPECT_EQ(Create(*registry, Single()), 8);
  }
};

TEST_F(FormerRegistryTest, Format3) {
  Write(kFormat3);
  ExpectTakenOver();
}

TEST_F(FormerRegistryTest, Format2HasNoHostsOfTasks) {
  Write(kFormat3);
  Write("ALTER TABLE tasks DROP COLUMN host; PRAGMA user_version = 2");
  ExpectTakenOver();
}

TEST_F(FormerRegistryTest, Format1LosesItsSecretsAlsoFromFreePages) {
  Write(kFormat3);
  Write(
      "ALTER TABLE tasks DROP COLUMN host; DROP INDEX runs_left; ALTER TABLE runs DROP COLUMN run_id;"
      "PRAGMA user_version = 1");
  ExpectTakenOver();
  const std::string old = PosixFileSystem().ReadFile(home_.former_database() + ".old").value();
  EXPECT_EQ(old.find("verysecret"), std::string::npos);
}

TEST_F(FormerRegistryTest, ATakeOverThatWasCutOffIsDoneAnew) {
  Write(kFormat3);
  ASSERT_NE(Open(), nullptr);
  std::filesystem::rename(home_.former_database() + ".old", home_.former_database());
  std::filesystem::remove(home_.database());
  ExpectTakenOver();
}

TEST_F(FormerRegistryTest, AnOlderMustersExperimentIsNotTakenFromIt) {
  Write(kFormat3);
  std::optional<RunLock> lock(TakeLock({7, 0}));
  const absl::Status refused = Registry::Open(home_, clock_).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("experiment 7 runs under an older muster"));
  lock.reset();
  ExpectTakenOver();
}

TEST_F(FormerRegistryTest, WhatIsNoRegistryStays) {
  Write("CREATE TABLE notes (text)");
  EXPECT_EQ(Registry::Open(home_, clock_).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(std::filesystem::exists(home_.former_database()));
}

}  // namespace
}  // namespace muster::former_registry_test
