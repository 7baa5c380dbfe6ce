#include "smo.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "row_loops.hpp"

namespace kernelweave {
namespace {

constexpr std::size_t kBlock = 64;      // maxima are kept per block, so that finding the index is one short scan
constexpr double kCannotMove = -1e300;  // the score of a coordinate that cannot move this way
constexpr float kFlat = 1e-12F;         // relative curvature of flat directions: a huge step, cut by the bounds

// gradient += delta * (row_i - row_j), and in passing the block maxima of rise - gradient (see score_up).
template <class T>
inline void update_and_score(const T* row_i, const T* row_j, double delta, const double* rise, double* gradient,
                             double* best, std::size_t n) {
    for (std::size_t b = 0, start = 0; start < n; ++b, start += kBlock) {
        const std::size_t end = std::min(n, start + kBlock);
        double top = kCannotMove;
        for (std::size_t t = start; t < end; ++t) {
            const double moved = gradient[t] + delta * (static_cast<double>(row_i[t]) - static_cast<double>(row_j[t]));
            gradient[t] = moved;
            const double score = rise[t] - moved;
            top = score > top ? score : top;
        }
        best[b] = top;
    }
}

KERNELWEAVE_CLONES void update_and_score_rows(const float* row_i, const float* row_j, double delta,
                                              const double* rise, double* gradient, double* best, std::size_t n) {
    update_and_score(row_i, row_j, delta, rise, gradient, best, n);
}
KERNELWEAVE_CLONES void update_and_score_rows(const double* row_i, const double* row_j, double delta,
                                              const double* rise, double* gradient, double* best, std::size_t n) {
    update_and_score(row_i, row_j, delta, rise, gradient, best, n);
}

// Block maxima of the steepest way up, rise - gradient; rise is kCannotMove where v may not grow, and elsewhere what the
// kink adds to the slope: 0 where there is none.
KERNELWEAVE_CLONES void score_up(const double* gradient, const double* rise, double* best, std::size_t n) {
    for (std::size_t b = 0, start = 0; start < n; ++b, start += kBlock) {
        const std::size_t end = std::min(n, start + kBlock);
        double top = kCannotMove;
        for (std::size_t t = start; t < end; ++t) {
            const double score = rise[t] - gradient[t];
            top = score > top ? score : top;
        }
        best[b] = top;
    }
}

// What a partner is chosen by, in units that keep single precision in range.
struct Scale {
    double inverse_violation;
    double inverse_curvature;  // of the largest diagonal entry
};

// Second-order choice of the partner: gain = violation^2 / curvature. Single precision is enough to choose by, and
// halves the cost of the division; the way down itself is as exact as the gradient, because the stopping rule reads it.
template <class T>
inline void gains(const T* row_i, double up_score, double curvature_i, const double* diagonal, const double* gradient,
                  const double* fall, Scale scale, float* gain, float* best, double* steepest, std::size_t n) {
    for (std::size_t b = 0, start = 0; start < n; ++b, start += kBlock) {
        const std::size_t end = std::min(n, start + kBlock);
        double down = kCannotMove;
        float top = 0.0F;
        for (std::size_t t = start; t < end; ++t) {
            const double way_down = fall[t] + gradient[t];
            down = way_down > down ? way_down : down;
            double open_way = up_score + way_down;
            open_way = open_way > 0.0 ? open_way : 0.0;
            const float violation = static_cast<float>(open_way * scale.inverse_violation);
            float curvature =
                static_cast<float>((curvature_i + diagonal[t] - 2.0 * static_cast<double>(row_i[t])) * scale.inverse_curvature);
            curvature = curvature > kFlat ? curvature : kFlat;
            const float value = violation * (violation / curvature);
            gain[t] = value;
            top = value > top ? value : top;
        }
        best[b] = top;
        steepest[b] = down;
    }
}

KERNELWEAVE_CLONES void gains_row(const float* row_i, double up_score, double curvature_i, const double* diagonal,
                                  const double* gradient, const double* fall, Scale scale, float* gain,
                                  float* best, double* steepest, std::size_t n) {
    gains(row_i, up_score, curvature_i, diagonal, gradient, fall, scale, gain, best, steepest, n);
}
KERNELWEAVE_CLONES void gains_row(const double* row_i, double up_score, double curvature_i,
                                  const double* diagonal, const double* gradient, const double* fall, Scale scale,
                                  float* gain, float* best, double* steepest, std::size_t n) {
    gains(row_i, up_score, curvature_i, diagonal, gradient, fall, scale, gain, best, steepest, n);
}

template <class U>
std::size_t argmax(const std::vector<U>& best) {
    return static_cast<std::size_t>(std::max_element(best.begin(), best.end()) - best.begin());
}

// The gradient is a sum of products v_j K_ij: below the usual size of their rounding no violation can be distinguished from zero.
double rounding(const SmoProblem& p, const double* v, double inverse_curvature) {
    double squares = 0.0;
    for (std::size_t t = 0; t < p.n; ++t) squares += v[t] * v[t];
    return std::numeric_limits<double>::epsilon() * std::sqrt(squares) / inverse_curvature;
}

// gradient = (K + diag(d)) v - s
template <class T>
void refresh(const T* K, const SmoProblem& p, const double* v, double* gradient) {
    const std::size_t n = p.n;
    for (std::size_t t = 0; t < n; ++t) gradient[t] = p.d[t] * v[t] - p.s[t];
    std::vector<std::size_t> used;
    for (std::size_t i = 0; i < n; ++i)
        if (v[i] != 0.0) used.push_back(i);
    for (std::size_t a = 0; a < used.size(); a += kTogether) {  // a quarter of the passes over the gradient
        Row<T> rows[kTogether];
        double x[kTogether];
        for (std::size_t r = 0; r < kTogether; ++r) {
            const std::size_t i = used[std::min(a + r, used.size() - 1)];
            rows[r] = {K + i * n, K + used[std::min(a + r + kTogether, used.size() - 1)] * n};
            x[r] = a + r < used.size() ? v[i] : 0.0;
        }
        add_scaled_rows(gradient, rows, x, n);
    }
}

template <class T>
double largest_diagonal(const T* K, const SmoProblem& p) {
    double largest = 1e-300;
    for (std::size_t t = 0; t < p.n; ++t) largest = std::max(largest, static_cast<double>(K[t * p.n + t]) + p.d[t]);
    return largest;
}

template <class T>
class Smo {
public:
    Smo(const T* K, const SmoProblem& problem, double largest, double* v, double* gradient)
        : K_(K), p_(problem), v_(v), gradient_(gradient), n_(problem.n),
          rise_(n_ * static_cast<std::size_t>(problem.n_groups), kCannotMove), fall_(rise_), diagonal_(n_), gain_(n_),
          up_((n_ + kBlock - 1) / kBlock), best_(up_.size()), down_(up_.size()) {
        for (std::size_t t = 0; t < n_; ++t) {
            diagonal_[t] = static_cast<double>(K_[t * n_ + t]) + p_.d[t];
            update_slopes(t);
        }
        scale_ = {1.0, 1.0 / largest};
    }

