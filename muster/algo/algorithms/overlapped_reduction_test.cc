// Groups in threads of this process. Each rank's gradients come in an order of its own.
#include "muster/algo/algorithms/overlapped_reduction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <utility>

#include "muster/collective/testing/group_in_threads.h"

namespace muster::overlapped_reduction_test {
namespace {

constexpr int kMinibatches = 4;
constexpr uint32_t kSeed = 20260101;

const std::vector<VariableSpec> kVariables = {
    {.name = "first", .shape = {701}},
    {.name = "running_mean", .shape = {5}, .kind = VariableKind::kBuffer},
    {.name = "wide", .dtype = DType::kFloat64, .shape = {33}},
    {.name = "half", .dtype = DType::kBFloat16, .shape = {65}},
    {.name = "only on rank 0", .shape = {9}},
    {.name = "nobody's", .dtype = DType::kBFloat16, .shape = {3}},
    {.name = "last", .shape = {1300}},
};
constexpr size_t kOnlyOnRankZero = 4;
constexpr size_t kNobodys = 5;

// Gives predictable gradients in an order that differs by rank and minibatch; some aren't announced.
class ScriptedSource final : public GradientSource {
 public:
  ScriptedSource(int rank, bool overwritable) : rank_(rank), overwritable_(overwritable) {
    for (const VariableSpec& variable : kVariables) gradients_.emplace_back(variable.bytes());
  }
  const std::vector<VariableSpec>& variables() const override { return kVariables; }
  MutableByteSpan value(size_t) override { return {}; }
  void AnnounceGradients(GradientReady ready) override { ready_ = std::move(ready); }
  absl::StatusOr<double> ComputeGradients() override {
    std::mt19937 random(kSeed + static_cast<uint32_t>(100 * rank_ + minibatch_));
    std::vector<size_t> order;
    for (size_t i = 0; i < kVariables.size(); ++i)
      if (!IsEmpty(i)) order.push_back(i);
    std::shuffle(order.begin(), order.end(), random);
    computed_.assign(kVariables.size(), false);
    for (const size_t variable : order) {
      gradients_[variable] = Gradient(rank_, minibatch_, variable);
      computed_[variable] = true;
      if (random() % 4 != 0) ready_(variable);
    }
    ++minibatch_;
    return 0;
  }
  ByteSpan gradient(size_t i) override { return computed_[i] ? ByteSpan(gradients_[i]) : ByteSpan(); }
  MutableByteSpan OverwritableGradient(size_t i) override {
    return overwritable_ && computed_[i] ? MutableByteSpan(gradients_[i]) : MutableByteSpan();
  }

  static std::vector<std::byte> Gradient(int rank, int minibatch, size_t variable) {
    std::vector<std::byte> bytes(kVariables[variable].bytes());
    const size_t count = kVariables[variable].elements();
    for (size_t j = 0; j < count; ++j) {
      const double number = std::sin(1.0 + rank * 31 + minibatch * 13 + static_cast<double>(variable * 7 + j));
      if (kVariables[variable].dtype == DType::kFloat64) {
        std::memcpy(bytes.data() + j * sizeof number, &number, sizeof number);
        continue;
      }
      // The upper half of a float is a bfloat16.
      const auto narrow = static_cast<float>(number);
      const size_t skipped = kVariables[variable].dtype == DType::kBFloat16 ? 2 : 0;
      std::memcpy(bytes.data() + j * (sizeof narrow - skipped), reinterpret_cast<const std::byte*>(&narrow) + skipped,
                  sizeof narrow - skipped);
    }
    return bytes;
  }

 private:
  bool IsEmpty(size_t i) const {
    return kVariables[i].kind != VariableKind::kTrainable || i == kNobodys || (i == kOnlyOnRankZero && rank_ != 0);
  }

