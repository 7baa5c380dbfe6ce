// Active sets of the quadratic program min x'Ax/2 - b'x, sum x = 1, 0 <= x <= cap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kernelweave {

// Where a weight is: at a bound, or free.
enum Place : std::int8_t { kAtZero = -1, kFree = 0, kAtCap = 1 };

enum class Exchanged : int { kIndefinite = -1, kUnsettled = 0, kSettled = 1 };

class CappedQuadratic {
public:
    // A is n x n, symmetric; it and b have to outlive this.
    CappedQuadratic(const double* A, const double* b, std::size_t n, double cap);

    // Solve for the free weights with the others at their bounds: the weights, and slopes above their common level.
    // False where no weight is free, or their part of A is not positive definite, or has no finite answer.
    bool stationary(const std::int8_t* state, double* x, double* surplus);

    // Move all misplaced weights at once until none is, at most max_rounds times; slopes below `noise` have no sign.
    // Given up after `patience` rounds in a row with no fewer misplaced; at once if the first finds more than `most`.
    Exchanged exchange(std::int8_t* state, double* x, double noise, std::size_t most, int max_rounds, int patience);

private:
    bool factorise(const std::vector<std::size_t>& free);
    void solve(double* rhs, std::size_t size) const;
    void slopes(const double* x, double* out) const;

    const double *A_, *b_;
    std::size_t n_;
    double cap_;
    std::vector<double> L_;  // the factor of the free part, row by row
};

}  // namespace kernelweave
