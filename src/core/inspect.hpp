// One pass over a matrix from outside: is it finite, symmetric, and free of visibly negative 2 x 2 minors?
#pragma once

#include <cstddef>

namespace kernelweave {

struct InspectReport {
    bool minors;       // |K_ij| <= roots_i roots_j everywhere; false where K_ij is NaN
    double asymmetry;  // largest |(Kr - K'r)_i| for a vector r of random signs: 0 up to rounding if K = K'
};

InspectReport inspect(const double* K, std::size_t n, const double* roots);

}  // namespace kernelweave
