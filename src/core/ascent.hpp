// Dual coordinate ascent on the multiclass p-norm problem, over a block of samples whose kernels are in memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kernelweave {

// D(A) = (1/N) sum_i A[i, y_i] - (1/2 lambda N^2) (sum_j s_j^{q/2})^{2/q},  s_j = tr(A'K_jA), with sum_c A[i, c] = 0 and
// A[i, c] <= weight_i [c = y_i]. N counts all samples, the block holds n of them; the others' coefficients stay.
template <class T>
struct AscentBlock {
    std::size_t n, n_kernels, n_classes;
    const T* K;             // (kernels, n, n)
    const std::int64_t* y;  // (n)
    const double* weight;   // (n)
    double scale;           // lambda N
    double q;
    double* A;  // (n, classes)
    double* G;  // (kernels, classes, n): columns of K_jA, the coefficients outside the block included
    double* s;  // (kernels)
};

// Visit the samples in this order, each with one exact line search; A, G and s follow. Returns how many samples moved,
// each of which used one row of every kernel.
template <class T>
std::int64_t ascend(const AscentBlock<T>& block, const std::int64_t* order, std::size_t n_visits);

}  // namespace kernelweave
