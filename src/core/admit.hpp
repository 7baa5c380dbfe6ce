// Matrices from outside, read once: are they what they should be, and their rounded lower triangle.
#pragma once

#include <cstddef>

namespace kernelweave {

struct AdmitReport {
    bool minors;       // |K_ij| <= roots_i roots_j in the lower triangle; false where K_ij is NaN there
    double asymmetry;  // left'K right - right'K left over these rows: over all rows 0 if K = K', NaN if K has one
};

// Inspect rows [start, stop) of the n x n matrix K; with out given, also keep their lower triangle as `pack` does.
template <class T>
AdmitReport admit(const double* K, std::size_t n, std::size_t start, std::size_t stop, const double* roots,
                  const double* left, const double* right, const double* shift, T* out);

// Entries of the rows of four matrices, read together. Products with `tilt`, left_i right_j - right_i left_j for the
// entries of row i, add up to the asymmetry. `above` is set where an entry is not within its matrix' bound.
struct FourRows {
    const double* row[4];
    double bound[4];
    double weight[4];
    double asymmetry[4];
    bool above[4];
};

// Inspect entries and add them to `acc` with their weights.
void inspect_and_add(FourRows& rows, const double* tilt, double* acc, std::size_t length);

// Inspect entries without comparing them with anything.
void inspect_rows(FourRows& rows, const double* tilt, std::size_t length);

// |row_j| <= root roots_j for all j.
bool within_minors(const double* row, const double* roots, double root, std::size_t length);

}  // namespace kernelweave
