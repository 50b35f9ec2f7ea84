// Prepares elements ahead of the thread that draws them, by one thread or several, in order and in a ring of bounded
// size. Implements Prefetch, and Map with threads. Threads begin with the first Next; a full ring blocks them.
#pragma once

#include <cstddef>
#include <memory>

#include "muster/data/stages/dataset_stage.h"

namespace muster {

struct AheadOptions {
  int threads = 1;
  size_t depth = 4;  // elements that are ready or being made

  // For elements that are made quickly: with only a few per thread, most of the time would go into threads waking each
  // other (measured: five times as long with 2 per thread).
  static AheadOptions ForThreads(int threads) { return {threads, 32 * static_cast<size_t>(threads)}; }
};

// Returns the elements of `source` in their order; an error comes after the elements before it. One thread at a time is
// in source's Draw; all may be in its Make.
std::unique_ptr<StageStream> MakeAheadStream(std::unique_ptr<StageStream> source, const AheadOptions& options);

}  // namespace muster
