// Sequential minimal optimisation for SVM-2K, on the dense Gram matrices A and B of its two views:
//
//     min over a, b, c   1/2 u'Au + 1/2 w'Bw - y'(a + b) + epsilon |c|,   u = a - c,  w = b + c,
//     lo_a <= a <= hi_a,  lo_b <= b <= hi_b,  -top <= c <= top,  1'u = 1'w = 0.
//
// a and b are the views' own coefficients, c are those of their disagreement. Every step moves along one of the directions
// that keep both sums: one entry of a, b or c against another of the same, or c_i against a_j and b_k.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kernelweave {

struct SmoViewsProblem {
    std::size_t n;
    const double* A;
    const double* B;
    const double* y;
    const double *lo_a, *hi_a, *lo_b, *hi_b;
    const double *lo_c, *hi_c;  // -top and top
    double epsilon;             // >= 0
};

struct SmoViewsReport {
    std::int64_t iterations;
    double violation;  // largest slope left along a direction
};

// a, b and c are a feasible start and are overwritten; f = A u and g = B w go with them and are kept up to date.
SmoViewsReport smo_views(const SmoViewsProblem& problem, double tolerance, std::int64_t max_iterations, double* a,
                         double* b, double* c, double* f, double* g);

}  // namespace kernelweave
