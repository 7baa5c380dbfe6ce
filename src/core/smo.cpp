#include "smo.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "dispatch.hpp"

namespace kernelweave {
namespace {

constexpr std::size_t kBlock = 64;      // maxima are kept per block, so that finding the index is one short scan
constexpr double kBlocked = -1e300;     // score of a coordinate that cannot move this way
constexpr double kNoDirection = -1e299; // a maximum below this means that nothing can move

// gradient += delta * (row_i - row_j); best[b] = max over block b of (up - gradient) within the group.
template <class T>
inline void update_gradient(const T* row_i, const T* row_j, double delta, double* gradient, std::size_t n) {
    for (std::size_t t = 0; t < n; ++t)
        gradient[t] += delta * (static_cast<double>(row_i[t]) - static_cast<double>(row_j[t]));
}

KERNELWEAVE_CLONES void update_gradient_rows(const float* row_i, const float* row_j, double delta,
                                             double* gradient, std::size_t n) {
    update_gradient(row_i, row_j, delta, gradient, n);
}
KERNELWEAVE_CLONES void update_gradient_rows(const double* row_i, const double* row_j, double delta,
                                             double* gradient, std::size_t n) {
    update_gradient(row_i, row_j, delta, gradient, n);
}

// Block maxima of the steepest way up, open - gradient; open is 0 where v may grow and kBlocked elsewhere.
KERNELWEAVE_CLONES void score_up(const double* gradient, const double* open, const std::int64_t* group,
                                 std::int64_t which, double* best, std::size_t n) {
    for (std::size_t b = 0, start = 0; start < n; ++b, start += kBlock) {
        const std::size_t end = std::min(n, start + kBlock);
        double top = kBlocked;
        for (std::size_t t = start; t < end; ++t) {
            const double score = group[t] == which ? open[t] - gradient[t] : kBlocked;
            top = score > top ? score : top;
        }
        best[b] = top;
    }
}

// Second-order choice of the partner: gain = (violation)^2 / curvature; steepest[b] collects the way down.
template <class T>
inline void gains(const T* row_i, double up_score, double curvature_i, const double* diagonal,
                  const double* gradient, const double* shut, const std::int64_t* group, std::int64_t which,
                  double floor, double* gain, double* best, double* steepest, std::size_t n) {
    for (std::size_t b = 0, start = 0; start < n; ++b, start += kBlock) {
        const std::size_t end = std::min(n, start + kBlock);
        double top = 0.0, down = kBlocked;
        for (std::size_t t = start; t < end; ++t) {
            const double way_down = group[t] == which ? shut[t] + gradient[t] : kBlocked;
            down = way_down > down ? way_down : down;
            const double violation = up_score + way_down;
            double curvature = curvature_i + diagonal[t] - 2.0 * static_cast<double>(row_i[t]);
            curvature = curvature > floor ? curvature : floor;
            const double value = violation > 0.0 ? violation * violation / curvature : 0.0;
            gain[t] = value;
            top = value > top ? value : top;
        }
        best[b] = top;
        steepest[b] = down;
    }
}

KERNELWEAVE_CLONES void gains_row(const float* row_i, double up_score, double curvature_i, const double* diagonal,
                                  const double* gradient, const double* shut, const std::int64_t* group,
                                  std::int64_t which, double floor, double* gain, double* best, double* steepest,
                                  std::size_t n) {
    gains(row_i, up_score, curvature_i, diagonal, gradient, shut, group, which, floor, gain, best, steepest, n);
}
KERNELWEAVE_CLONES void gains_row(const double* row_i, double up_score, double curvature_i,
                                  const double* diagonal, const double* gradient, const double* shut,
                                  const std::int64_t* group, std::int64_t which, double floor, double* gain,
                                  double* best, double* steepest, std::size_t n) {
    gains(row_i, up_score, curvature_i, diagonal, gradient, shut, group, which, floor, gain, best, steepest, n);
}

std::size_t argmax(const std::vector<double>& best) {
    return static_cast<std::size_t>(std::max_element(best.begin(), best.end()) - best.begin());
}

template <class T>
class Smo {
public:
    Smo(const T* K, const SmoProblem& problem, double* v, double* gradient)
        : K_(K), p_(problem), v_(v), gradient_(gradient), n_(problem.n), open_(n_), shut_(n_), diagonal_(n_),
          gain_(n_), up_((n_ + kBlock - 1) / kBlock), best_(up_.size()), down_(up_.size()) {
        double largest = 0.0;
        for (std::size_t t = 0; t < n_; ++t) {
            diagonal_[t] = static_cast<double>(K_[t * n_ + t]) + p_.d[t];
            largest = std::max(largest, diagonal_[t]);
            mark(t);
        }
        floor_ = std::max(1e-12 * largest, 1e-300);  // flat directions: a huge step, cut by the bounds
        refresh();
    }

