// Dual coordinate ascent on the multiclass p-norm problem, over a block of samples whose kernels are in memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kernelweave {

// The dual is D(A) = (1/N) sum_i A[i, y_i] - (1/2 lambda N^2) (sum_j s_j^{q/2})^{2/q}, s_j = tr(A'K_jA), with
// sum_c A[i, c] = 0 and A[i, c] <= weight_i [c = y_i]. N counts all samples, the block holds n of them; the others'
// coefficients stay. From coefficients A0 on, what is maximised is a model of D that needs one matrix
// K = sum_j eta_j K_j instead of all: for A = A0 + S,
//     s_j = s_j(A0) + 2 <S, K_jA0> + share_j <S, KS>,   sum_j eta_j share_j = 1,
// whose first two terms are exact, and whose third one has the right sum over the kernels.
template <class T>
struct AscentBlock {
    std::size_t n, n_kernels, n_classes;
    const T* K;                     // (n, n)
    const double* G;                // (kernels, n, classes): K_jA0, the coefficients outside the block included
    const double* share;            // (kernels)
    const double* least_curvature;  // (n): a sample's own curvature is not taken for less
    const std::int64_t* y;          // (n)
    const double* weight;           // (n)
    double scale;                   // lambda N
    double q;
    double* A;  // (n, classes)
    T* H;       // (classes, n): KS
    double* s;  // (kernels)
};

// Visit the samples in this order, each with one exact line search; A, H and s follow. Returns how many samples moved.
template <class T>
std::int64_t ascend(const AscentBlock<T>& block, const std::int64_t* order, std::size_t n_visits);

}  // namespace kernelweave
