// Makes the processor treat numbers below the smallest normal float (1.2e-38, "denormals") as zero. Otherwise it
// computes with them many times more slowly than with others. Training meets them: Adam's first moment of a weight
// whose gradient has become zero shrinks by a tenth a step, is denormal after 800 steps and stays so for ever, because
// the smallest numbers are rounded to themselves. TensorFlow's threads do the same. This is processor state, per
// thread.
#pragma once

namespace muster {

// Applies to the calling thread and the threads that it starts from now on. Does nothing except on x86-64 and arm64.
void FlushDenormals();

// Whether the calling thread flushes denormals.
bool FlushesDenormals();

}  // namespace muster
