// Python bindings of the passes over matrices of the user.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <vector>

#include "arrays.hpp"
#include "matrices.hpp"
#include "packed.hpp"

namespace {

using Given = std::vector<Input<double, 2>>;

kw::Matrices square(const Given& K, std::size_t n) {
    kw::Matrices out;
    for (const auto& one : K) {
        require(one.shape(0) == n && one.shape(1) == n, "matrices: all must be square and of one size");
        out.push_back(one.data());
    }
    return out;
}

std::vector<std::tuple<bool, double>> check_matrices(const Given& K, Input<double, 2> roots, Input<double, 2> probes,
                                                     int n_threads) {
    const std::size_t n = probes.shape(1);
    const kw::Matrices matrices = square(K, n);
    require(probes.shape(0) == 2 && n > 0, "check_matrices: probes must be two rows of n > 0 entries");
    require(roots.shape(0) == K.size() && roots.shape(1) == n,
            "check_matrices: roots must have one row of n entries per matrix");
    std::vector<kw::GramReport> reports;
    {
        nb::gil_scoped_release release;
        reports = kw::check_matrices(matrices, n, roots.data(), probes.data(), n_threads);
    }
    std::vector<std::tuple<bool, double>> out;
    for (const auto& report : reports) out.emplace_back(report.minors, report.asymmetry);
    return out;
}

void diagonals(const Given& K, Output<double, 2> out, int n_threads) {
    const std::size_t n = out.shape(1);
    const kw::Matrices matrices = square(K, n);
    require(out.shape(0) == K.size(), "diagonals: out must have one row per matrix");
    nb::gil_scoped_release release;
    kw::diagonals(matrices, n, out.data(), n_threads);
}

void reference_means(const Given& K, Input<std::size_t, 1> chosen, Output<double, 2> out, int n_threads) {
    const std::size_t n = out.shape(1);
    const kw::Matrices matrices = square(K, n);
    require(out.shape(0) == K.size(), "reference_means: out must have one row per matrix");
    require(chosen.shape(0) > 0, "reference_means: at least one row must be chosen");
    for (std::size_t c = 0; c < chosen.shape(0); ++c)
        require(chosen.data()[c] < n, "reference_means: chosen rows must lie within K");
    nb::gil_scoped_release release;
    kw::reference_means(matrices, n, chosen.data(), chosen.shape(0), out.data(), n_threads);
}

template <class T>
void pack_matrices(const Given& K, Input<double, 2> shifts, Output<T, 2> packed, int n_threads) {
    const std::size_t n = shifts.shape(1);
    const kw::Matrices matrices = square(K, n);
    require(shifts.shape(0) == K.size(), "pack_matrices: shifts must have one row per matrix");
    require(packed.shape(0) == K.size() && packed.shape(1) == kw::triangle(n),
            "pack_matrices: packed must have one triangle of n(n+1)/2 entries per matrix");
    nb::gil_scoped_release release;
    kw::pack_matrices<T>(matrices, n, shifts.data(), packed.data(), n_threads);
}

template <class T>
void combine_matrices(const Given& K, Input<double, 1> eta, Input<double, 1> shift, Output<T, 2> out, int n_threads) {
    const std::size_t n = out.shape(0);
    const kw::Matrices matrices = square(K, n);
    require(out.shape(1) == n, "combine_matrices: out must be square");
    require(eta.shape(0) == K.size(), "combine_matrices: eta must hold one weight per matrix");
    require(shift.shape(0) == n, "combine_matrices: shift must hold one entry per column");
    nb::gil_scoped_release release;
    kw::combine_matrices<T>(matrices, n, eta.data(), shift.data(), out.data(), n_threads);
}

template <class T>
void gather_matrices(const Given& K, Input<std::size_t, 1> chosen, Input<double, 2> shifts, Output<T, 2> packed,
                     int n_threads) {
    require(!K.empty(), "gather_matrices: at least one matrix must be given");
    const std::size_t n = K[0].shape(0), n_chosen = chosen.shape(0);
    const kw::Matrices matrices = square(K, n);
    for (std::size_t c = 0; c < n_chosen; ++c)
        require(chosen.data()[c] < n, "gather_matrices: chosen rows must lie within K");
    require(shifts.shape(0) == K.size() && shifts.shape(1) == n_chosen,
            "gather_matrices: shifts must have one row of chosen entries per matrix");
    require(packed.shape(0) == K.size() && packed.shape(1) == kw::triangle(n_chosen),
            "gather_matrices: packed must have one triangle per matrix");
    nb::gil_scoped_release release;
    kw::gather_matrices<T>(matrices, n, chosen.data(), n_chosen, shifts.data(), packed.data(), n_threads);
}

void energies_of_matrices(const Given& K, Input<double, 2> V, Output<double, 1> out, int n_threads) {
    const std::size_t n = V.shape(1);
    const kw::Matrices matrices = square(K, n);
    require(out.shape(0) == K.size(), "energies_of_matrices: out must hold one entry per matrix");
    nb::gil_scoped_release release;
    kw::energies_of_matrices(matrices, n, V.data(), V.shape(0), out.data(), n_threads);
}

void matvec_of_matrices(const Given& K, Input<double, 1> eta, Input<double, 2> V, Output<double, 2> out,
                        int n_threads) {
    const std::size_t n = V.shape(1);
    const kw::Matrices matrices = square(K, n);
    require(eta.shape(0) == K.size(), "matvec_of_matrices: eta must hold one weight per matrix");
    require(out.shape(0) == V.shape(0) && out.shape(1) == n, "matvec_of_matrices: out must have the shape of V");
    nb::gil_scoped_release release;
    kw::matvec_of_matrices(matrices, n, eta.data(), V.data(), V.shape(0), out.data(), n_threads);
}

void matvecs_of_matrices(const Given& K, Input<double, 2> V, Output<double, 3> out, int n_threads, Needed needed) {
    const std::size_t n = V.shape(1);
    const kw::Matrices matrices = square(K, n);
    require(out.shape(0) == K.size() && out.shape(1) == V.shape(0) && out.shape(2) == n,
            "matvecs_of_matrices: out must have shape (matrices, rows of V, n)");
    const std::uint8_t* marked = marks(needed, V);
    nb::gil_scoped_release release;
    kw::matvecs_of_matrices(matrices, n, V.data(), V.shape(0), marked, out.data(), n_threads);
}

template <class T>
void bind(nb::module_& m) {
    m.def("pack_matrices", &pack_matrices<T>, nb::arg("K"), array("shifts"), array("packed"), threads());
    m.def("combine_matrices", &combine_matrices<T>, nb::arg("K"), array("eta"), array("shift"), array("out"),
          threads());
    m.def("gather_matrices", &gather_matrices<T>, nb::arg("K"), array("chosen"), array("shifts"), array("packed"),
          threads());
}

}  // namespace

void bind_matrices(nb::module_& m) {
    m.def("check_matrices", &check_matrices, nb::arg("K"), array("roots"), array("probes"), threads());
    m.def("diagonals", &diagonals, nb::arg("K"), array("out"), threads());
    m.def("reference_means", &reference_means, nb::arg("K"), array("chosen"), array("out"), threads());
    m.def("energies_of_matrices", &energies_of_matrices, nb::arg("K"), array("V"), array("out"), threads());
    m.def("matvec_of_matrices", &matvec_of_matrices, nb::arg("K"), array("eta"), array("V"), array("out"), threads());
    m.def("matvecs_of_matrices", &matvecs_of_matrices, nb::arg("K"), array("V"), array("out"), threads(),
          nb::arg("needed") = nb::none());
    bind<float>(m);
    bind<double>(m);
}
