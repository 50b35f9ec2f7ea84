// The cost of a step that is like the one before, besides computing, from the worker's gradients to the ps and back: no
// allocation on either side, and of a tensor's bytes only the copies listed in docs/performance/time.md ("What a step
// copies and allocates"), once each. Worker and ps run in one process, on one loop, connected by real sockets or shared
// memory, so everything counted is theirs, and everything of theirs is counted.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/algo/algorithms/commit_pipeline.h"
#include "muster/algo/algorithms/overlapped_reduction.h"
#include "muster/algo/algorithms/pipelined.h"
#include "muster/base/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/base/log.h"
#include "muster/collective/testing/group_in_threads.h"
#include "muster/optim/rule_options.h"
#include "muster/store/client/overlapped_push.h"
#include "muster/store/client/store_client.h"
#include "muster/store/direct/arena_listener.h"
#include "muster/store/service/store_service.h"
#include "muster/store/testing/joining.h"
#include "muster/store/testing/update_way.h"
#include "muster/transport/tcp/tcp_transport.h"
#include "tests/cluster/counted_copies.h"
#include "tests/cluster/counted_memory.h"

namespace muster::steady_state_test {
namespace {

constexpr int kWarmUpSteps = 200;
constexpr int kSteps = 300;

const std::vector<VariableSpec> kVariables = {{.name = "w1", .shape = {300, 200}},
                                              {.name = "b1", .shape = {200}},
                                              {.name = "w2", .shape = {200, 100}},
                                              {.name = "b2", .shape = {100}},
                                              {.name = "mean", .shape = {10}, .kind = VariableKind::kBuffer}};

struct Mode {
  std::string name;
  Sending sending = Sending::kWhole;
  int num_ps = 1;
  bool shared_memory = false;  // instead of TCP
  OptimizerSpec optimizer = RuleSpec{};
  ApplyChoice apply = ApplyChoice::kServer;
  WireOptions wire = {};
  GateSpec gate = {};
  uint64_t clock_limit = 0;
  std::optional<CommitSpec> commit = {};  // a step is a whole window of the commit pipeline
};

// Values and gradients without a model. Alternates between two sets of gradients, as torch makes new ones in each
// backward pass.
class PlainSource final : public GradientSource {
 public:
  PlainSource() {
    for (const VariableSpec& variable : kVariables) {
      values_.emplace_back(variable.elements(), 0.5F);
      memory_.push_back(AsMutableBytes(values_.back().data(), values_.back().size()));
      for (auto& set : gradients_) set.emplace_back(variable.elements(), 0.25F);
    }
  }
  const std::vector<VariableSpec>& variables() const override { return kVariables; }
  MutableByteSpan value(size_t i) override { return memory_[i]; }
  bool UseMemory(size_t i, MutableByteSpan memory, std::shared_ptr<void>) override {
    memory_[i] = memory;
    return true;
  }
  absl::StatusOr<double> ComputeGradients() override { return 0; }
  ByteSpan gradient(size_t i) override { return AsBytes(gradients_[set_][i].data(), gradients_[set_][i].size()); }
  bool KeepGradients() override {
    set_ = 1 - set_;
    return true;
  }

 private:
  std::vector<std::vector<float>> values_, gradients_[2];
  std::vector<MutableByteSpan> memory_;
  int set_ = 0;
};

class Cluster {
 public:
  explicit Cluster(const Mode& mode)
      : mode_(mode),
        transport_(loop_, {}, {.shared_memory = {.enabled = mode.shared_memory}}),
        port_(*ArenaListener::Open()) {
    std::vector<std::string> addresses;
    for (int i = 0; i < mode.num_ps; ++i) {
      services_.push_back(std::make_unique<StoreService>(
          loop_, StoreOptions{.task = "ps:" + std::to_string(i),
                              .lead = i == 0,
                              .workers = {"worker:0"},
                              .lease = {.lease = absl::InfiniteDuration(), .abandoned_after = absl::InfiniteDuration()},
                              .files = &PosixFileSystem(),
                              .background = [](absl::AnyInvocable<void()> work) { work(); },
                              .port = port_.get()}));
      listeners_.push_back(*transport_.Listen("127.0.0.1:0", *services_.back()));
      addresses.push_back(listeners_.back()->address());
    }
    client_ = std::make_unique<StoreClient>(
        transport_, addresses,
        StoreClientOptions{.task = "worker:0", .apply = mode.apply, .wire = mode.wire, .part_bytes = size_t{64} << 10});
    const PlacementResult placement = *PlaceVariables(kVariables, mode.num_ps, Placement::kRoundRobin, {});
    ModelBinding binding = {kVariables, placement, mode.optimizer, {}};
    binding.gate = mode.gate;
    binding.clock_limit = mode.clock_limit;
    if (mode.sending == Sending::kPipelined) {
      pipelined_.emplace(source_, placement, mode.optimizer);
      binding = pipelined_->binding();
    } else if (mode.commit) {
      windows_.emplace(source_, placement, mode.optimizer, *mode.commit);
      binding = windows_->binding();
    } else {
      for (size_t i = 0; i < kVariables.size(); ++i) binding.values.push_back(source_.value(i));
    }
    EXPECT_EQ(JoinToTrain(*client_, binding, /*chief=*/true), absl::OkStatus());
    if (pipelined_) pipelined_->Begin(*client_);
    if (windows_) windows_->Begin(*client_);
    parts_.emplace(*client_);
  }

