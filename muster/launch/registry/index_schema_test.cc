#include "muster/launch/registry/index_schema.h"

#include <gmock/gmock.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "muster/launch/testing/registry_fixture.h"

namespace muster::index_schema_test {
namespace {

using ::testing::Contains, ::testing::Each, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Not;

class IndexSchemaTest : public RegistryFixture {
 protected:
  absl::Status OpenStatus() { return Registry::Open(home_, clock_).status(); }
  std::string OpenMessage() { return std::string(OpenStatus().message()); }

  // Returns the lines of EXPLAIN QUERY PLAN.
  std::vector<std::string> Plan(const std::string& sql) {
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open(home_.database().c_str(), &database), SQLITE_OK);
    std::vector<std::string> lines;
    char* error = nullptr;
    const auto take = [](void* to, int columns, char** values, char** /*names*/) {
      static_cast<std::vector<std::string>*>(to)->push_back(values[columns - 1]);
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(database, ("EXPLAIN QUERY PLAN " + sql).c_str(), take, &lines, &error), SQLITE_OK)
        << (error == nullptr ? "" : error);
    sqlite3_free(error);
    EXPECT_EQ(sqlite3_close(database), SQLITE_OK);
    return lines;
  }
};

TEST_F(IndexSchemaTest, IsMadeOnceInWalModeAndMarked) {
  ASSERT_TRUE(OpenStatus().ok()) << OpenStatus();
  EXPECT_THAT(Sql("PRAGMA journal_mode"), ElementsAre("wal"));
  EXPECT_THAT(Sql("PRAGMA user_version"), ElementsAre(std::to_string(kIndexFormat)));
  EXPECT_THAT(Sql("PRAGMA application_id"), ElementsAre(std::to_string(kRegistryApplication)));
  const auto made = Sql("SELECT sql FROM sqlite_schema");
  ASSERT_TRUE(OpenStatus().ok()) << OpenStatus();
  EXPECT_EQ(Sql("SELECT sql FROM sqlite_schema"), made);
}

TEST_F(IndexSchemaTest, AnEmptyFileBecomesARegistry) {
  ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), home_.database(), {}).ok());
  EXPECT_TRUE(OpenStatus().ok()) << OpenStatus();
}

// Folders stay behind if a registry is moved away or removed; their checkpoints must not become another experiment's.
TEST_F(IndexSchemaTest, NumbersGoOnAfterTheFoldersThatAreThere) {
  for (const char* name : {"experiments/7", "experiments/40", "experiments/39/runs/99", "experiments/100x"})
    ASSERT_TRUE(PosixFileSystem().CreateDirectory(JoinPath(home_.path(), name)).ok());
  EXPECT_EQ(Create(*Open(), Single()), 41);
  EXPECT_EQ(Create(*Open(), Single()), 42);
}

TEST_F(IndexSchemaTest, ANewerFormatIsRefusedAndLeftAsItIs) {
  Create(*Open(), Single());
  Sql("PRAGMA user_version = " + std::to_string(kIndexFormat + 1));
  EXPECT_EQ(OpenStatus().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(OpenMessage(), HasSubstr(home_.database() + " was made by a newer muster (format 5; this one knows 4)"));
  EXPECT_THAT(OpenMessage(), HasSubstr("use that one, or set MUSTER_HOME to another folder"));
  Sql("PRAGMA user_version = " + std::to_string(kIndexFormat));
  EXPECT_EQ(Open()->List({})->size(), 1U);
}

TEST_F(IndexSchemaTest, ItsFilesAreTheirOwnersAloneWhateverTheUmask) {
  const mode_t before = umask(0);
  Create(*Open(), Single());
  umask(before);
  for (const char* end : {"", "-wal", "-shm"}) {
    struct stat info;
    ASSERT_EQ(stat((home_.database() + end).c_str(), &info), 0) << end;
    EXPECT_EQ(info.st_mode & 0777, 0600U) << end;
  }
}

// Returns whether any file of the home contains `text`.
bool Holds(const Home& home, const std::string& text) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(home.path()))
    if (entry.is_regular_file() && PosixFileSystem().ReadFile(entry.path()).value().find(text) != std::string::npos)
      return true;
  return false;
}

TEST_F(IndexSchemaTest, KeepsOnlyHarmlessVariables) {
  NewExperiment experiment = Single();
  experiment.environment = {"AWS_SECRET_ACCESS_KEY=verysecret", "PATH=/bin", "MUSTER_JOB_TOKEN=verysecret"};
  Create(*Open(), experiment);
  EXPECT_THAT(Open()->Specification(1)->environment, ElementsAre("PATH=/bin"));
  EXPECT_FALSE(Holds(home_, "verysecret"));
}

TEST_F(IndexSchemaTest, AnotherProgramsDatabaseIsRefusedAndLeftAsItIs) {
  Sql("CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine')");
  EXPECT_EQ(OpenStatus().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(OpenMessage(), HasSubstr("is a database of another program"));
  EXPECT_THAT(Sql("PRAGMA journal_mode"), ElementsAre("delete"));
  EXPECT_THAT(Sql("SELECT name FROM sqlite_schema"), ElementsAre("notes"));
}

TEST_F(IndexSchemaTest, WhatIsNoDatabaseIsRefused) {
  const std::string text(5000, 'x');
  ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), home_.database(), AsBytes(text.data(), text.size())).ok());
  EXPECT_EQ(OpenStatus().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(OpenMessage(), HasSubstr(home_.database() + " is not a database; move it away"));
}

