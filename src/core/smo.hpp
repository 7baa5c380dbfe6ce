// Sequential minimal optimisation on a dense Gram matrix:
//
//     min over v   1/2 v'(K + diag(d)) v - s'v + kink'|v|
//     s.t.  lo <= v <= hi,  sum of v over each group stays what it is.
//
// C-SVC is one group with s = y and v = alpha * y; the nu form keeps one sum per class; a squared hinge adds d = 1/C;
// the epsilon-insensitive loss has kink = epsilon.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kernelweave {

struct SmoProblem {
    std::size_t n;
    const double* s;
    const double* d;
    const double* kink;  // >= 0
    const double* lo;
    const double* hi;
    const std::int64_t* group;  // labels 0 .. n_groups - 1
    std::int64_t n_groups;
};

struct SmoReport {
    std::int64_t iterations;
    double violation;  // largest optimality violation left: max over groups of (steepest up - steepest down)
};

// v is read as a feasible start and overwritten; gradient receives (K + diag(d)) v - s, and holds that of the start
// already if gradient_is_known.
template <class T>
SmoReport smo(const T* K, const SmoProblem& problem, double tolerance, std::int64_t max_iterations,
              bool gradient_is_known, double* v, double* gradient);

}  // namespace kernelweave
