// Matrices from outside, read once: are they what they should be, and their rounded lower triangle.
#pragma once

#include <cstddef>

namespace kernelweave {

struct AdmitReport {
    bool minors;       // |K_ij| <= roots_i roots_j in the lower triangle; false where K_ij is NaN there
    double asymmetry;  // left'K right - right'K left over these rows: over all rows 0 if K = K', NaN if K has one
};

// Inspect rows [start, stop) of the n x n matrix K; with out given, also keep their lower triangle as `pack` does.
template <class T>
AdmitReport admit(const double* K, std::size_t n, std::size_t start, std::size_t stop, const double* roots,
                  const double* left, const double* right, const double* shift, T* out);

}  // namespace kernelweave