TEST_F(IndexSchemaTest, AValueThatNobodyWritesIsDataLoss) {
  Create(*Open(), Single());
  ASSERT_TRUE(SetTasks(*Open(), {1, 0}, {TaskRecord{.task = {kWorkerJob, 0}}}).ok());
  for (const char* sql : {"UPDATE runs SET state = 'ASLEEP'", "UPDATE runs SET state = 'CREATED', parameters = '[1]'",
                          "UPDATE runs SET parameters = '{\"a\":1}'", "UPDATE runs SET parameters = '{'"}) {
    Sql(sql);
    EXPECT_EQ(Open()->Run({1, 0}).status().code(), absl::StatusCode::kDataLoss) << sql;
  }
  Sql("UPDATE runs SET parameters = '{}'; UPDATE experiments SET options = '{\"no_gpus\":\"yes\"}';"
      "UPDATE tasks SET state = ''");
  EXPECT_TRUE(Open()->Run({1, 0}).ok());
  EXPECT_EQ(Open()->Specification(1).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Open()->Tasks({1, 0}).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(IndexSchemaTest, OptionsThatAreNotThereHaveTheirDefaults) {
  Create(*Open(), Single());
  Sql("UPDATE experiments SET options = '{\"no_gpus\":true,\"of_later\":1}'");
  const auto experiment = Open()->Specification(1).value();
  EXPECT_TRUE(experiment.options.no_gpus);
  EXPECT_EQ(experiment.options.stop_grace_seconds, SubmitOptions().stop_grace_seconds);
  EXPECT_EQ(experiment.options.hosts, HostSetting());
}

TEST_F(IndexSchemaTest, HostsAreKeptAsTheyWere) {
  NewExperiment experiment = Single();
  experiment.options.hosts = {.hosts = {{.name = "a", .slots = 2, .gpus = 0, .address = "10.0.0.1"}, {.name = "b"}},
                              .placement = {{kPsJob, {"b", "a"}}},
                              .grace = absl::Milliseconds(12500),
                              .ssh_config = "/etc/ssh_config",
                              .ports = PortRange{.first = 40000, .count = 101}};
  Create(*Open(), experiment);
  EXPECT_EQ(Open()->Specification(1)->options.hosts, experiment.options.hosts);
  Sql("UPDATE experiments SET options = '{\"hosts\":{}}'");
  EXPECT_EQ(Open()->Specification(1).status().code(), absl::StatusCode::kDataLoss);
}

// Each key that --kubernetes takes, with a value that it doesn't have unless stated.
TEST_F(IndexSchemaTest, AllThatKubernetesIsAskedForIsKept) {
  const std::map<std::string, std::string> values = {{"nodes", "3"},
                                                     {"image", "digits:1"},
                                                     {"context", "far"},
                                                     {"namespace", "team"},
                                                     {"kubectl", "/opt/kubectl"},
                                                     {"muster", "/opt/muster"},
                                                     {"gpu_resource", "amd.com/gpu"},
                                                     {"claims", "data:/data"},
                                                     {"labels", R"({"a":"b"})"},
                                                     {"annotations", R"({"a":"b"})"},
                                                     {"queue", "q"},
                                                     {"gang", "volcano"},
                                                     {"shm", "1GB"},
                                                     {"node_selector", R"({"a":"b"})"},
                                                     {"keep", "2h"},
                                                     {"scheduler", "own"},
                                                     {"start_timeout", "3m"},
                                                     {"tolerations", R"([{"operator":"Exists"}])"},
                                                     {"start_tries", "2"},
                                                     {"start_pause", "10s"},
                                                     {"image_pull_secrets", "s"},
                                                     {"pod_template", R"({"spec":{}})"},
                                                     {"service_account", "runner"}};
  KubernetesSetting none;
  const std::string unknown(TakeKubernetesSetting(none, "?", "").message());
  const std::vector<std::string> names =
      absl::StrSplit(unknown.substr(unknown.rfind("accepted: ") + sizeof("accepted: ") - 1), ", ");
  for (const std::string& name : names) {
    ASSERT_TRUE(values.contains(name)) << name;
    NewExperiment experiment = Single();
    KubernetesSetting& setting = experiment.options.hosts.kubernetes.emplace();
    ASSERT_EQ(TakeKubernetesSetting(setting, name, values.at(name)), absl::OkStatus()) << name;
    ASSERT_NE(setting, KubernetesSetting()) << name;
    EXPECT_EQ(Open()->Specification(Create(*Open(), experiment))->options.hosts, experiment.options.hosts) << name;
  }
}

// However many experiments there were, the queries search by an index, in its order, and sort nothing.
TEST_F(IndexSchemaTest, WhatIsAskedOftenReadsNoMoreThanItNeeds) {
  ASSERT_TRUE(OpenStatus().ok());
  for (const bool of_project : {false, true}) {
    for (const bool only_open : {false, true}) {
      const auto plan = Plan(ListQuery(of_project, only_open));
      EXPECT_THAT(plan, Not(Contains(HasSubstr("TEMP B-TREE")))) << of_project << only_open;
      EXPECT_THAT(plan, Not(Contains(HasSubstr("SCAN r")))) << of_project << only_open;
      EXPECT_THAT(plan, Contains(HasSubstr(only_open    ? "INDEX runs_open (run=?)"
                                           : of_project ? "INDEX experiments_of_project (project=?)"
                                                        : "SCAN e")))  // from the end, up to the limit
          << of_project << only_open;
    }
    EXPECT_THAT(Plan(LastQuery(of_project)), Each(Not(HasSubstr("TEMP B-TREE"))));
  }
  EXPECT_THAT(Plan(LastQuery(true)), ElementsAre(HasSubstr("INDEX experiments_of_project (project=?)")));
  EXPECT_THAT(Plan(kOpenRunsQuery), Contains(HasSubstr("runs_open")));
  EXPECT_THAT(Plan(kLeftRunsQuery), Contains(HasSubstr("runs_left")));
}

}  // namespace
}  // namespace muster::index_schema_test
