#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/data/stages/ahead_stream.h"
#include "muster/data/stages/stage_after.h"
#include "muster/data/stages/stages.h"

namespace muster {
namespace {

class PrefetchStage final : public StageAfter {
 public:
  PrefetchStage(StagePtr before, size_t depth) : StageAfter(std::move(before)), depth_(depth) {}

  std::string Name() const override { return absl::StrCat("prefetch(", depth_, ")"); }
  bool ChangesElements() const override { return false; }
  absl::StatusOr<std::unique_ptr<StageStream>> MakeStream() const override {
    ASSIGN_OR_RETURN(std::unique_ptr<StageStream> elements, before()->MakeStream());
    return MakeAheadStream(std::move(elements), {.threads = 1, .depth = depth_});
  }

 private:
  const size_t depth_;
};

}  // namespace

StagePtr MakePrefetchStage(StagePtr before, size_t depth) {
  return depth == 0 ? before : std::make_shared<PrefetchStage>(std::move(before), depth);
}

}  // namespace muster
