#include "muster/launch/engines/kubernetes/kubernetes_jobs.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/engines/kubernetes/pod_job.h"

namespace muster::kubernetes_jobs_test {
namespace {

using ::testing::AllOf, ::testing::ContainsRegex, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Not,
    ::testing::SizeIs, ::testing::UnorderedElementsAre;

// What kubectl says unless a test says otherwise, by the words behind context and namespace. $all: all of them.
constexpr char kUsual[] = R"sh(
case $all in
  "auth can-i"*) echo yes;;
  "create --output=json"*) echo '{"kind": "Pod", "metadata": {"uid": "11111111-2222-3333-4444-555555555555"}}';;
  "get --raw="*) echo '{"items": []}';;
  "api-resources"*) echo podgroups.scheduling.volcano.sh;;
esac
)sh";

constexpr char kPods[] = "/api/v1/namespaces/team/pods?limit=500&labelSelector=";

class KubernetesJobsTest : public ::testing::Test {
 protected:
  KubernetesJobsTest() { Program(""); }
  // `first` may exit before the usual answers. What kubectl reads is in the file in.N, for its N-th call.
  void Program(const std::string& first) const {
    scratch_.Write(
        "kubectl",
        absl::StrCat("#!/bin/sh\ncd ", scratch_.path(),
                     "\nshift 2; all=\"$*\"; exec 9>>lock; flock 9; echo \"$all\" >>words; call=$(wc -l <words)\n"
                     "exec 9>&-; cat >in.$call\n",
                     first, "\n", kUsual));
    chmod((scratch_ / "kubectl").c_str(), 0700);
  }
  KubernetesJobs Jobs() const {
    return KubernetesJobs(KubernetesPlace{.kubectl = scratch_ / "kubectl", .context = "c", .name_space = "team"}.text(),
                          {"PATH=/usr/bin:/bin"});
  }
  static JobRequest Request(KubernetesSetting setting = {.nodes = 2, .image = "registry.example/a:1"}) {
    JobRequest request{.experiment = "1.2", .project = "toy", .home = "/h", .over_file = "/h/experiments/1/over"};
    request.setting.kubernetes = std::move(setting);
    return request;
  }
  absl::StatusOr<std::string> Submit(const JobRequest& request = Request()) const {
    KubernetesJobs jobs = Jobs();
    scratch_.Write("job.sh", jobs.Script(request));
    return jobs.Submit(scratch_ / "job.sh", "");
  }
  std::string Asked() const { return scratch_.Read("words"); }

  const ScratchFolder scratch_;
};

TEST_F(KubernetesJobsTest, IsCheckedAndThenMadeWithTheSupervisorAsOwner) {
  const auto id = Submit();
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_THAT(*id, ::testing::MatchesRegex("muster-1-2-[0-9a-f]+"));
  EXPECT_EQ(Jobs().IdIn(scratch_ / "job.sh"), *id) << "it is known before";
  EXPECT_EQ(Jobs().IdIn(scratch_ / "absent"), "");
  std::vector<std::string> asked = absl::StrSplit(Asked(), '\n', absl::SkipEmpty());
  ASSERT_THAT(asked, SizeIs(10));
  EXPECT_EQ(asked[8], "create --output=json --filename=-");
  EXPECT_EQ(asked[9], "create --output=name --filename=-");
  asked.resize(8);  // the checks, at the same time
  EXPECT_THAT(asked, UnorderedElementsAre("auth can-i create pods", "auth can-i create pods --subresource=exec",
                                          "auth can-i get pods", "auth can-i list pods", "auth can-i delete pods",
                                          "auth can-i delete services", "auth can-i delete secrets",
                                          "create --dry-run=server --output=name --filename=-"));
  const auto dry = std::find_if(asked.begin(), asked.end(),
                                [](const std::string& words) { return absl::StrContains(words, "--dry-run"); });
  EXPECT_EQ(scratch_.Read(absl::StrCat("in.", dry - asked.begin() + 1)), scratch_.Read("job.sh"));
  const std::string supervisor = scratch_.Read("in.9"), others = scratch_.Read("in.10");
  EXPECT_THAT(supervisor, AllOf(HasSubstr("name: " + *id), Not(HasSubstr("kind: Secret"))));
  EXPECT_THAT(others, AllOf(HasSubstr("kind: Secret"), HasSubstr("kind: Service"), HasSubstr(*id + "-h0\n"),
                            HasSubstr(*id + "-h1\n"), HasSubstr("11111111-2222-3333-4444-555555555555"),
                            Not(HasSubstr(kOpenUid)), Not(HasSubstr(std::string(64, '0')))));
  EXPECT_THAT(scratch_.Read("job.sh"), HasSubstr("secret " + std::string(64, '0'))) << "it is never on this disk";
}

