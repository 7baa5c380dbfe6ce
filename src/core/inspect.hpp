// One look at a matrix from outside: is it finite, symmetric, and free of visibly negative 2 x 2 minors?
#pragma once

#include <cstddef>

namespace kernelweave {

struct InspectReport {
    bool clean;      // |K_ij| <= roots_i roots_j and |K_ij - K_ji| <= limit everywhere; false for NaN
    bool symmetric;  // K_ij == K_ji exactly, everywhere
};

InspectReport inspect(const double* K, std::size_t n, const double* roots, double limit);

}  // namespace kernelweave
