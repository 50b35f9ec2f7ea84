// Numbers smaller than the smallest normal float (1.2e-38, "denormals") can be taken for zero by the processor, which
// otherwise computes with them many times slower than with others. Training meets them by itself: Adam's first moment
// of a weight whose gradient has become zero shrinks by a tenth a step, is denormal after 800 steps and stays so for
// ever, as the smallest numbers are rounded to themselves. TensorFlow's threads do the same. State of the processor.
#pragma once

namespace muster {

// For the calling thread, and those that it starts from now on. Does nothing on processors other than x86-64 and arm64.
void FlushDenormals();

// Whether the calling thread computes so.
bool FlushesDenormals();

}  // namespace muster