TEST_F(KubernetesJobsTest, ARefusalLeavesNothingBehind) {
  Program(
      "case $all in create*=name*) [ -z \"${all##*dry-run*}\" ] || { echo 'pods is forbidden: exceeded quota: q' >&2; "
      "exit 1; };; esac");
  const auto refused = Submit();
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << "it may be submitted again";
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("the namespace's quota has no room for all pods"));
  EXPECT_THAT(Asked(), ContainsRegex("delete pods --selector=muster/job=muster-1-2-[0-9a-f]+ --ignore-not-found "
                                     "--wait=false --now\ndelete services/muster-1-2-[0-9a-f]+ "
                                     "secrets/muster-1-2-[0-9a-f]+ --ignore-not-found --wait=false --now\n"));
}

// As typed, kubectl would ask its current context, which may be another cluster's by now.
TEST_F(KubernetesJobsTest, WhatCantBeDeletedIsSaidWithTheWholeCommandLine) {
  Program(
      "case $all in delete*) echo 'pods is forbidden: User cannot list' >&2; exit 1;; create*=name*) [ -z "
      "\"${all##*dry-run*}\" ] || { echo 'a webhook refuses it' >&2; exit 1; };; esac");
  KubernetesJobs jobs(
      KubernetesPlace{
          .kubectl = scratch_ / "kubectl", .kubeconfig = "/u/my config", .context = "c", .name_space = "team"}
          .text(),
      {"PATH=/usr/bin:/bin"});
  scratch_.Write("job.sh", jobs.Script(Request()));
  const std::string said(jobs.Submit(scratch_ / "job.sh", "").status().message());
  EXPECT_THAT(said, HasSubstr(absl::StrCat("a webhook refuses it; what was made can't be deleted: `KUBECONFIG='/u/my "
                                           "config' ",
                                           scratch_ / "kubectl", " --context=c --namespace=team delete pod/",
                                           jobs.IdIn(scratch_ / "job.sh"), "` does it (")));
}

TEST_F(KubernetesJobsTest, AQuotaThatCanNeverHoldTheJobIsToldFromOneThatIsFull) {
  JobRequest request = Request();  // the supervisor's pod, and two of 2 CPUs and 1 GiB each
  request.needs = {.cpus = 2, .mem_bytes = int64_t{832} << 20, .gpus = 1};
  const auto with = [&](const std::string& spec) {
    scratch_.Write("quotas", absl::StrCat(R"({"items": [{"metadata": {"name": "q"}, "spec": )", spec, "}]}"));
    return Submit(request).status();
  };
  Program(
      "case $all in create*=name*) [ -z \"${all##*dry-run*}\" ] || { echo 'exceeded quota: q' >&2; exit 1; };; "
      "'get resourcequotas --output=json') cat quotas;; esac");
  const std::string enough =
      R"({"hard": {"pods": "3", "limits.cpu": "4", "requests.cpu": "4100m", "requests.nvidia.com/gpu": "2",)"
      R"( "limits.memory": "3Gi", "memory": "2304Mi", "services": "1", "count/secrets": "1", "unknown": "0"}})";
  for (const std::string& full : {enough, std::string(R"({"hard": {"pods": "1"}, "scopes": ["BestEffort"]})"),
                                  std::string("{}"), std::string("[]"), std::string("17")})
    EXPECT_TRUE(absl::IsResourceExhausted(with(full))) << full;
  const std::map<std::string, std::string> too_small = {
      {R"("pods": "2")", "quota q: asked pods=3, hard pods=2"},
      {R"("count/pods": "2")", "asked count/pods=3"},
      {R"("requests.cpu": "4")", "asked requests.cpu=4.1, hard requests.cpu=4;"},
      {R"("cpu": "4099m")", "asked cpu=4100m, hard cpu=4099m"},
      {R"("limits.memory": "3071Mi")", "asked limits.memory=3072Mi, hard limits.memory=3071Mi"},
      {R"("limits.memory": "3221225000")", "memory=3221225472, hard"},
      {R"("requests.nvidia.com/gpu": "1")", "gpu=2, hard"},
      {R"("services": "0")", "asked services=1"}};
  for (const auto& [hard, said] : too_small) {
    const absl::Status never = with(absl::StrCat(R"({"hard": {)", hard, "}}"));
    EXPECT_TRUE(absl::IsInvalidArgument(never)) << hard << ": " << never;
    EXPECT_THAT(std::string(never.message()), AllOf(HasSubstr("can never hold this job"), HasSubstr(said)));
  }
  scratch_.Write("quotas", "no right to see them");
  EXPECT_TRUE(absl::IsResourceExhausted(Submit(request).status()));
}

