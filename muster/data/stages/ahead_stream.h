// Makes elements ready ahead of whoever draws them, by one thread or several, in a ring of bounded size and in order:
// what Prefetch is, and Map with threads. Threads begin with the first Next; a full ring holds them back.
#pragma once

#include <cstddef>
#include <memory>

#include "muster/data/stages/dataset_stage.h"

namespace muster {

struct AheadOptions {
  int threads = 1;
  size_t depth = 4;  // elements that are ready or in the making

  // Of elements that are quickly made: with a few a thread, most of the time would go into waking one another
  // (measured: five times as long with 2 a thread).
  static AheadOptions ForThreads(int threads) { return {threads, 32 * static_cast<size_t>(threads)}; }
};

// The elements of `source`, in their order; an error of its comes behind the elements before it. One thread at a time
// is in its Draw, all may be in its Make.
std::unique_ptr<StageStream> MakeAheadStream(std::unique_ptr<StageStream> source, const AheadOptions& options);

}  // namespace muster
