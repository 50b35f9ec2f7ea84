// A process that makes elastic exchanges in an arena for its clients, as a ps does, is killed with SIGKILL at every
// point of an exchange; its successor is killed at points of its own recovery and of the retry. The final answers to
// the workers, and the centre, must be what applying each exchange once gives: the sum of centre and workers is
// preserved to the bit. This same check must also notice each deliberate error.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "muster/store/arena/arena.h"
#include "muster/store/arena/count_lock.h"
#include "muster/store/service/elastic_force.h"
#include "tests/process/testing/killed_processes.h"
#include "tests/process/testing/left_behind.h"

namespace muster::elastic_kill_test {
namespace {

constexpr int kWorkers = 2;
constexpr double kAlpha = 0.5;
constexpr uint64_t kSeed = 20240601;
// One stripe of four blocks and a short one; one stripe of doubles.
constexpr int64_t kElements = kStripeElements + 10;
constexpr int64_t kDoubles = 3000;
constexpr int kSlices = 2;

// Dies at the n-th point that it passes; 0: never.
class DyingProbe final : public ArenaProbe {
 public:
  DyingProbe(KillLog& log, int at, std::optional<PlantedBug> bug) : log_(log), left_(at), bug_(bug) {}
  void At(ArenaPoint point) override {
    if (left_ == 0 || --left_ > 0) return;
    DieAt(point, log_);
  }
  bool Has(PlantedBug bug) const override { return bug_ == bug; }
  bool dying() const override { return false; }

 private:
  KillLog& log_;
  int left_;
  const std::optional<PlantedBug> bug_;
};

StoreModel TestModel() {
  const std::vector<VariableSpec> variables = {{.name = "w", .shape = {kElements}},
                                               {.name = "d", .dtype = DType::kFloat64, .shape = {kDoubles}}};
  StoreModel model = ModelOfPs(variables, *PlaceVariables(variables, 1, Placement::kRoundRobin, {}),
                               RuleSpec{.kind = RuleKind::kAdd}, 0);
  model.exchanges = true;
  return model;
}

// The elements of all slices as whole numbers, so small that floats hold them, their sums and their halves exactly.
using Numbers = std::vector<int64_t>;

template <typename T>
void Put(std::vector<std::byte>& bytes, int64_t number) {
  const T value = static_cast<T>(number);
  bytes.resize(bytes.size() + sizeof value);
  std::memcpy(bytes.data() + bytes.size() - sizeof value, &value, sizeof value);
}

// An element that isn't a whole number becomes one that no exchange can give.
template <typename T>
int64_t Get(ByteSpan bytes, int64_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
  const auto number = static_cast<int64_t>(value);
  return static_cast<T>(number) == value ? number : std::numeric_limits<int32_t>::min();
}

std::array<std::vector<std::byte>, kSlices> Encoded(const Numbers& numbers) {
  std::array<std::vector<std::byte>, kSlices> slices;
  for (int64_t i = 0; i < kElements; ++i) Put<float>(slices[0], numbers[i]);
  for (int64_t i = kElements; i < kElements + kDoubles; ++i) Put<double>(slices[1], numbers[i]);
  return slices;
}

void AddDecoded(int slice, ByteSpan bytes, Numbers& numbers) {
  for (int64_t i = 0; i < (slice == 0 ? kElements : kDoubles); ++i)
    numbers.push_back(slice == 0 ? Get<float>(bytes, i) : Get<double>(bytes, i));
}

struct Exchange {
  int worker = 0;
  uint64_t sequence = 0;
  Numbers theta;
};

// One life of the serving process: does for each of the requests, in that order, what a ps does.
void Serve(int fd, const std::vector<Exchange>& requests, DyingProbe& probe) {
  const auto arena = *Arena::Attach(*ArenaMemory::Adopt(fd), kWorkers, &probe);
  for (int worker = 0; worker < kWorkers; ++worker) arena->RecoverWriter(worker);
  for (const Exchange& request : requests) {
    const auto theta = Encoded(request.theta);
    for (int slice = 0; slice < kSlices; ++slice) {
      const ElasticForce force(kAlpha, ExchangeAnswer(*arena, request.worker, slice));
      const ArenaPush push = {.client = request.worker,
                              .sequence = request.sequence,
                              .generation = 1,
                              .learning_rate = 1,
                              .change = &force};
      arena->Apply(slice, push, theta[slice], {});
    }
    Arena::CountLock(*arena).Add({.client = request.worker,
                                  .sequence = request.sequence,
                                  .generation = 1,
                                  .update = true,
                                  .applied = true,
                                  .minibatches = 1});
  }
}

class ElasticKillTest : public ::testing::Test {
 protected:
  ElasticKillTest() {
    memory_ = *ArenaMemory::Create();
    arena_ = *Arena::Create(TestModel(), kWorkers, *ArenaMemory::Adopt(memory_->fd()));
    const std::vector<std::byte> zeros(arena_->layout().value_bytes());
    arena_->Load({.generation = 1, .values = zeros});
  }

  // Returns true if it has served them all, false if it died at its `dies_at`-th point.
  bool Live(const std::vector<Exchange>& requests, int dies_at, std::optional<PlantedBug> bug) {
    const pid_t pid = Fork([&] {
      DyingProbe probe(*log_, dies_at, bug);
      Serve(memory_->fd(), requests, probe);
    });
    int status = 0;
    waitpid(pid, &status, 0);
    if (WIFEXITED(status)) return WEXITSTATUS(status) == 0;
    EXPECT_EQ(WTERMSIG(status), SIGKILL);
    return false;
  }