TEST_F(KubernetesJobsTest, TheSameJobHasAnotherNameTheNextTime) {
  KubernetesJobs jobs = Jobs();
  const std::string script = jobs.Script(Request());
  scratch_.Write("first", script);
  scratch_.Write("next", jobs.ScriptAnew(script));
  const std::string first = jobs.IdIn(scratch_ / "first"), next = jobs.IdIn(scratch_ / "next");
  EXPECT_THAT(next, ::testing::MatchesRegex("muster-1-2-[0-9a-f]+"));
  EXPECT_NE(first, next);
  const std::string digits = next.substr(next.size() - 8), text = scratch_.Read("next");
  EXPECT_THAT(text, AllOf(Not(HasSubstr(first.substr(first.size() - 8))),
                          ContainsRegex("MUSTER_KUBERNETES_RUN\n +value: \"?" + digits)));
  EXPECT_EQ(absl::StrReplaceAll(text, {{digits, first.substr(first.size() - 8)}}), script);
  EXPECT_EQ(jobs.ScriptAnew("#!/bin/sh\n"), "#!/bin/sh\n");
}

// A user who may make pods, and not find them again, would have a job that nobody can look at or take away.
TEST_F(KubernetesJobsTest, WhoMayNotMakePodsOrFindOrDeleteThemIsToldSo) {
  const std::map<std::string, std::string> rights = {{"create pods", "create pods"},
                                                     {"create pods --subresource=exec", "create pods/exec"},
                                                     {"get pods", "get pods"},
                                                     {"list pods", "list pods"},
                                                     {"delete pods", "delete pods"},
                                                     {"delete services", "delete services"},
                                                     {"delete secrets", "delete secrets"}};
  for (const auto& [asked, right] : rights) {
    scratch_.Write("words", "");
    Program(absl::StrCat("case $all in \"auth can-i ", asked, "\") echo no; exit 1;; esac"));
    const absl::Status refused = Submit().status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << right << ": " << refused;
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr(absl::StrCat("you may not ", right, " in namespace team (context c)")));
    EXPECT_THAT(Asked(), Not(HasSubstr("create --output"))) << "nothing was made";
  }
}

TEST_F(KubernetesJobsTest, ClaimsAndGangsAreLookedForFirst) {
  Program("case $all in \"get persistent\"*) echo 'persistentvolumeclaims \"data\" not found' >&2; exit 1;; esac");
  KubernetesSetting setting{.image = "a", .claims = {{"data", "/data"}}};
  EXPECT_THAT(std::string(Submit(Request(setting)).status().message()), HasSubstr("a claim isn't there: "));
  EXPECT_THAT(Asked(), HasSubstr("get persistentvolumeclaims --output=name data\n"));
  Program("case $all in api-resources*) exit 0;; esac");
  setting.claims.clear();
  const std::map<PodGang, std::string> groups = {{PodGang::kKueue, "kueue.x-k8s.io"},
                                                 {PodGang::kVolcano, "scheduling.volcano.sh"},
                                                 {PodGang::kCoscheduling, "scheduling.x-k8s.io"}};
  for (const auto& [gang, group] : groups) {
    setting.gang = gang;
    setting.queue = gang == PodGang::kKueue ? "q" : "";
    scratch_.Write("words", "");
    EXPECT_THAT(std::string(Submit(Request(setting)).status().message()),
                HasSubstr(absl::StrCat("this cluster has no ", PodGangText(gang), " (no API ", group, ")")));
    std::vector<std::string> asked = absl::StrSplit(Asked(), '\n');
    asked.erase(std::remove_if(asked.begin(), asked.end(),
                               [](const std::string& words) { return !absl::StartsWith(words, "api-resources"); }),
                asked.end());
    EXPECT_THAT(asked, ElementsAre(absl::StrCat("api-resources --api-group=", group, " --output=name")));
  }
  Program("");
  EXPECT_TRUE(Submit(Request(setting)).ok());
}

