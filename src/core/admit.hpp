// Matrices from outside, read once: are they what they should be, and their rounded lower triangle.
#pragma once

#include <cstddef>
#include <vector>

namespace kernelweave {

struct AdmitReport {
    bool minors;       // |K_ij| <= roots_i roots_j in the lower triangle; false where K_ij is NaN there
    double asymmetry;  // left'K right - right'K left over the entries read: over all 0 if K = K', NaN if K has one
};

// What blocks of rows show of each matrix together; parts are (blocks, matrices).
std::vector<AdmitReport> added_up(const std::vector<AdmitReport>& parts, std::size_t n_matrices);

// Inspect the n x n matrix K.
AdmitReport inspect(const double* K, std::size_t n, const double* roots, const double* left, const double* right);

// tilt_j = l right_j - r left_j
void tilt_row(double l, double r, const double* left, const double* right, double* tilt, std::size_t length);

// Entries of the rows of four matrices, read together. Products with `tilt`, left_i right_j - right_i left_j for the
// entries of row i, add up to the asymmetry, which is not finite if an entry is not; `largest` is the largest absolute
// value of the others. Rows to be read `next`, of as many entries, are asked for on the way.
struct FourRows {
    const double* row[4];
    const double* next[4];
    double weight[4];
    double asymmetry[4];
    double largest[4];
};

// Inspect entries and add them to `acc` with their weights.
void inspect_and_add(FourRows& rows, const double* tilt, double* acc, std::size_t length);

// Where entries of four rows go when they are packed: K_ij - own - shift_j, rounded to T; and before that to a sum, those
// of each row so many times.
template <class T>
struct FourPlaces {
    const double* shift[4];
    double own[4];
    double weight[4];
    T* out[4];
    double* sum;
};

// Inspect entries, pack them and add them up.
template <class T>
void inspect_and_pack(FourRows& rows, const double* tilt, const FourPlaces<T>& places, std::size_t length);

// Inspect entries, and nothing else.
void inspect_rows(FourRows& rows, const double* tilt, std::size_t length);

// |row_j| <= root roots_j for all j.
bool within_minors(const double* row, const double* roots, double root, std::size_t length);

}  // namespace kernelweave
