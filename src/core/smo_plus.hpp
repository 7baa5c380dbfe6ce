// Sequential minimal optimisation for SVM+, on two dense Gram matrices, G being K*/lambda:
//
//     min over alpha, beta >= 0   1/2 v'Kv + 1/2 e'Ge - 1'alpha,   v = alpha * y,  e = alpha + beta - C,
//     y'alpha = 0,  1'e = 0.
//
// Every step moves along one of the directions that keep both sums: two alphas of one class, two betas, two alphas of
// opposite classes against a beta, or two samples whose e stays (alpha and beta exchange), which is a step of the
// ordinary SVM with C_i = alpha_i + beta_i.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kernelweave {

struct SmoPlusProblem {
    std::size_t n;
    const double* K;
    const double* G;
    const double* y;  // +1 or -1
};

struct SmoPlusReport {
    std::int64_t iterations;
    double violation;  // largest slope left along a direction, per unit of an alpha or beta
};

// alpha and beta are a feasible start and are overwritten; f = K v and g = G e go with them and are kept up to date.
SmoPlusReport smo_plus(const SmoPlusProblem& problem, double tolerance, std::int64_t max_iterations, double* alpha,
                       double* beta, double* f, double* g);

}  // namespace kernelweave