TEST_F(KubernetesJobsTest, NoJobWaitsForOthers) {
  EXPECT_FALSE(Jobs().TermsOf({}).chains);
  JobRequest request = Request();
  request.after = "muster-1-ab";
  EXPECT_THAT(std::string(Submit(request).status().message()), HasSubstr("can't wait for the end of others"));
}

TEST_F(KubernetesJobsTest, NewsOfJobsAndOfThoseThatNobodyKnows) {
  Program("case $all in get*) cat answer; exit;; esac");
  scratch_.Write("answer", R"({"items": [{"metadata": {"labels": {"muster/job": "a", "muster/part": "supervisor"}},
                               "status": {"phase": "Running"}}]})");
  KubernetesJobs jobs = Jobs();
  const auto news = jobs.Look({"a", "b"});
  ASSERT_TRUE(news.ok()) << news.status();
  EXPECT_EQ(news->at("a").phase, JobPhase::kRuns);
  EXPECT_EQ(news->at("b").phase, JobPhase::kUnknown);
  EXPECT_EQ(news->at("b").text, "");
  EXPECT_EQ(Asked(), absl::StrCat("get --raw=", kPods, "muster%2fjob%20in%20%28a%2cb%29\n",
                                  "get namespaces/team --output=name\n"));
  Program("echo 'Unable to connect to the server' >&2; exit 1");
  EXPECT_TRUE(absl::IsUnavailable(jobs.Look({"a"}).status()));
}

// However many pods there are, kubectl and muster hold a page of them, and each page has the same patience.
TEST_F(KubernetesJobsTest, PodsAreReadInPagesToTheLast) {
  Program("case $all in *continue=two) cat two;; *continue=three) cat three;; get*) cat one;; esac; exit");
  const auto page = [](const std::string& next, const std::string& part, const std::string& host,
                       const std::string& phase) {
    return absl::StrCat(R"({"metadata": {"continue": ")", next, R"("}, "items": [{"metadata": {"labels": {)",
                        R"("muster/job": "a", "muster/part": ")", part, R"(", "muster/host": ")", host,
                        R"("}}, "status": {"phase": ")", phase, R"("}}]})");
  };
  scratch_.Write("one", page("two", "supervisor", "supervisor", "Running"));
  scratch_.Write("two", page("three", "agent", "h0", "Running"));
  scratch_.Write("three", page("", "agent", "h1", "Pending"));
  EXPECT_EQ(Jobs().Look({"a"})->at("a").text, "2 of 3 pods run; h1: not scheduled yet");
  const std::vector<std::string> asked = absl::StrSplit(Asked(), '\n', absl::SkipEmpty());
  EXPECT_THAT(asked, SizeIs(3));
  // Nothing follows from a part of the pods: the next look begins anew.
  Program(
      "case $all in *continue=two) echo 'Error from server (Expired): The provided continue parameter is too old' >&2; "
      "exit 1;; get*) cat one; exit;; esac");
  EXPECT_TRUE(absl::IsUnavailable(Jobs().Look({"a"}).status()));
}

// As a proxy may answer that drops what it doesn't know of a query.
TEST_F(KubernetesJobsTest, PagesWithoutEndAreAnError) {
  Program("case $all in get*) echo '{\"metadata\": {\"continue\": \"on\"}, \"items\": []}';; esac; exit");
  const absl::Status status = Jobs().Look({"a"}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("followed by itself"));
}

TEST_F(KubernetesJobsTest, ANamespaceThatIsGoneIsTheReason) {
  Program("case $all in 'get --raw='*) ;; get*) cat said >&2; exit 1;; esac");
  scratch_.Write("said", "Error from server (NotFound): namespaces \"team\" not found");
  const JobNews news = Jobs().Look({"a"})->at("a");
  EXPECT_EQ(news.phase, JobPhase::kUnknown);
  EXPECT_EQ(news.text, "there is no namespace 'team'");
  scratch_.Write("said", "Error from server (Forbidden): namespaces \"team\" is forbidden: User \"u\" cannot get");
  EXPECT_EQ(Jobs().Look({"a"})->at("a").text, "") << "who may not see namespaces knows nothing of it";
}

