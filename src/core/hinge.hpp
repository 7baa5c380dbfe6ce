// The least hinge loss of given decision values over the intercept.
#pragma once

#include <cstddef>

namespace kernelweave {

struct HingeLoss {
    double bias, value;
};

// A b that minimises sum_i C_i max(0, 1 - y_i (f_i + b)), y_i = +-1, the middle where there are several, and the sum.
HingeLoss hinge_loss(const double* f, const double* y, const double* C, std::size_t n);

}  // namespace kernelweave
