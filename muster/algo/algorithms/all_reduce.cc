#include "muster/algo/algorithms/all_reduce.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/algo/algorithms/group_wait.h"
#include "muster/algo/sources/traced_gradients.h"
#include "muster/algo/sources/train_in_place.h"
#include "muster/base/clock.h"
#include "muster/base/log.h"
#include "muster/base/os/processors.h"
#include "muster/base/status_macros.h"
#include "muster/store/client/checkpoint_calls.h"
#include "muster/store/client/cut_leader.h"

namespace muster {
namespace {

// Precedes the chief's state.
struct StateSizes {
  int64_t global_step = 0;
  uint64_t steps = 0;  // step counters of stripes
  uint64_t bytes = 0;  // values, then slots
};

// Turns DeadlineExceeded into the code that means "worth trying again".
absl::Status WorthTryingAgain(const absl::Status& status) {
  if (!absl::IsDeadlineExceeded(status)) return status;
  return absl::UnavailableError(status.message());
}

// A communication thread takes time from the computing threads, and each bucket wakes it. That pays off only if each
// worker has a processor for it besides the one on which it computes.
ReduceWhen Chosen(const AllReduceOptions& options, int workers) {
  if (options.when != ReduceWhen::kAuto) return options.when;
  const int processors = options.processors > 0 ? options.processors : UsableProcessors().count;
  return processors >= 2 * workers ? ReduceWhen::kBeside : ReduceWhen::kWithin;
}

template <typename T>
MutableSegments OneSegment(T* data, size_t count) {
  return {AsMutableBytes(data, count)};
}

}  // namespace

AllReduceAlgorithm::AllReduceAlgorithm(GradientSource& source, PlacementResult placement,
                                       const OptimizerSpec& optimizer, Join join, const AllReduceOptions& options)
    : source_(source),
      binding_{source.variables(), std::move(placement), optimizer, {}},
      join_(std::move(join)),
      options_(options) {
  for (size_t i = 0; i < binding_.variables.size(); ++i) binding_.values.push_back(source.value(i));
}

AllReduceAlgorithm::~AllReduceAlgorithm() { source_.AnnounceGradients({}); }

absl::Time AllReduceAlgorithm::Deadline() const { return RealClock().Now() + options_.patience; }

absl::Status AllReduceAlgorithm::ShareModel(StoreClient& client) {
  for (const VariableSpec& variable : binding_.variables)
    if (variable.kind == VariableKind::kRows)
      return absl::FailedPreconditionError(
          absl::StrCat("'", variable.name,
                       "' is a table of rows, which all-reduce doesn't support: train it on parameter servers "
                       "(Asynchronous), or use a dense embedding"));
  if (!group_) {
    auto joined = join_(Deadline());
    RETURN_IF_ERROR(WorthTryingAgain(joined.status()));
    group_ = *std::move(joined);
    group_->SetOnWait(GroupWait(client.track(), options_.patience));
  }
  const auto global_step = group_->rank() == 0 ? SendModel(client) : ReceiveModel(client);
  RETURN_IF_ERROR(WorthTryingAgain(global_step.status()));
  LogInfo("Training with ", group_->size(), " workers by all-reduce over ",
          group_->kind() == "shm" ? "shared memory" : "a ring of connections", ", from global step ", *global_step,
          ". Each updates its own copy of the model.");
  return absl::OkStatus();
}

absl::Status AllReduceAlgorithm::ShareText(std::string& text) {
  uint64_t bytes = text.size();
  RETURN_IF_ERROR(group_->Broadcast(OneSegment(&bytes, 1), /*root=*/0, Deadline()));
  text.resize(bytes);
  return group_->Broadcast(OneSegment(text.data(), text.size()), /*root=*/0, Deadline());
}

absl::StatusOr<int64_t> AllReduceAlgorithm::SendModel(StoreClient& client) {
  std::string model = Encode(client.ModelOf(0));
  RETURN_IF_ERROR(ShareText(model));
  ASSIGN_OR_RETURN(const CheckpointCut cut, CutCheckpoint(client));
  ASSIGN_OR_RETURN(PartSnapshot state, ExportPart(client, 0, cut.hold));
  StateSizes sizes{cut.global_step, state.steps.size(), state.bytes.size()};
  RETURN_IF_ERROR(group_->Broadcast(OneSegment(&sizes, 1), /*root=*/0, Deadline()));
  RETURN_IF_ERROR(
      group_->Broadcast({AsMutableBytes(state.steps.data(), state.steps.size()), state.bytes}, /*root=*/0, Deadline()));
  return cut.global_step;
}

absl::StatusOr<int64_t> AllReduceAlgorithm::ReceiveModel(StoreClient& client) {
  std::string text;
  RETURN_IF_ERROR(ShareText(text));
  StoreModel chiefs;
  RETURN_IF_ERROR(Decode(text, chiefs));
  const StoreModel mine = client.ModelOf(0);
  RETURN_IF_ERROR(CompareModels(chiefs, mine, absl::StrCat("rank ", group_->rank())));
  StateSizes sizes;
  RETURN_IF_ERROR(group_->Broadcast(OneSegment(&sizes, 1), /*root=*/0, Deadline()));
  if (sizes.steps != static_cast<uint64_t>(NumStripes(mine)) || sizes.bytes != ValueBytes(mine) + SlotBytes(mine))
    return absl::DataLossError(absl::StrCat("the chief sends a state of ", sizes.bytes, " bytes; this model has ",
                                            ValueBytes(mine) + SlotBytes(mine)));
  std::vector<RestoredPart> parts(1);
  parts[0].with_slots = true;
  parts[0].snapshot.steps.resize(sizes.steps);
  parts[0].snapshot.bytes.resize(sizes.bytes);
  RETURN_IF_ERROR(
      group_->Broadcast({AsMutableBytes(parts[0].snapshot.steps.data(), sizes.steps), parts[0].snapshot.bytes},
                        /*root=*/0, Deadline()));
  RETURN_IF_ERROR(client.Initialize(sizes.global_step, sizes.global_step, &parts));
  return sizes.global_step;
}

void AllReduceAlgorithm::Begin(StoreClient& client) {
  TrainInPlace(client, source_, binding_);
  out_of_step_ = false;
  const int workers = options_.workers_on_this_host > 0 ? options_.workers_on_this_host : group_->size();
  reduction_ = std::make_unique<OverlappedReduction>(
      source_, *group_,
      ReductionOptions{
          .bucket_bytes = options_.bucket_bytes, .when = Chosen(options_, workers), .patience = options_.patience});
  source_.AnnounceGradients([this](size_t variable) {
    if (reduction_) reduction_->Ready(variable);
  });
}

absl::StatusOr<StepResult> AllReduceAlgorithm::Step(StoreClient& client) {
  if (out_of_step_)
    return absl::FailedPreconditionError(
        "a step of this worker has failed in its middle, and the others can't go on with it: start all again, from the "
        "last checkpoint");
  if (!reduction_)
    return absl::FailedPreconditionError(
        "this worker has not begun to train: ShareModel and Begin come before the first step");
  reduction_->Begin(client.track());
  const absl::StatusOr<double> loss = TracedGradients(source_, client);
  if (!loss.ok()) {
    if (!reduction_->Abandon()) ReleaseGroup();
    return loss.status();
  }
  RETURN_IF_ERROR(WorthTryingAgain(reduction_->Finish()));
  const auto mean = [this](size_t variable) { return reduction_->mean(variable); };
  ShowGradients(client, gradient_tap(), {source_.variables(), mean, {}});
  ASSIGN_OR_RETURN(const StoreClient::StepResult pushed, client.PushPull(mean, {.publish_buffers = true}));
  return StepResult{*loss, pushed.global_step, pushed.staleness};
}

// To the other workers this looks like this worker's death.
void AllReduceAlgorithm::ReleaseGroup() {
  out_of_step_ = true;
  reduction_.reset();
  group_.reset();
}

void AllReduceAlgorithm::End() {
  if (group_) group_->Leave();
}

}  // namespace muster
