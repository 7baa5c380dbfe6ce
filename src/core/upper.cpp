#include "upper.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>

#include "admit.hpp"
#include "dispatch.hpp"
#include "parallel.hpp"

namespace kernelweave {
namespace {

constexpr std::size_t kRows = 8;  // rows of all matrices in a block: some megabytes, a fraction of a millisecond
constexpr std::size_t kFour = 4;  // matrices that are read together
constexpr std::chrono::microseconds kRest{30};

}  // namespace

UpperSums::UpperSums(Matrices K, std::size_t n, const double* probes, int n_threads)
    : K_(std::move(K)), n_(n), probes_(probes, probes + 2 * n), n_threads_(n_threads), parts_(blocks() * K_.size(), 0.0) {
    if (n_threads < 2) return;
    try {
        helper_ = std::thread([this] { help(); });
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
    const std::size_t left = blocks() - std::min(blocks(), next_.load());
    parallel_for(left, n_threads_, [this](std::size_t) { add_next(); });
    join();
    std::vector<double> sums(K_.size(), 0.0);
    for (std::size_t p = 0; p < parts_.size(); ++p) sums[p % K_.size()] += parts_[p];
    return sums;
}

std::size_t UpperSums::blocks() const { return (n_ + kRows - 1) / kRows; }

bool UpperSums::add_next() {
    const std::size_t block = next_.fetch_add(1);
    if (block >= blocks()) return false;
    add_block(block);
    return true;
}

void UpperSums::add_block(std::size_t block) {
    const double *left = probes_.data(), *right = left + n_;
    const std::size_t first = block * kRows, last = std::min(n_, first + kRows);
    std::vector<double> tilt((last - first) * n_);
    for (std::size_t i = first; i < last; ++i) tilt_row(left[i], right[i], left, right, tilt.data() + (i - first) * n_, n_);
    double* part = parts_.data() + block * K_.size();
    for (std::size_t m = 0; m < K_.size(); m += kFour) {
        const std::size_t several = std::min(kFour, K_.size() - m);
        FourRows rows{};
        for (std::size_t i = first; i < last; ++i) {
            for (std::size_t r = 0; r < kFour; ++r) rows.row[r] = K_[r < several ? m + r : m] + i * n_ + i + 1;
            inspect_rows(rows, tilt.data() + (i - first) * n_ + i + 1, n_ - i - 1);
        }
        for (std::size_t r = 0; r < several; ++r) part[m + r] = rows.asymmetry[r];
    }
}

void UpperSums::help() {
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