// As of a job that was submitted in a pod, whose service account names the cluster.
TEST_F(KubernetesJobsTest, WithoutAContextNothingFollowsOnceKubectlHasOne) {
  scratch_.Write("kubectl", absl::StrCat("#!/bin/sh\ncd ", scratch_.path(), R"sh(
echo "$*" >>words
case $* in
  "config current-context") [ ! -e context ] || exec cat context; echo 'error: current-context is not set' >&2; exit 1;;
  get*) echo '{"items": []}';;
esac
)sh"));
  KubernetesJobs jobs(KubernetesPlace{.kubectl = scratch_ / "kubectl"}.text(), {"PATH=/usr/bin:/bin"});
  scratch_.Write("job.sh", jobs.Script(Request()));
  EXPECT_EQ(jobs.Look({"a"})->at("a").phase, JobPhase::kUnknown);
  EXPECT_THAT(Asked(), HasSubstr("get --raw=/api/v1/namespaces/default/pods?"))
      << "as kubectl itself, outside of a pod";
  EXPECT_EQ(jobs.End("a", JobEnd::kGiveBack), absl::OkStatus());
  scratch_.Write("context", "elsewhere");
  scratch_.Write("words", "");
  for (const absl::Status& status :
       {jobs.Look({"a"}).status(), jobs.End("a", JobEnd::kCancel), jobs.Submit(scratch_ / "job.sh", "").status()}) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("kubectl's current context is 'elsewhere' now"));
  }
  EXPECT_THAT(Asked(), AllOf(Not(HasSubstr("delete")), Not(HasSubstr("create"))));
}

TEST_F(KubernetesJobsTest, ATryThatTheApiCantTakeNowIsNoRefusal) {
  for (const char* words :
       {"Error from server (InternalError): Internal error occurred: failed calling webhook \"x\": context deadline "
        "exceeded",
        "Error from server (Conflict): Operation cannot be fulfilled on resourcequotas \"q\": the object has been "
        "modified"}) {
    scratch_.Write("said", words);
    Program("case $all in create*=name*) cat said >&2; exit 1;; esac");
    EXPECT_TRUE(absl::IsUnavailable(Submit().status())) << Submit().status();
  }
}

TEST_F(KubernetesJobsTest, AJobThatIsGoneWasCancelledIfSomebodyWasSeenToDeleteIt) {
  Program("case $all in get*) cat answer; exit;; esac");
  KubernetesJobs jobs = Jobs();
  const auto look = [&](const std::string& more) {
    const std::string pod = absl::StrCat(
        R"({"metadata": {"labels": {"muster/job": "a", "muster/part": "supervisor"}, "deletionTimestamp": "t"},)",
        R"( "status": {"phase": "Running")", more, "}}");
    scratch_.Write("answer", absl::StrCat(R"({"items": [)", more == "gone" ? "" : pod, "]}"));
    return jobs.Look({"a"})->at("a");
  };
  const JobNews unseen = look("gone");
  EXPECT_EQ(unseen.phase, JobPhase::kUnknown);
  EXPECT_FALSE(unseen.cancelled);
  EXPECT_TRUE(unseen.taken_away);
  EXPECT_TRUE(look("").cancelled);
  EXPECT_TRUE(look("gone").cancelled);
  EXPECT_FALSE(
      look(R"(, "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "Preempted"}])").cancelled);
  EXPECT_FALSE(look("gone").cancelled);
  EXPECT_EQ(jobs.End("a", JobEnd::kCancel), absl::OkStatus());
  EXPECT_TRUE(look("gone").cancelled);
}

