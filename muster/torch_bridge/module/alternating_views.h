// The two views of a variable's memory between which it alternates, as in pipelined training, so that a step makes no
// tensors. A view keeps its memory alive. So memory that a variable has left for good (a ps's after a recovery, say) is
// released at once: only a view to which the variable has returned is kept, until it moves to a third memory. Not
// thread-safe.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "muster/base/bytes.h"

namespace muster {

class AlternatingViews {
 public:
  // Makes the variable's `view` one of `memory`: the kept view, or else what make() returns.
  void Move(torch::Tensor& view, MutableByteSpan memory, const std::shared_ptr<void>& owner,
            absl::FunctionRef<torch::Tensor()> make) {
    if (place_.Is(memory, owner)) return;
    const bool back = other_place_.Is(memory, owner);
    torch::Tensor next = back && other_.defined() ? other_ : make();
    other_ = back ? view : torch::Tensor();
    view = std::move(next);
    other_place_ = std::exchange(place_, Place{memory.data(), owner});
  }

 private:
  // Identifies memory without keeping it. The owner counts, too: freed memory may be allocated again at the same
  // address.
  struct Place {
    bool Is(MutableByteSpan other, const std::shared_ptr<void>& others) const {
      return memory == other.data() && !owner.owner_before(others) && !others.owner_before(owner);
    }
    const void* memory = nullptr;
    std::weak_ptr<void> owner;
  };

  Place place_;          // of the view; empty: it was never moved
  Place other_place_;    // of the previous view
  torch::Tensor other_;  // the previous view, once the variable has returned
};

}  // namespace muster
