#include "capped.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "row_loops.hpp"

namespace kernelweave {
namespace {

constexpr std::size_t kFour = 4;  // rows multiplied together

KERNELWEAVE_CLONES void subtract_scaled(const double* row, double scale, double* out, std::size_t length) {
    for (std::size_t j = 0; j < length; ++j) out[j] -= scale * row[j];
}

}  // namespace

CappedQuadratic::CappedQuadratic(const double* A, const double* b, std::size_t n, double cap)
    : A_(A), b_(b), n_(n), cap_(cap), L_(n * n) {}

bool CappedQuadratic::factorise(const std::vector<std::size_t>& free) {
    const std::size_t size = free.size();
    for (std::size_t r = 0; r < size; ++r)
        for (std::size_t c = 0; c <= r; ++c) L_[r * size + c] = A_[free[r] * n_ + free[c]];
    for (std::size_t c = 0; c < size; ++c) {
        const double* own = L_.data() + c * size;
        const double pivot = own[c] - dot_row(own, own, c);
        if (!(pivot > 0.0)) return false;
        const double root = std::sqrt(pivot);
        L_[c * size + c] = root;
        std::size_t r = c + 1;
        for (; r + kFour <= size; r += kFour) {
            const double* rows[kFour];
            for (std::size_t k = 0; k < kFour; ++k) rows[k] = L_.data() + (r + k) * size;
            double dots[kFour];
            for (std::size_t r = 0; r < 4; ++r) dots[r] = dot_row(rows[r], own, c);
            for (std::size_t k = 0; k < kFour; ++k) {
                double& entry = L_[(r + k) * size + c];
                entry = (entry - dots[k]) / root;
            }
        }
        for (; r < size; ++r) {
            double& entry = L_[r * size + c];
            entry = (entry - dot_row(L_.data() + r * size, own, c)) / root;
        }
    }
    return true;
}

void CappedQuadratic::solve(double* rhs, std::size_t size) const {
    for (std::size_t r = 0; r < size; ++r) {
        const double* row = L_.data() + r * size;
        rhs[r] = (rhs[r] - dot_row(row, rhs, r)) / row[r];
    }
    for (std::size_t r = size; r-- > 0;) {
        const double* row = L_.data() + r * size;
        rhs[r] /= row[r];
        subtract_scaled(row, rhs[r], rhs, r);
    }
}

void CappedQuadratic::slopes(const double* x, double* out) const {
    std::copy(b_, b_ + n_, out);
    for (std::size_t j = 0; j < n_; ++j)
        if (x[j] != 0.0) subtract_scaled(A_ + j * n_, x[j], out, n_);
}

bool CappedQuadratic::stationary(const std::int8_t* state, double* x, double* surplus) {
    std::vector<std::size_t> free;
    for (std::size_t j = 0; j < n_; ++j) {
        if (state[j] == kFree) free.push_back(j);
        x[j] = state[j] == kAtCap ? cap_ : 0.0;
    }
    if (free.empty() || !factorise(free)) return false;
    std::vector<double> ones(free.size(), 1.0), part(free.size());
    solve(ones.data(), free.size());
    const double per_level = std::accumulate(ones.begin(), ones.end(), 0.0);
    slopes(x, surplus);
    double level = 0.0;
    for (int round = 0; round < 2; ++round) {  // the second one refines: A may be close to singular
        for (std::size_t k = 0; k < free.size(); ++k) part[k] = surplus[free[k]] - level;
        solve(part.data(), free.size());
        const double mass = std::accumulate(part.begin(), part.end(), std::accumulate(x, x + n_, 0.0));
        const double rise = (mass - 1.0) / per_level;
        for (std::size_t k = 0; k < free.size(); ++k) x[free[k]] += part[k] - rise * ones[k];
        level += rise;
        slopes(x, surplus);
    }
    for (std::size_t j = 0; j < n_; ++j) surplus[j] -= level;
    return std::isfinite(level);
}

Exchanged CappedQuadratic::exchange(std::int8_t* state, double* x, double noise, std::size_t most, int max_rounds,
                                    int patience) {
    std::vector<double> surplus(n_);
    std::size_t fewest = most + 1;
    int idle = patience - 1;
    for (int round = 0; round < max_rounds; ++round) {
        if (std::find(state, state + n_, std::int8_t{kFree}) == state + n_) return Exchanged::kUnsettled;
        if (!stationary(state, x, surplus.data())) return Exchanged::kIndefinite;
        std::size_t misplaced = 0;
        for (std::size_t j = 0; j < n_; ++j) {
            const std::int8_t before = state[j];
            if (before == kFree)
                state[j] = x[j] <= 0.0 ? kAtZero : x[j] >= cap_ ? kAtCap : kFree;
            else if (before * surplus[j] < -noise)
                state[j] = kFree;
            misplaced += state[j] != before;
        }
        if (misplaced == 0) return Exchanged::kSettled;
        idle = misplaced < fewest ? 0 : idle + 1;
        if (idle == patience) return Exchanged::kUnsettled;
        fewest = std::min(fewest, misplaced);
    }
    return Exchanged::kUnsettled;
}

}  // namespace kernelweave
