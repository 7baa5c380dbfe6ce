// The online stage on explicit features: samples pass by once, memory is that of the weights.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kernelweave {

struct OnlineState {
    std::size_t n_kernels, n_classes;
    const std::int64_t* offset;  // (kernels + 1): the features of kernel j are [offset_j, offset_j+1)
    double q, eta;
    double* theta;  // (features, classes)
    double* s;      // (kernels): ||theta^j||^2, kept by increments
};

// One step per row of phi (n, features), in order. Returns how many of them changed theta.
std::int64_t online_steps(const OnlineState& state, const double* phi, const std::int64_t* y, const double* weight,
                          std::size_t n);

}  // namespace kernelweave