    // Move pairs until none violates optimality by more than the tolerance, or rounding hides it; returns the violation.
    double descend(double tolerance, std::int64_t max_iterations, std::int64_t& iterations) {
        scored_ = false;
        const std::int64_t period = static_cast<std::int64_t>(n_) + 1;
        double floor = rounding(p_, v_, scale_.inverse_curvature);
        while (true) {
            if (iterations % period == 0) floor = rounding(p_, v_, scale_.inverse_curvature);
            double worst = 0.0;
            float best_gain = 0.0F;
            std::size_t i = n_, j = n_;
            for (std::size_t g = 0; g < static_cast<std::size_t>(p_.n_groups); ++g) {
                double score;
                double violation;
                float gain;
                const std::size_t a = steepest_up(g, score);
                if (score < 0.1 * kCannotMove) continue;
                const std::size_t b = partner(a, g, score, violation, gain);
                worst = std::max(worst, violation);
                if (gain > best_gain) {
                    best_gain = gain;
                    i = a;
                    j = b;
                }
            }
            if (worst <= std::max(tolerance, floor) || iterations >= max_iterations) return worst;
            const double unit = 1.0 / worst;
            const bool underflow = i == n_ && scale_.inverse_violation != unit;
            scale_.inverse_violation = unit;
            if (underflow) continue;  // the gains were too small for single precision: once more in this unit
            if (i == n_) return worst;
            step(i, j);
            ++iterations;
        }
    }

private:
    // Of coordinate t, whose value has changed.
    void update_slopes(std::size_t t) {
        const std::size_t place = static_cast<std::size_t>(p_.group[t]) * n_ + t;
        const double kink = p_.kink[t];
        rise_[place] = v_[t] < p_.hi[t] ? (v_[t] < 0.0 ? kink : -kink) : kCannotMove;
        fall_[place] = v_[t] > p_.lo[t] ? (v_[t] > 0.0 ? kink : -kink) : kCannotMove;
    }

    std::size_t steepest_up(std::size_t group, double& score) {
        const double* rise = rise_.data() + group * n_;
        if (group > 0 || !scored_) score_up(gradient_, rise, up_.data(), n_);
        scored_ = false;
        const std::size_t block = argmax(up_);
        score = up_[block];
        for (std::size_t t = block * kBlock; t < std::min(n_, (block + 1) * kBlock); ++t)
            if (rise[t] - gradient_[t] == score) return t;
        return block * kBlock;
    }

