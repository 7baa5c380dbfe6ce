// The upper triangles of matrices from outside: read only to tell whether they are those of the lower ones.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "elsewhere.hpp"
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

    // out[m] = 1/2 v'K_m v from the upper triangles: the rows where v is not zero are added up on the way.
    void energies(const double* v, double* out);

    // Whether something is left to be read.
    bool goes_on() const { return next_ < n_; }

    // Do what is left with all threads; one sum per matrix. Digits do not depend on who has added what.
    std::vector<double> finish();

private:
    bool add_next();  // false when no row is left
    void read_row(std::size_t i, bool adds, const double* v, double* energies);
    void help();
    void join();

    const Matrices K_;
    const std::size_t n_;
    const std::vector<double> probes_;
    const int n_threads_;
    std::vector<double> parts_;             // (rows, matrices)
    std::vector<std::atomic<bool>> taken_;  // rows, by whoever adds them up
    std::atomic<std::size_t> next_{0};      // all rows before are taken
    std::atomic<bool> wanted_{false}, stopped_{false};
    Elsewhere helper_;
};

}  // namespace kernelweave
