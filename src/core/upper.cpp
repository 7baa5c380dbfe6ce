#include "upper.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>

#include "admit.hpp"
#include "dispatch.hpp"
#include "dot_and_add.hpp"
#include "parallel.hpp"

#if defined(__linux__)
#include <sched.h>
#endif

namespace kernelweave {
namespace {

constexpr std::size_t kRows = 8;  // rows per task
constexpr std::size_t kFour = 4;  // matrices that are read together
constexpr std::size_t kChunk = 1024;  // entries of a row that stay in the first-level cache
constexpr std::chrono::microseconds kRest{30};  // far below a pass, far above what waking up costs

// Have the calling thread run where a core has nothing else to do: beside a thread that others wait for it would take
// turns of some milliseconds. Where the system knows no such threads, or refuses, it runs as any other.
void step_back() {
#if defined(__linux__)
    const sched_param none{};
    (void)sched_setscheduler(0, SCHED_IDLE, &none);
#endif
}

}  // namespace

UpperSums::UpperSums(Matrices K, std::size_t n, const double* probes, int n_threads)
    : K_(std::move(K)), n_(n), probes_(probes, probes + 2 * n), n_threads_(n_threads), parts_(n * K_.size(), 0.0),
      taken_(n) {
    for (auto& row : taken_) row = false;
    if (n_threads < 2) return;
    try {
        helper_ = Elsewhere([this] { help(); });
    } catch (const std::system_error&) {
        // The system has no more threads to give: `finish` does it all.
    }
}

UpperSums::~UpperSums() {
    stopped_ = true;
    join();
}

std::vector<double> UpperSums::finish() {
    wanted_ = true;
    const std::size_t left = n_ - std::min(n_, next_.load());
    // The helper is one of the threads.
    parallel_for(left, helper_.joinable() ? n_threads_ - 1 : n_threads_, [this](std::size_t) { add_next(); });
    join();
    std::vector<double> sums(K_.size(), 0.0);
    for (std::size_t p = 0; p < parts_.size(); ++p) sums[p % K_.size()] += parts_[p];
    return sums;
}

bool UpperSums::add_next() {
    const std::size_t i = next_.fetch_add(1);
    if (i >= n_) return false;
    if (!taken_[i].exchange(true)) read_row(i, true, nullptr, nullptr);
    return true;
}

void UpperSums::energies(const double* v, double* out) {
    const std::size_t blocks = (n_ + kRows - 1) / kRows;
    std::vector<double> parts(blocks * K_.size(), 0.0);
    parallel_for(blocks, n_threads_, [&](std::size_t block) {
        for (std::size_t i = block * kRows; i < std::min(n_, (block + 1) * kRows); ++i)
            if (v[i] != 0.0) read_row(i, !taken_[i].exchange(true), v, parts.data() + block * K_.size());
    });
    std::fill(out, out + K_.size(), 0.0);
    for (std::size_t p = 0; p < parts.size(); ++p) out[p % K_.size()] += parts[p];
}

// Read a row of all matrices right of the diagonal: to add it up, and for what it has to do with the energies of v.
void UpperSums::read_row(std::size_t i, bool adds, const double* v, double* energies) {
    const double *left = probes_.data(), *right = left + n_;
    double* part = parts_.data() + i * K_.size();
    double tilt[kChunk];
    for (std::size_t start = i + 1; start < n_; start += kChunk) {
        const std::size_t length = std::min(kChunk, n_ - start);
        if (adds) tilt_row(left[i], right[i], left + start, right + start, tilt, length);
        for (std::size_t m = 0; m < K_.size(); m += kFour) {
            const std::size_t several = std::min(kFour, K_.size() - m);
            FourRows rows{};
            for (std::size_t r = 0; r < kFour; ++r) {
                rows.row[r] = K_[r < several ? m + r : m] + i * n_ + start;
                rows.next[r] = K_[m + kFour + r < K_.size() ? m + kFour + r : m] + i * n_ + start;
            }
            double dots[kFour] = {};
            if (adds) inspect_rows(rows, tilt, length);
            if (v != nullptr) dot_four_rows(rows.row, rows.next, v + start, length, dots);
            for (std::size_t r = 0; r < several; ++r) {
                if (adds) part[m + r] += rows.asymmetry[r];
                if (v != nullptr) energies[m + r] += v[i] * dots[r];
            }
        }
    }
    if (v == nullptr) return;
    for (std::size_t m = 0; m < K_.size(); ++m) energies[m] += 0.5 * v[i] * v[i] * K_[m][i * n_ + i];
}

void UpperSums::help() {
    step_back();
    while (!stopped_) {
        if (!wanted_ && passes_under_way > 0)
            std::this_thread::sleep_for(kRest);
        else if (!add_next())
            return;
    }
}

void UpperSums::join() {
    if (helper_.joinable()) helper_.join();
}

}  // namespace kernelweave