    // Best partner of i in its group; violation receives how far the group is from optimal.
    std::size_t partner(std::size_t i, std::size_t group, double score, double& violation, float& gain) {
        prefetch(K_ + i * n_, n_);
        gains_row(K_ + i * n_, score, diagonal_[i], diagonal_.data(), gradient_, fall_.data() + group * n_, scale_,
                  gain_.data(), best_.data(), down_.data(), n_);
        violation = score + down_[argmax(down_)];
        const std::size_t block = argmax(best_);
        gain = best_[block];
        for (std::size_t t = block * kBlock; t < std::min(n_, (block + 1) * kBlock); ++t)
            if (gain_[t] == gain) return t;
        return block * kBlock;
    }

    void step(std::size_t i, std::size_t j) {
        prefetch(K_ + j * n_, n_);
        const double entries = diagonal_[i] + diagonal_[j];
        const double curvature = std::max(entries - 2.0 * static_cast<double>(K_[i * n_ + j]),
                                          static_cast<double>(kFlat) / scale_.inverse_curvature);
        // No step crosses a kink, where the slope changes: it ends there, as at a bound.
        const double end_i = p_.kink[i] > 0.0 && v_[i] < 0.0 ? std::min(p_.hi[i], 0.0) : p_.hi[i];
        const double end_j = p_.kink[j] > 0.0 && v_[j] > 0.0 ? std::max(p_.lo[j], 0.0) : p_.lo[j];
        const double room_i = end_i - v_[i], room_j = v_[j] - end_j;
        const double way_up = rise_[static_cast<std::size_t>(p_.group[i]) * n_ + i] - gradient_[i];
        const double way_down = fall_[static_cast<std::size_t>(p_.group[j]) * n_ + j] + gradient_[j];
        double delta = (way_up + way_down) / curvature;
        const bool fills_i = delta >= room_i && room_i <= room_j;
        const bool empties_j = delta >= room_j && room_j <= room_i;
        delta = std::min(delta, std::min(room_i, room_j));
        v_[i] = fills_i ? end_i : v_[i] + delta;  // bounds are met exactly, not up to rounding
        v_[j] = empties_j ? end_j : v_[j] - delta;
        update_slopes(i);
        update_slopes(j);
        update_and_score_rows(K_ + i * n_, K_ + j * n_, delta, rise_.data(), gradient_, up_.data(), n_);
        scored_ = true;  // for the first group
        if (p_.d[i] == 0.0 && p_.d[j] == 0.0) return;
        gradient_[i] += delta * p_.d[i];
        gradient_[j] -= delta * p_.d[j];
        for (const std::size_t t : {i, j}) {
            const std::size_t start = t / kBlock * kBlock;
            score_up(gradient_ + start, rise_.data() + start, &up_[t / kBlock], std::min(kBlock, n_ - start));
        }
    }

    const T* K_;
    const SmoProblem& p_;
    double* v_;
    double* gradient_;
    std::size_t n_;
    // Slopes of the kink on the way up and on the way down, kCannotMove at a bound: rise - gradient and fall + gradient
    // are how steeply the objective falls. One row of n per group, so that scores of a group need no look at the labels.
    std::vector<double> rise_, fall_;
    std::vector<double> diagonal_;  // of K + diag(d)
    std::vector<float> gain_;       // of every partner of the coordinate that moves up
    // Maxima over blocks of kBlock coordinates: of the ways up, of the gains, and of the ways down.
    std::vector<double> up_;
    std::vector<float> best_;
    std::vector<double> down_;
    Scale scale_{1.0, 1.0};
    bool scored_ = false;  // whether up_ holds the ways up of the first group at this gradient
};

}  // namespace

template <class T>
SmoReport smo(const T* K, const SmoProblem& problem, double tolerance, std::int64_t max_iterations,
              bool gradient_is_known, double* v, double* gradient) {
    if (problem.n == 0) return {0, 0.0};
    constexpr int kRefreshes = 5;
    const double largest = largest_diagonal(K, problem);
    SmoReport report{0, 0.0};
    if (!gradient_is_known) refresh(K, problem, v, gradient);
    Smo<T> descent(K, problem, largest, v, gradient);
    for (int round = 0; round < kRefreshes; ++round) {
        const std::int64_t before = report.iterations;
        report.violation = descent.descend(tolerance, max_iterations, report.iterations);
        // As many steps as samples round no more often than the sum over all samples does.
        if (report.iterations - before <= static_cast<std::int64_t>(problem.n)) break;
        refresh(K, problem, v, gradient);  // drop the rounding that has piled up; go on only if it hid a violation
        if (report.iterations >= max_iterations) break;
    }
    return report;
}

template SmoReport smo<float>(const float*, const SmoProblem&, double, std::int64_t, bool, double*, double*);
template SmoReport smo<double>(const double*, const SmoProblem&, double, std::int64_t, bool, double*, double*);

}  // namespace kernelweave