  absl::Status Step() {
    if (pipelined_) return pipelined_->Step(*client_).status();
    if (windows_) return Window();
    const auto gradient = [this](size_t i) { return source_.gradient(i); };
    if (mode_.sending == Sending::kInParts) {
      EXPECT_TRUE(parts_->Possible());
      parts_->Begin();
      for (size_t i = kVariables.size(); i-- > 0;) parts_->Ready(i, source_.gradient(i));
      return parts_->Finish(gradient, /*publish_buffers=*/true).status();
    }
    StorePushOptions options{.publish_buffers = true};
    if (mode_.gate.kind != GateKind::kNone) options.local_step = client_->round();
    if (mode_.clock_limit > 0) options.clock = client_->clock() + 1;
    return client_->PushPull(gradient, options).status();
  }
  // Waits until the ps have nothing left to do.
  void FinishPending() {
    if (!pipelined_) return;
    EXPECT_EQ(pipelined_->FinishPending(*client_), absl::OkStatus());
  }
  uint64_t global_step() { return *client_->ReadGlobalStep(); }
  uint64_t calls() const {
    uint64_t calls = 0;
    for (int ps = 0; ps < client_->num_ps(); ++ps) calls += client_->ps_calls().TrafficStats(ps).calls;
    return calls;
  }

 private:
  absl::Status Window() {
    absl::Status status;
    for (uint32_t i = 0; i < windows_->window(); ++i) status.Update(windows_->Step(*client_).status());
    return status;
  }

