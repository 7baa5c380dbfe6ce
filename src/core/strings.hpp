// Kernels of strings: the dynamic programme of common subsequences with gaps.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kernelweave {

// Texts one after the other; text i has the letters from start[i] to start[i + 1].
struct Texts {
    const std::uint32_t* letters;
    const std::int64_t* start;
    std::size_t count;
};

// out[i, j] = sum over common subsequences of `length` letters of decay^(stretch in left i + stretch in right j).
// With `symmetric` left and right are the same texts, and each pair is computed once.
void subsequence_values(const Texts& left, const Texts& right, std::size_t length, double decay, bool symmetric,
                        double* out);

// The same of every text with itself.
void subsequence_diagonal(const Texts& texts, std::size_t length, double decay, double* out);

}  // namespace kernelweave