  Numbers Centre() {
    Numbers centre;
    for (int slice = 0; slice < kSlices; ++slice) {
      std::vector<std::byte> bytes(arena_->layout().slices()[slice].bytes);
      arena_->Read(slice, bytes);
      AddDecoded(slice, bytes, centre);
    }
    return centre;
  }
  Numbers Answer(int worker) const {
    Numbers moved;
    for (int slice = 0; slice < kSlices; ++slice) AddDecoded(slice, ExchangeAnswer(*arena_, worker, slice), moved);
    return moved;
  }

  // Makes steps of any length, except that the distance to the centre stays a multiple of four: so its half, and the
  // half of what the other worker's exchange leaves of it, are whole numbers.
  Exchange Train(int worker, const Numbers& centre) {
    for (size_t i = 0; i < centre.size(); ++i) {
      int64_t& theta = theta_[worker][i];
      int64_t step = static_cast<int64_t>(random_() % 41) - 20;
      step -= (theta + step - centre[i]) % 4;
      theta += step;
      trained_[i] += step;
    }
    ++exchanges_;
    return {worker, ++sequences_[worker], theta_[worker]};
  }

  // `first` was begun by a process that died at its point `first_death`; `second` comes before its retry, in a life
  // that dies at `second_death`; then both are retried. Returns how many results are wrong.
  int Round(int first_death, int second_death, std::optional<PlantedBug> bug) {
    const Numbers before = Centre();
    const int worker = first_death % kWorkers;
    const Exchange first = Train(worker, before);
    const Exchange second = Train(1 - worker, before);
    reached_first_ = !Live({first}, first_death, bug);
    reached_second_ = !Live({second, first}, second_death, bug);
    int wrong = Live({second, first}, 0, bug) ? 0 : 1;
    const Numbers after = Centre();
    const Numbers to_first = Answer(first.worker);
    const Numbers to_second = Answer(second.worker);
    for (size_t i = 0; i < before.size(); ++i) {
      // In each stripe either of them may have been first.
      const int64_t whole_first = (first.theta[i] - before[i]) / 2;
      const int64_t whole_second = (second.theta[i] - before[i]) / 2;
      const bool one_way = to_first[i] == whole_first && to_second[i] == whole_second - whole_first / 2;
      const bool other_way = to_second[i] == whole_second && to_first[i] == whole_first - whole_second / 2;
      wrong += !one_way && !other_way;
      wrong += after[i] != before[i] + to_first[i] + to_second[i];
      theta_[first.worker][i] -= to_first[i];
      theta_[second.worker][i] -= to_second[i];
      wrong += theta_[0][i] + theta_[1][i] + after[i] != trained_[i];
    }
    const ArenaCounters& counters = arena_->header().counters;
    wrong += counters.updates != exchanges_ || counters.minibatches != static_cast<int64_t>(exchanges_);
    for (int i = 0; i < kWorkers; ++i) wrong += arena_->client(i).numbers.last_applied != sequences_[i];
    return wrong;
  }

  // Combines every point for the first death with every third for the second. Stops at the first error.
  int Rounds(std::optional<PlantedBug> bug = std::nullopt) {
    reached_first_ = true;
    for (int first = 1; reached_first_; ++first) {
      reached_second_ = true;
      for (int second = 1 + first % 3; reached_second_; second += 3) {
        if (const int wrong = Round(first, second, bug); wrong > 0) return wrong;
        if (!reached_first_) return 0;
      }
    }
    return 0;
  }

  SharedWithChildren<KillLog> log_;

 private:
  const LeftBehind left_behind_;
  std::unique_ptr<ArenaMemory> memory_;
  std::unique_ptr<Arena> arena_;
  std::minstd_rand random_{kSeed};
  std::array<Numbers, kWorkers> theta_ = {Numbers(kElements + kDoubles), Numbers(kElements + kDoubles)};
  Numbers trained_ = Numbers(kElements + kDoubles);  // the sum of all steps of all workers
  std::array<uint64_t, kWorkers> sequences_ = {};
  uint64_t exchanges_ = 0;
  bool reached_first_ = true, reached_second_ = true;  // the requested death happened
};

TEST_F(ElasticKillTest, NothingIsLostWhereverTheExchangeIsKilled) {
  EXPECT_EQ(Rounds(), 0);
  ExpectDeathsAt(kUpdatePoints, *log_);
}

// Without kSkipRestore and kSkipOwnRecovery: as one process writes for all, the other one repairs what the first omits.
class PlantedExchangeBugTest : public ElasticKillTest, public ::testing::WithParamInterface<PlantedBug> {};

TEST_P(PlantedExchangeBugTest, IsSeen) { EXPECT_GT(Rounds(GetParam()), 0); }

std::string NameOfBug(const ::testing::TestParamInfo<PlantedBug>& info) {
  switch (info.param) {
    case PlantedBug::kIgnoreSequence:
      return "IgnoreSequence";
    case PlantedBug::kCommitBeforeHeader:
      return "CommitBeforeHeader";
    case PlantedBug::kCountTwice:
      return "CountTwice";
    default:
      return "ForgetAnswers";
  }
}

INSTANTIATE_TEST_SUITE_P(All, PlantedExchangeBugTest,
                         ::testing::Values(PlantedBug::kIgnoreSequence, PlantedBug::kCommitBeforeHeader,
                                           PlantedBug::kCountTwice, PlantedBug::kForgetAnswers),
                         NameOfBug);

}  // namespace
}  // namespace muster::elastic_kill_test