  const Mode mode_;
  PlainSource source_;
  TcpEventLoop loop_;
  TcpTransport transport_;
  std::unique_ptr<ArenaListener> port_;
  std::vector<std::unique_ptr<StoreService>> services_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::unique_ptr<StoreClient> client_;
  std::optional<OverlappedPush> parts_;
  std::optional<PipelinedAlgorithm> pipelined_;
  std::optional<CommitPipeline> windows_;
};

std::string NameOf(const testing::TestParamInfo<Mode>& mode) { return mode.param.name; }

class SteadyStateTest : public testing::TestWithParam<Mode> {};

TEST_P(SteadyStateTest, AStepAllocatesNothing) {
  if (!CountsMemory()) GTEST_SKIP() << "a sanitizer has the allocator";
  Cluster cluster(GetParam());
  for (int i = 0; i < kWarmUpSteps; ++i) ASSERT_EQ(cluster.Step(), absl::OkStatus());
  NoteAllocations();
  const uint64_t before = Allocations();
  for (int i = 0; i < kSteps; ++i) cluster.Step().IgnoreError();
  const uint64_t allocations = Allocations() - before;
  const std::string noted = NotedAllocations();
  EXPECT_EQ(allocations, 0) << "of " << kSteps << " steps; the first were made at\n" << noted;
  cluster.FinishPending();
  ASSERT_EQ(cluster.Step(), absl::OkStatus());
  cluster.FinishPending();
  EXPECT_EQ(cluster.global_step(), kWarmUpSteps + kSteps + 1);
}

// Every way over both transports, with one ps and with two.
std::vector<Mode> Ways() {
  std::vector<Mode> modes;
  for (const Sending sending : {Sending::kWhole, Sending::kInParts, Sending::kPipelined})
    for (const int num_ps : {1, 2})
      for (const bool shared_memory : {false, true}) {
        const char* const name = sending == Sending::kWhole     ? "Whole"
                                 : sending == Sending::kInParts ? "InParts"
                                                                : "Pipelined";
        modes.push_back({.name = absl::StrCat(name, shared_memory ? "OverShm" : "OverTcp", num_ps, "Ps"),
                         .sending = sending,
                         .num_ps = num_ps,
                         .shared_memory = shared_memory});
      }
  return modes;
}

INSTANTIATE_TEST_SUITE_P(Ways, SteadyStateTest, testing::ValuesIn(Ways()), NameOf);
INSTANTIATE_TEST_SUITE_P(
    Rules, SteadyStateTest,
    testing::Values(
        Mode{.name = "AdamOnTwoPs", .num_ps = 2, .optimizer = RuleSpec{.kind = RuleKind::kAdam}},
        Mode{.name = "ClippedByNorm", .optimizer = RuleSpec{.clip = {.kind = ClipKind::kGlobalNorm, .limit = 1}}},
        Mode{.name = "Narrow", .wire = {.gradients = WirePrecision::kBFloat16, .parameters = WirePrecision::kFloat16}},
        Mode{.name = "Synchronous",
             .gate = {.kind = GateKind::kSynchronous, .replicas_to_aggregate = 1, .total_replicas = 1}},
        Mode{.name = "BoundedStaleness", .clock_limit = 2}, Mode{.name = "Direct", .apply = ApplyChoice::kDirect},
        Mode{.name = "WindowsOfGradients", .num_ps = 2, .commit = CommitSpec{.window = 3, .worker_rule = Adam()}},
        Mode{.name = "WindowsOfDifferences",
             .optimizer = PlainAdd(),
             .commit =
                 CommitSpec{
                     .kind = CommitKind::kDelta, .window = 2, .worker_rule = Sgd(), .mean = true, .adaptive = 0.1}}),
    NameOf);

// Covers all-reduce from the gradients to their mean, in shared memory. Counts both ranks between
// barriers, so that neither begins or ends meanwhile.
TEST(SteadyReductionTest, AMeanOfGradientsAllocatesNothing) {
  if (!CountsMemory()) GTEST_SKIP() << "a sanitizer has the allocator";
  AsEveryRank(MakeShmGroup(2), [](std::unique_ptr<Collective>& group) {
    PlainSource source;
    OverlappedReduction reduction(source, *group, {.bucket_bytes = size_t{64} << 10});
    const auto step = [&] {
      reduction.Begin(/*track=*/nullptr);
      for (size_t i = kVariables.size(); i-- > 0;) reduction.Ready(i);
      return reduction.Finish();
    };
    for (int i = 0; i < kWarmUpSteps; ++i) ASSERT_EQ(step(), absl::OkStatus());
    const bool counts = group->rank() == 0;
    if (counts) NoteAllocations();
    ASSERT_EQ(group->Barrier(Soon()), absl::OkStatus());
    const uint64_t before = Allocations();
    for (int i = 0; i < kSteps; ++i) step().IgnoreError();
    group->Barrier(Soon()).IgnoreError();
    const uint64_t allocations = Allocations() - before;
    const std::string noted = counts ? NotedAllocations() : "";
    ASSERT_EQ(group->Barrier(Soon()), absl::OkStatus());
    if (!counts) return;
    EXPECT_EQ(allocations, 0) << "of " << kSteps << " steps; the first were made at\n" << noted;
    EXPECT_EQ(reduction.mean(0).size(), static_cast<size_t>(kVariables[0].bytes()));
  });
}

class CopiesTest : public testing::TestWithParam<Mode> {};

// The ps copies every byte of the parameters into the undo slot before changing it, and from the arena, under its
// stripe's lock, into the answer. Over TCP the kernel does the rest. In shared memory the worker also gathers its
// gradients into the memory from which the ps applies them, and copies the values from there to its tensors.
TEST_P(CopiesTest, NothingIsCopiedMoreThanTheTableSays) {
  if (!CountsCopies()) GTEST_SKIP() << "a sanitizer has memcpy";
  const Mode& mode = GetParam();
  Cluster cluster(mode);
  CopiedBytes();
  for (int i = 0; i < kWarmUpSteps; ++i) ASSERT_EQ(cluster.Step(), absl::OkStatus());
  cluster.FinishPending();
  const uint64_t calls_before = cluster.calls();
  const uint64_t before = CopiedBytes();
  for (int i = 0; i < kSteps; ++i) ASSERT_EQ(cluster.Step(), absl::OkStatus());
  cluster.FinishPending();
  const uint64_t copied = CopiedBytes() - before;
  const uint64_t messages = 2 * (cluster.calls() - calls_before);
  uint64_t parameters = 0;
  for (const VariableSpec& variable : kVariables)
    if (variable.kind == VariableKind::kTrainable) parameters += variable.bytes();
  const uint64_t bound = kSteps * parameters * (mode.shared_memory ? 4 : 2);
  // Messages sent in one piece with their header are staged, at most 4 KiB each.
  EXPECT_LE(copied, bound + 4096 * messages) << static_cast<double>(copied) / (kSteps * parameters) << " times";
  EXPECT_GE(copied, bound * 9 / 10) << "isn't counted";
}

INSTANTIATE_TEST_SUITE_P(Ways, CopiesTest, testing::ValuesIn(Ways()), NameOf);

}  // namespace
}  // namespace muster::steady_state_test
