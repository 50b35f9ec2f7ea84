#include "muster/estimator/model/input_fn.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/mutex.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/train/threads/error.h"

namespace muster {
namespace {

// A Dataset without Batch yields single rows, whose first dimension isn't the batch.
absl::Status CheckInputIsBatch(const Example& example) {
  std::optional<int64_t> rows;
  const auto check = [&rows](const std::string& name, const Array& array) {
    const char* remedy = "; the elements of an input function's Dataset are batches: end it with Batch";
    if (array.shape().empty())
      return absl::InvalidArgumentError(absl::StrCat("'", name, "' is a single value without a batch's rows", remedy));
    const int64_t here = array.shape().front();
    if (rows.value_or(here) != here)
      return absl::InvalidArgumentError(
          absl::StrCat("'", name, "' has ", here, " rows, but the features before it have ", *rows, remedy));
    rows = here;
    return absl::OkStatus();
  };
  for (const Feature& feature : example.features) RETURN_IF_ERROR(check(feature.name, feature.value));
  return example.has_labels ? check("labels", example.labels) : absl::OkStatus();
}

}  // namespace

// Batches whose tensors are gone, to be filled again. Thread-safe: the last tensor may die on a thread of autograd's.
class InputReader::SpareExamples : public std::enable_shared_from_this<SpareExamples> {
 public:
  // Returns an example that comes back here when it is no longer referenced.
  std::shared_ptr<Example> Take() {
    std::unique_ptr<Example> example;
    {
      MutexLock lock(mutex_);
      if (!spare_.empty()) {
        example = std::move(spare_.back());
        spare_.pop_back();
      }
    }
    if (!example) example = std::make_unique<Example>();
    return {example.release(),
            [pool = shared_from_this()](Example* back) { pool->Put(std::unique_ptr<Example>(back)); }};
  }

 private:
  void Put(std::unique_ptr<Example> example) {
    MutexLock lock(mutex_);
    spare_.push_back(std::move(example));
  }

  Mutex mutex_;
  std::vector<std::unique_ptr<Example>> spare_ ABSL_GUARDED_BY(mutex_);
};

struct InputReader::State {
  std::string what;
  std::optional<Dataset> dataset;
  std::unique_ptr<ExampleStream> stream;
  std::shared_ptr<SpareExamples> spare = std::make_shared<SpareExamples>();
  bool shares = false;                // shares an epoch with other workers
  bool at_restored_position = false;  // nothing was read since
  bool any = false;                   // there was a batch, in this life or the previous one
  bool ended = false;

  [[noreturn]] void Fail(const absl::Status& status) const {
    absl::Status named(status.code(), absl::StrCat(what, ": ", status.message()));
    throw Error(IsWrongConfiguration(status) ? AsWrongConfiguration(std::move(named)) : std::move(named));
  }
  void Open() {
    auto opened = dataset->Open();
    if (!opened.ok()) Fail(opened.status());
    stream = *std::move(opened);
  }
  bool Fill(Example& into) const {
    const absl::StatusOr<bool> more = stream->Next(into);
    if (!more.ok()) Fail(more.status());
    return *more;
  }
};

InputReader::InputReader(const InputFn& input_fn, const InputContext& context, std::string what)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.what = std::move(what);
  if (!input_fn) state.Fail(WrongOptionError("there is none; give a function that makes a Dataset"));
  InputContext counted = context;
  if (context.share)
    counted.share = [&state, share = context.share](int64_t rows, int64_t rows_per_unit, int64_t epochs) {
      if (std::exchange(state.shares, true)) state.Fail(WrongOptionError("shares work twice; accepted: once"));
      return share(rows, rows_per_unit, epochs);
    };
  state.dataset = input_fn(counted);
  state.Open();
}

InputReader::~InputReader() {
  if (state_->stream) state_->stream->Stop();
}

bool InputReader::Next(Minibatch& into) {
  State& state = *state_;
  into = {};  // the memory of the previous batch can be filled again
  if (state.ended) return false;
  std::shared_ptr<Example> example = state.spare->Take();
  bool more = state.Fill(*example);
  if (!more && state.at_restored_position && !state.shares) {
    LogInfo(state.what, " had ended where the checkpoint was saved: it is read from the beginning");
    state.Open();
    more = state.Fill(*example);
    state.any = false;
  }
  state.at_restored_position = false;
  if (!more && !state.any && !state.shares)
    state.Fail(absl::InvalidArgumentError(absl::StrCat("yielded nothing: its Dataset ", state.dataset->Describe(),
                                                       " has not a single batch; look at its files, Shard, Skip and "
                                                       "Take, and at Batch's drop_remainder")));
  state.ended = !more;
  if (!more) return false;
  if (const absl::Status batch = CheckInputIsBatch(*example); !batch.ok()) state.Fail(batch);
  state.any = true;
  into = MinibatchOf(std::move(example));
  return true;
}

void InputReader::StepOver() {
  if (const absl::Status told = state_->stream->StepOver(); !told.ok()) state_->Fail(told);
}

bool InputReader::shares() const { return state_->shares; }

Saveable InputReader::Position() {
  State* state = state_.get();
  return {"input_position", [state] { return state->stream->SavePosition(); },
          [state](const std::string& saved) {
            RETURN_IF_ERROR(state->stream->RestorePosition(saved));
            state->at_restored_position = state->any = true;
            return absl::OkStatus();
          }};
}

}  // namespace muster