TEST_F(KubernetesJobsTest, AJobIsLateWhoseFirstPodsDontAllStartInTime) {
  Program("case $all in get*) cat answer; exit;; esac");
  scratch_.Write("answer", R"({"items": [{"metadata": {"labels": {"muster/job": "a", "muster/part": "supervisor"},
                               "annotations": {"muster/start-timeout": "60"}}, "status": {"phase": "Running"}}, {"metadata":
                               {"labels": {"muster/job": "a", "muster/part": "agent", "muster/host": "h0"}},
                               "status": {"phase": "Pending"}}]})");
  SimulatedClock clock;
  KubernetesJobs jobs(KubernetesPlace{.kubectl = scratch_ / "kubectl", .context = "c", .name_space = "team"}.text(),
                      {"PATH=/usr/bin:/bin"}, clock);
  EXPECT_EQ(jobs.Look({"a"})->at("a").phase, JobPhase::kWaits);
  clock.Advance(absl::Seconds(59));
  EXPECT_EQ(jobs.Look({"a"})->at("a").late, "");
  clock.Advance(absl::Seconds(1));
  const JobNews news = jobs.Look({"a"})->at("a");
  EXPECT_EQ(news.phase, JobPhase::kWaits);
  EXPECT_EQ(news.late,
            "its pods didn't all start within 1m (1 of 2 pods run; h0: not scheduled yet), and were given back");
  EXPECT_THAT(Asked(), Not(HasSubstr("delete"))) << "whoever looks gives it back";
  EXPECT_EQ(jobs.End("a", JobEnd::kGiveBack), absl::OkStatus());
  EXPECT_THAT(Asked(), AllOf(HasSubstr("delete pods --selector=muster/job=a --ignore-not-found --wait=false --now\n"),
                             Not(HasSubstr("exec "))));
}

TEST_F(KubernetesJobsTest, AJobWhosePodsWaitingDoesntHelpIsLateSoon) {
  Program("case $all in get*) cat answer; exit;; esac");
  const auto wait_for = [this](const std::string& reason, const std::string& message) {
    scratch_.Write("answer",
                   absl::StrCat(R"({"items": [{"metadata": {"labels": {"muster/job": "a", "muster/part": )"
                                R"("supervisor"}, "annotations": {"muster/start-timeout": "600"}}, "status": )"
                                R"({"phase": "Pending", "containerStatuses": [{"state": {"waiting": {)"
                                R"("reason": ")",
                                reason, R"(", "message": ")", message, R"("}}}]}}]})"));
  };
  SimulatedClock clock;
  KubernetesJobs jobs(KubernetesPlace{.kubectl = scratch_ / "kubectl", .context = "c", .name_space = "team"}.text(),
                      {"PATH=/usr/bin:/bin"}, clock);
  const auto late = [&jobs] { return jobs.Look({"a"})->at("a").late; };
  for (int seconds = 0; seconds < 40; seconds += 10) {
    wait_for(seconds % 20 == 0 ? "ErrImagePull" : "ImagePullBackOff",
             seconds % 20 == 0 ? "nope:9: not found" : "later");
    EXPECT_EQ(late(), "") << seconds;
    clock.Advance(absl::Seconds(10));
  }
  EXPECT_EQ(
      late(),
      "its pods can't start, which waiting doesn't change (0 of 1 pods run; the supervisor: ErrImagePull: nope:9: "
      "not found), and were given back");
  wait_for("ContainerCreating", "");
  EXPECT_EQ(late(), "");
  wait_for("ErrImagePull", "nope:9: not found");
  EXPECT_EQ(late(), "") << "a new trouble";
  wait_for("InvalidImageName", "a b");
  EXPECT_THAT(late(), HasSubstr("InvalidImageName: a b")) << "at once";
}

TEST_F(KubernetesJobsTest, IsAskedToEndOrTakenAway) {
  KubernetesJobs jobs = Jobs();
  EXPECT_EQ(jobs.End("a", JobEnd::kAsk), absl::OkStatus());
  EXPECT_EQ(jobs.End("a", JobEnd::kCancel), absl::OkStatus());
  EXPECT_EQ(Asked(),
            "exec a --container=muster -- sh -c : >/muster/asked; kill -USR1 \"$(cat /muster/pid)\"\n"
            "exec a --container=muster -- sh -c : >/muster/asked\n"
            "get --raw=/api/v1/namespaces/team/pods?limit=500&labelSelector=muster%2fjob%20in%20%28a%29\n"
            "delete pods --selector=muster/job=a --ignore-not-found --wait=false\n"
            "delete services/a secrets/a --ignore-not-found --wait=false\n");
  Program("echo 'Error from server (NotFound): pods \"a\" not found' >&2; exit 1");
  EXPECT_EQ(jobs.End("a", JobEnd::kAsk), absl::OkStatus()) << "it has ended";
}