    SmoReport run(double tolerance, std::int64_t max_iterations) {
        SmoReport report{0, 0.0};
        constexpr int kRefreshes = 5;
        for (int round = 0; round < kRefreshes; ++round) {
            const std::int64_t before = report.iterations;
            report.violation = descend(tolerance, max_iterations, report.iterations);
            refresh();  // drop the rounding that has piled up; go on only if it hid a violation
            if (report.iterations == before || report.iterations >= max_iterations) break;
        }
        return report;
    }

private:
    void mark(std::size_t t) {
        open_[t] = v_[t] < p_.hi[t] ? 0.0 : kBlocked;
        shut_[t] = v_[t] > p_.lo[t] ? 0.0 : kBlocked;
    }

    void refresh() {
        for (std::size_t t = 0; t < n_; ++t) gradient_[t] = p_.d[t] * v_[t] - p_.s[t];
        std::size_t held = n_;  // rows are used in pairs
        for (std::size_t i = 0; i < n_; ++i) {
            if (v_[i] == 0.0) continue;
            if (held == n_) {
                held = i;
                continue;
            }
            add_rows(held, i);
            held = n_;
        }
        if (held != n_) add_rows(held, held);
    }

    void add_rows(std::size_t i, std::size_t j) {
        const T* a = K_ + i * n_;
        const T* b = K_ + j * n_;
        const double x = v_[i], y = i == j ? 0.0 : v_[j];
        for (std::size_t t = 0; t < n_; ++t)
            gradient_[t] += x * static_cast<double>(a[t]) + y * static_cast<double>(b[t]);
    }

    std::size_t steepest_up(std::int64_t which, double& score) {
        score_up(gradient_, open_.data(), p_.group, which, up_.data(), n_);
        const std::size_t block = argmax(up_);
        score = up_[block];
        for (std::size_t t = block * kBlock; t < std::min(n_, (block + 1) * kBlock); ++t)
            if (p_.group[t] == which && open_[t] - gradient_[t] == score) return t;
        return block * kBlock;
    }

    // Best partner of i in its group; violation receives how far the group is from optimal.
    std::size_t partner(std::size_t i, double score, double& violation, double& gain) {
        gains_row(K_ + i * n_, score, diagonal_[i], diagonal_.data(), gradient_, shut_.data(), p_.group,
                  p_.group[i], floor_, gain_.data(), best_.data(), down_.data(), n_);
        violation = score + down_[argmax(down_)];
        const std::size_t block = argmax(best_);
        gain = best_[block];
        for (std::size_t t = block * kBlock; t < std::min(n_, (block + 1) * kBlock); ++t)
            if (gain_[t] == gain) return t;
        return block * kBlock;
    }

    double descend(double tolerance, std::int64_t max_iterations, std::int64_t& iterations) {
        while (true) {
            double worst = 0.0, best_gain = 0.0;
            std::size_t i = n_, j = n_;
            for (std::int64_t g = 0; g < p_.n_groups; ++g) {
                double score, violation, gain;
                const std::size_t a = steepest_up(g, score);
                if (score < kNoDirection) continue;
                const std::size_t b = partner(a, score, violation, gain);
                worst = std::max(worst, violation);
                if (gain > best_gain) {
                    best_gain = gain;
                    i = a;
                    j = b;
                }
            }
            if (worst <= tolerance || i == n_ || iterations >= max_iterations) return worst;
            step(i, j);
            ++iterations;
        }
    }

    void step(std::size_t i, std::size_t j) {
        const double curvature =
            std::max(diagonal_[i] + diagonal_[j] - 2.0 * static_cast<double>(K_[i * n_ + j]), floor_);
        const double room_i = p_.hi[i] - v_[i], room_j = v_[j] - p_.lo[j];
        double delta = (gradient_[j] - gradient_[i]) / curvature;
        const bool fills_i = delta >= room_i && room_i <= room_j;
        const bool empties_j = delta >= room_j && room_j <= room_i;
        delta = std::min(delta, std::min(room_i, room_j));
        v_[i] = fills_i ? p_.hi[i] : v_[i] + delta;  // bounds are met exactly, not up to rounding
        v_[j] = empties_j ? p_.lo[j] : v_[j] - delta;
        mark(i);
        mark(j);
        update_gradient_rows(K_ + i * n_, K_ + j * n_, delta, gradient_, n_);
        gradient_[i] += delta * p_.d[i];
        gradient_[j] -= delta * p_.d[j];
    }

    const T* K_;
    const SmoProblem& p_;
    double* v_;
    double* gradient_;
    std::size_t n_;
    std::vector<double> open_, shut_, diagonal_, gain_, up_, best_, down_;
    double floor_ = 0.0;
};

}  // namespace

template <class T>
SmoReport smo(const T* K, const SmoProblem& problem, double tolerance, std::int64_t max_iterations, double* v,
              double* gradient) {
    if (problem.n == 0) return {0, 0.0};
    return Smo<T>(K, problem, v, gradient).run(tolerance, max_iterations);
}

template SmoReport smo<float>(const float*, const SmoProblem&, double, std::int64_t, double*, double*);
template SmoReport smo<double>(const double*, const SmoProblem&, double, std::int64_t, double*, double*);

}  // namespace kernelweave