  const int rank_;
  const bool overwritable_;
  int minibatch_ = 0;
  GradientReady ready_;
  std::vector<std::vector<std::byte>> gradients_;
  std::vector<bool> computed_;
};

double NumberAt(DType dtype, const std::vector<std::byte>& bytes, size_t j) {
  if (dtype == DType::kFloat64) {
    double number = 0;
    std::memcpy(&number, bytes.data() + j * sizeof number, sizeof number);
    return number;
  }
  float narrow = 0;
  const size_t skipped = dtype == DType::kBFloat16 ? 2 : 0;
  std::memcpy(reinterpret_cast<std::byte*>(&narrow) + skipped, bytes.data() + j * (sizeof narrow - skipped),
              sizeof narrow - skipped);
  return narrow;
}

// Returns how far the mean of numbers up to 1 may be from the exact one. For halves: half a unit in the last of their
// eight binary places, as they are rounded once, plus the error of the sum in floats.
double Tolerance(DType dtype, double exact) {
  if (dtype == DType::kFloat64) return 1e-15;
  if (dtype == DType::kFloat32) return 1e-6;
  return std::ldexp(1.0, std::ilogb(exact) - 8) + 1e-7;
}

using Means = std::vector<std::vector<std::vector<std::byte>>>;  // by minibatch and variable

struct Kind {
  const char* name;
  std::vector<std::unique_ptr<Collective>> (*make)(int size);
  int size;
};

class OverlappedReductionTest : public ::testing::TestWithParam<Kind> {
 protected:
  // Returns the means of every rank.
  std::vector<Means> Train(ReduceWhen when, size_t bucket_bytes, bool overwritable) {
    std::vector<Means> means(GetParam().size);
    AsEveryRank(GetParam().make(GetParam().size), [&](std::unique_ptr<Collective>& group) {
      ScriptedSource source(group->rank(), overwritable);
      OverlappedReduction reduction(source, *group, {bucket_bytes, when, absl::Seconds(60)});
      source.AnnounceGradients([&](size_t variable) { reduction.Ready(variable); });
      for (int minibatch = 0; minibatch < kMinibatches; ++minibatch) {
        reduction.Begin(nullptr);
        ASSERT_TRUE(source.ComputeGradients().ok());
        ASSERT_EQ(reduction.Finish(), absl::OkStatus());
        auto& mine = means[group->rank()].emplace_back();
        for (size_t i = 0; i < kVariables.size(); ++i)
          mine.emplace_back(reduction.mean(i).begin(), reduction.mean(i).end());
      }
    });
    return means;
  }
};

TEST_P(OverlappedReductionTest, TheMeanIsTheSameInEveryBitWheneverItIsTaken) {
  for (const size_t bucket_bytes : {size_t{1}, size_t{500}, size_t{1} << 20}) {
    SCOPED_TRACE(bucket_bytes);
    const std::vector<Means> after = Train(ReduceWhen::kAfter, bucket_bytes, false);
    for (const Means& rank : after) EXPECT_EQ(rank, after[0]);
    EXPECT_EQ(Train(ReduceWhen::kWithin, bucket_bytes, false), after);
    EXPECT_EQ(Train(ReduceWhen::kWithin, bucket_bytes, true), after);
    EXPECT_EQ(Train(ReduceWhen::kBeside, bucket_bytes, true), after);
  }
}

TEST_P(OverlappedReductionTest, IsTheMean) {
  const std::vector<Means> means = Train(ReduceWhen::kBeside, 500, true);
  for (int minibatch = 0; minibatch < kMinibatches; ++minibatch) {
    for (size_t variable = 0; variable < kVariables.size(); ++variable) {
      const std::vector<std::byte>& mean = means[0][minibatch][variable];
      if (variable == kNobodys || kVariables[variable].kind != VariableKind::kTrainable) {
        EXPECT_TRUE(mean.empty());
        continue;
      }
      ASSERT_EQ(mean.size(), static_cast<size_t>(kVariables[variable].bytes()));
      const DType dtype = kVariables[variable].dtype;
      std::vector<double> exact(kVariables[variable].elements());
      for (int rank = 0; rank < (variable == kOnlyOnRankZero ? 1 : GetParam().size); ++rank) {
        const std::vector<std::byte> gradient = ScriptedSource::Gradient(rank, minibatch, variable);
        for (size_t j = 0; j < exact.size(); ++j) exact[j] += NumberAt(dtype, gradient, j) / GetParam().size;
      }
      for (size_t j = 0; j < exact.size(); ++j)
        EXPECT_NEAR(NumberAt(dtype, mean, j), exact[j], Tolerance(dtype, exact[j])) << kVariables[variable].name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, OverlappedReductionTest,
                         ::testing::Values(Kind{"Shm2", MakeShmGroup, 2}, Kind{"Shm3", MakeShmGroup, 3},
                                           Kind{"Ring2", MakeRingGroup, 2}, Kind{"Ring3", MakeRingGroup, 3}),
                         [](const auto& info) { return info.param.name; });

// A group of one that counts finished all-reduces.
class CountingGroup final : public Collective {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string kind() const override { return "counting"; }
  absl::Status AllReduce(const Segments& in, const MutableSegments& out, DType, Reduction, absl::Time) override {
    for (size_t i = 0; i < in.size(); ++i) std::memmove(out[i].data(), in[i].data(), in[i].size());
    const MutexLock lock(mutex_);
    ++reduced_;
    changed_.NotifyAll();
    return failing ? absl::UnavailableError("worker:1 has died") : absl::OkStatus();
  }
  absl::Status ReduceScatter(const Segments&, const MutableSegments&, DType, Reduction, absl::Time) override {
    return absl::OkStatus();
  }
  absl::Status AllGather(const Segments&, const MutableSegments&, size_t, absl::Time) override {
    return absl::OkStatus();
  }
  absl::Status Broadcast(const MutableSegments&, int, absl::Time) override { return absl::OkStatus(); }
  absl::Status Barrier(absl::Time) override { return absl::OkStatus(); }
  void Leave() override {}

  int reduced() {
    const MutexLock lock(mutex_);
    return reduced_;
  }
  void AwaitReduced(int count) {
    const MutexLock lock(mutex_);
    while (reduced_ < count) changed_.Wait(mutex_);
  }
  bool failing = false;

 private:
  Mutex mutex_;
  CondVar changed_;
  int reduced_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Four variables, each with its own bucket, announced from the last to the first.
class StepwiseSource final : public GradientSource {
 public:
  const std::vector<VariableSpec>& variables() const override { return variables_; }
  MutableByteSpan value(size_t) override { return {}; }
  void AnnounceGradients(GradientReady ready) override { ready_ = std::move(ready); }
  absl::StatusOr<double> ComputeGradients() override {
    for (size_t i = variables_.size(); i-- > 0;) {
      ready_(i);
      if (on_announced) on_announced(i);
    }
    return 0;
  }
  ByteSpan gradient(size_t i) override { return AsBytes(&gradients_[i], 1); }
  std::function<void(size_t)> on_announced;

 private:
  const std::vector<VariableSpec> variables_ = {{.name = "a", .shape = {1}},
                                                {.name = "b", .shape = {1}},
                                                {.name = "c", .shape = {1}},
                                                {.name = "d", .shape = {1}}};
  const float gradients_[4] = {1, 2, 3, 4};
  GradientReady ready_;
};

class OverlapTest : public ::testing::Test {
 protected:
  // The first minibatch teaches the order.
  OverlappedReduction& Learnt(ReduceWhen when) {
    reduction_ = std::make_unique<OverlappedReduction>(
        source_, group_, ReductionOptions{.bucket_bytes = 1, .when = when, .patience = absl::Seconds(60)});
    source_.AnnounceGradients([this](size_t variable) { reduction_->Ready(variable); });
    reduction_->Begin(nullptr);
    EXPECT_TRUE(source_.ComputeGradients().ok());
    EXPECT_EQ(reduction_->Finish(), absl::OkStatus());
    EXPECT_EQ(group_.reduced(), 4);
    reduction_->Begin(nullptr);
    return *reduction_;
  }

  StepwiseSource source_;
  CountingGroup group_;
  std::unique_ptr<OverlappedReduction> reduction_;
};

TEST_F(OverlapTest, WithinTheBackwardPassABucketIsAveragedBeforeTheNextGradientIsComputed) {
  OverlappedReduction& reduction = Learnt(ReduceWhen::kWithin);
  source_.on_announced = [&](size_t variable) { EXPECT_EQ(group_.reduced(), 4 + 4 - static_cast<int>(variable)); };
  ASSERT_TRUE(source_.ComputeGradients().ok());
  EXPECT_EQ(reduction.Finish(), absl::OkStatus());
  EXPECT_EQ(group_.reduced(), 8);
}

// Would hang if the bucket waited for the backward pass.
TEST_F(OverlapTest, BesideItABucketIsAveragedWhileTheTrainingThreadIsInTheBackwardPass) {
  OverlappedReduction& reduction = Learnt(ReduceWhen::kBeside);
  source_.on_announced = [&](size_t variable) { group_.AwaitReduced(4 + 4 - static_cast<int>(variable)); };
  ASSERT_TRUE(source_.ComputeGradients().ok());
  EXPECT_EQ(reduction.Finish(), absl::OkStatus());
}

TEST_F(OverlapTest, AfterItNothingIsAveragedBefore) {
  OverlappedReduction& reduction = Learnt(ReduceWhen::kAfter);
  source_.on_announced = [&](size_t) { EXPECT_EQ(group_.reduced(), 4); };
  ASSERT_TRUE(source_.ComputeGradients().ok());
  EXPECT_EQ(reduction.Finish(), absl::OkStatus());
  EXPECT_EQ(group_.reduced(), 8);
}

TEST_F(OverlapTest, AFailureEndsTheMinibatchAndNothingMoreIsTried) {
  for (const ReduceWhen when : {ReduceWhen::kAfter, ReduceWhen::kWithin, ReduceWhen::kBeside}) {
    CountingGroup group;
    OverlappedReduction reduction(source_, group, {.bucket_bytes = 1, .when = when, .patience = absl::Seconds(60)});
    source_.AnnounceGradients([&](size_t variable) { reduction.Ready(variable); });
    reduction.Begin(nullptr);
    ASSERT_TRUE(source_.ComputeGradients().ok());
    ASSERT_EQ(reduction.Finish(), absl::OkStatus());
    group.failing = true;
    reduction.Begin(nullptr);
    ASSERT_TRUE(source_.ComputeGradients().ok());
    EXPECT_EQ(reduction.Finish(), absl::UnavailableError("worker:1 has died"));
    EXPECT_EQ(group.reduced(), 5);
  }
}

TEST_F(OverlapTest, AMinibatchGivenUpBeforeItsFirstBucketLeavesTheGroupInStep) {
  OverlappedReduction& reduction = Learnt(ReduceWhen::kWithin);
  EXPECT_TRUE(reduction.Abandon());
  reduction.Begin(nullptr);
  reduction.Ready(2);  // it isn't this bucket's turn
  EXPECT_TRUE(reduction.Abandon());
  reduction.Begin(nullptr);
  reduction.Ready(3);
  EXPECT_FALSE(reduction.Abandon());
}

}  // namespace
}  // namespace muster::overlapped_reduction_test