TEST_F(KubernetesJobsTest, WhatElseIsntFoundIsAnError) {
  KubernetesJobs jobs = Jobs();
  for (const char* words : {"error: context was not found for specified context: c", "sh: kubectl: not found",
                            "sh: cat: not found; command terminated with exit code 127",
                            "muster home: connection reset; command terminated with exit code 1",
                            "Error from server (NotFound): pods \"ab\" not found",
                            "Error from server (NotFound): namespaces \"team\" not found"}) {
    Program(absl::StrCat("echo '", words, "' >&2; exit 1"));
    EXPECT_NE(jobs.End("a", JobEnd::kAsk), absl::OkStatus()) << words;
    const absl::Status asked = jobs.Ask("a", {}, "").status();
    EXPECT_TRUE(absl::IsInternal(asked)) << words << ": " << asked;
  }
  KubernetesJobs without(KubernetesPlace{.kubectl = "/nowhere/kubectl"}.text(), {});
  EXPECT_TRUE(absl::IsInternal(without.Ask("a", {}, "").status()));
}

TEST_F(KubernetesJobsTest, SupervisorsOfPodsShareNoFolder) {
  const absl::Status nobody = Jobs().Ask("", {}, "").status();
  EXPECT_FALSE(nobody.ok());
  EXPECT_FALSE(absl::IsUnimplemented(nobody));
  EXPECT_FALSE(scratch_.Has("words")) << "it answers at once";
}

TEST_F(KubernetesJobsTest, MusterRunsBesideTheSupervisor) {
  Program("case $all in exec*) echo answered; exit;; esac");
  KubernetesJobs jobs = Jobs();
  EXPECT_EQ(*jobs.Ask("a", {"home", "part", "a b"}, "input"), "answered\n");
  EXPECT_EQ(Asked(),
            "exec --stdin a --container=muster -- sh -c exec \"$(cat /muster/muster)\" \"$@\" muster home part "
            "a b\n");
  EXPECT_EQ(scratch_.Read("in.1"), "input");
  Program("echo 'error: cannot exec into a container in a completed pod; current phase is Succeeded' >&2; exit 1");
  EXPECT_TRUE(absl::IsUnavailable(jobs.Ask("a", {}, "").status()));
  for (const char* words : {"Error from server (NotFound): pods \"a\" not found",
                            "error: unable to upgrade connection: container not found (\"muster\")",
                            "Error from server (BadRequest): pod a does not have a host assigned"}) {
    Program(absl::StrCat("echo '", words, "' >&2; exit 1"));
    EXPECT_TRUE(absl::IsUnavailable(jobs.Ask("a", {}, "").status())) << words;
  }
  Program("echo 'muster home: no such file' >&2; echo 'command terminated with exit code 1' >&2; exit 1");
  const absl::Status failed = jobs.Ask("a", {}, "").status();
  EXPECT_TRUE(absl::IsInternal(failed)) << failed;
  EXPECT_THAT(std::string(failed.message()), HasSubstr("muster home: no such file"));
}

TEST_F(KubernetesJobsTest, ADryRunSaysWhatTheServerSays) {
  KubernetesJobs jobs = Jobs();
  EXPECT_THAT(*jobs.WouldTake(jobs.Script(Request())), HasSubstr("context c, namespace team would take it"));
  EXPECT_TRUE(absl::IsInvalidArgument(jobs.WouldTake("#!/bin/sh").status()));
}

TEST_F(KubernetesJobsTest, OwnJobIsWhatThePodWasTold) {
  KubernetesJobs jobs("", {"MUSTER_KUBERNETES_JOB=muster-1-ab", "MUSTER_KUBERNETES_RUN=ab", "MUSTER_KUBERNETES_PODS=2",
                           "MUSTER_KUBERNETES_PORT=1", "MUSTER_KUBERNETES_START_TIMEOUT=1",
                           "MUSTER_KUBERNETES_ENDING=1", R"(MUSTER_KUBERNETES_AT={"kubectl": "k", "context": "c"})"});
  const auto own = jobs.Own();
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->id, "muster-1-ab");
  EXPECT_EQ(own->run, "ab");
  EXPECT_THAT(own->hosts, ElementsAre("h0", "h1"));
  EXPECT_THAT(jobs.at(), HasSubstr("\"context\":\"c\""));
  EXPECT_TRUE(absl::IsNotFound(Jobs().Own().status()));
}

}  // namespace
}  // namespace muster::kubernetes_jobs_test
