// The upper triangles of matrices from outside: read only to tell whether they are those of the lower ones.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "given.hpp"

namespace kernelweave {

// Sums over the upper triangles of K_ij times the tilt left_i right_j - right_i left_j, which together with those of the
// lower triangles (`AdmitReport`) are zero for symmetric matrices. With more than one thread a helper begins at once, and
// rests while passes are under way: what others wait for comes first.
class UpperSums {
public:
    UpperSums(Matrices K, std::size_t n, const double* probes, int n_threads);
    UpperSums(const UpperSums&) = delete;
    UpperSums& operator=(const UpperSums&) = delete;
    ~UpperSums();

    // Do what is left with all threads; one sum per matrix. Digits do not depend on who has added what.
    std::vector<double> finish();

private:
    std::size_t blocks() const;
    bool add_next();  // false when no block is left
    void add_block(std::size_t block);
    void help();
    void join();

    const Matrices K_;
    const std::size_t n_;
    const std::vector<double> probes_;
    const int n_threads_;
    std::vector<double> parts_;  // (blocks, matrices)
    std::atomic<std::size_t> next_{0};
    std::atomic<bool> wanted_{false}, stopped_{false};
    std::thread helper_;
};

}  // namespace kernelweave
