// Python bindings of the passes over matrices of the user.
#include "module_given.hpp"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <vector>

#include "admit.hpp"
#include "given.hpp"
#include "packed.hpp"
#include "upper.hpp"
#include "arrays.hpp"

namespace {

std::tuple<bool, double> inspect(Input<double, 2> K, Input<double, 1> roots, Input<double, 2> probes) {
    const std::size_t n = K.shape(0);
    require(K.shape(1) == n, "inspect: K must be square");
    require(roots.shape(0) == n && probes.shape(0) == 2 && probes.shape(1) == n,
            "inspect: roots must hold n entries, probes two rows of n entries");
    nb::gil_scoped_release release;
    const kw::AdmitReport report = kw::inspect(K.data(), n, roots.data(), probes.data(), probes.data() + n);
    return {report.minors, report.asymmetry};
}

using Given = std::vector<Input<double, 2>>;

kw::Matrices square(const Given& K, std::size_t n) {
    kw::Matrices out;
    for (const auto& one : K) {
        require(one.shape(0) == n && one.shape(1) == n, "matrices: all must be square and of one size");
        out.push_back(one.data());
    }
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

using Reports = std::vector<std::tuple<bool, double>>;

Reports told(const std::vector<kw::AdmitReport>& reports) {
    Reports out;
    for (const auto& report : reports) out.emplace_back(report.minors, report.asymmetry);
    return out;
}

template <class T>
Reports admit_all(const Given& K, Input<double, 2> roots, Input<double, 2> probes, Input<double, 2> shifts,
                  Output<T, 2> packed, int n_threads, std::optional<Output<double, 2>> even) {
    const std::size_t n = probes.shape(1);
    const kw::Matrices matrices = square(K, n);
    require(probes.shape(0) == 2 && n > 0, "admit_all: probes must be two rows of n > 0 entries");
    for (const auto& rows : {roots, shifts})
        require(rows.shape(0) == K.size() && rows.shape(1) == n,
                "admit_all: roots and shifts must have one row of n entries per matrix");
    require(packed.shape(0) == K.size() && packed.shape(1) == kw::triangle(n),
            "admit_all: packed must have one triangle of n(n+1)/2 entries per matrix");
    require(!even || (even->shape(0) == n && even->shape(1) == n), "admit_all: even must be square, of n rows");
    double* sum = even ? even->data() : nullptr;
    std::vector<kw::AdmitReport> reports;
    {
        nb::gil_scoped_release release;
        reports = kw::admit_all<T>(matrices, n, roots.data(), probes.data(), shifts.data(), packed.data(), sum, n_threads);
    }
    return told(reports);
}

template <class T>
Reports admit_and_combine(const Given& K, Input<double, 2> roots, Input<double, 2> probes, Input<double, 1> eta,
                      Input<double, 1> shift, Output<T, 2> out, int n_threads) {
    const std::size_t n = out.shape(0);
    const kw::Matrices matrices = square(K, n);
    require(n > 0 && out.shape(1) == n, "admit_and_combine: out must be square, with at least one row");
    require(probes.shape(0) == 2 && probes.shape(1) == n, "admit_and_combine: probes must be two rows of n entries");
    require(roots.shape(0) == K.size() && roots.shape(1) == n,
            "admit_and_combine: roots must have one row of n entries per matrix");
    require(eta.shape(0) == K.size(), "admit_and_combine: eta must hold one weight per matrix");
    require(shift.shape(0) == n, "admit_and_combine: shift must hold one entry per column");
    std::vector<kw::AdmitReport> reports;
    {
        nb::gil_scoped_release release;
        reports = kw::admit_and_combine<T>(matrices, n, roots.data(), probes.data(), eta.data(), shift.data(), out.data(),
                                       n_threads);
    }
    return told(reports);
}

// Holds on to the matrices while they are read.
class UpperSums {
public:
    UpperSums(Given K, Input<double, 2> probes, int n_threads)
        : K_(std::move(K)), sums_(square(K_, checked(K_, probes)), probes.shape(1), probes.data(), n_threads) {}

    void energies(Input<double, 1> v, Output<double, 1> out) {
        require(v.shape(0) == K_[0].shape(0), "UpperSums: v must hold one entry per sample");
        require(out.shape(0) == K_.size(), "UpperSums: out must hold one entry per matrix");
        nb::gil_scoped_release release;
        sums_.energies(v.data(), out.data());
    }

    bool goes_on() const { return sums_.goes_on(); }

    std::vector<double> finish() {
        nb::gil_scoped_release release;
        return sums_.finish();
    }

private:
    static std::size_t checked(const Given& K, const Input<double, 2>& probes) {
        require(!K.empty(), "UpperSums: at least one matrix must be given");
        require(probes.shape(0) == 2 && probes.shape(1) > 0, "UpperSums: probes must be two rows of n > 0 entries");
        return probes.shape(1);
    }

    const Given K_;
    kw::UpperSums sums_;
};

template <class T>
bool take_all(const Given& K, Input<std::size_t, 1> chosen, Input<double, 2> shifts, Output<T, 2> packed,
              int n_threads) {
    require(!K.empty(), "take_all: at least one matrix must be given");
    const std::size_t n = K[0].shape(0), n_chosen = chosen.shape(0);
    const kw::Matrices matrices = square(K, n);
    for (std::size_t c = 0; c < n_chosen; ++c)
        require(chosen.data()[c] < n, "take_all: chosen rows must lie within K");
    require(shifts.shape(0) == K.size() && shifts.shape(1) == n_chosen,
            "take_all: shifts must have one row of chosen entries per matrix");
    require(packed.shape(0) == K.size() && packed.shape(1) == kw::triangle(n_chosen),
            "take_all: packed must have one triangle per matrix");
    nb::gil_scoped_release release;
    return kw::take_all<T>(matrices, n, chosen.data(), n_chosen, shifts.data(), packed.data(), n_threads);
}

void energies_all(const Given& K, Input<double, 2> V, Output<double, 1> out, int n_threads) {
    const std::size_t n = V.shape(1);
    const kw::Matrices matrices = square(K, n);
    require(out.shape(0) == K.size(), "energies_all: out must hold one entry per matrix");
    nb::gil_scoped_release release;
    kw::energies_all(matrices, n, V.data(), V.shape(0), out.data(), n_threads);
}

void image_all(const Given& K, Input<double, 1> eta, Input<double, 2> V, Output<double, 2> out, int n_threads) {
    const std::size_t n = V.shape(1);
    const kw::Matrices matrices = square(K, n);
    require(eta.shape(0) == K.size(), "image_all: eta must hold one weight per matrix");
    require(out.shape(0) == V.shape(0) && out.shape(1) == n, "image_all: out must have the shape of V");
    nb::gil_scoped_release release;
    kw::image_all(matrices, n, eta.data(), V.data(), V.shape(0), out.data(), n_threads);
}

void images_all(const Given& K, Input<double, 2> V, Output<double, 3> out, int n_threads, Where where) {
    const std::size_t n = V.shape(1);
    const kw::Matrices matrices = square(K, n);
    require(out.shape(0) == K.size() && out.shape(1) == V.shape(0) && out.shape(2) == n,
            "images_all: out must have shape (matrices, rows of V, n)");
    const std::uint8_t* marked = marks(where, V);
    nb::gil_scoped_release release;
    kw::images_all(matrices, n, V.data(), V.shape(0), marked, out.data(), n_threads);
}

template <class T>
void combine_all(const Given& K, Input<double, 1> eta, Input<double, 1> shift, Output<T, 2> out, int n_threads) {
    const std::size_t n = out.shape(0);
    const kw::Matrices matrices = square(K, n);
    require(out.shape(1) == n, "combine_all: out must be square");
    require(eta.shape(0) == K.size(), "combine_all: eta must hold one weight per matrix");
    require(shift.shape(0) == n, "combine_all: shift must hold one entry per column");
    nb::gil_scoped_release release;
    kw::combine_all<T>(matrices, n, eta.data(), shift.data(), out.data(), n_threads);
}

template <class T>
void bind(nb::module_& m) {
    m.def("admit_all", &admit_all<T>, nb::arg("K"), nb::arg("roots").noconvert(), nb::arg("probes").noconvert(),
          nb::arg("shifts").noconvert(), nb::arg("packed").noconvert(), nb::arg("n_threads") = 1,
          nb::arg("even").noconvert() = nb::none());
    m.def("admit_and_combine", &admit_and_combine<T>, nb::arg("K"), nb::arg("roots").noconvert(), nb::arg("probes").noconvert(),
          nb::arg("eta").noconvert(), nb::arg("shift").noconvert(), nb::arg("out").noconvert(), nb::arg("n_threads") = 1);
    m.def("take_all", &take_all<T>, nb::arg("K"), nb::arg("chosen").noconvert(), nb::arg("shifts").noconvert(),
          nb::arg("packed").noconvert(), nb::arg("n_threads") = 1);
    m.def("combine_all", &combine_all<T>, nb::arg("K"), nb::arg("eta").noconvert(), nb::arg("shift").noconvert(), nb::arg("out").noconvert(),
          nb::arg("n_threads") = 1);
}

}  // namespace

void bind_given(nb::module_& m) {
    m.def("inspect", &inspect, nb::arg("K").noconvert(), nb::arg("roots").noconvert(), nb::arg("probes").noconvert());
    m.def("diagonals", &diagonals, nb::arg("K"), nb::arg("out").noconvert(), nb::arg("n_threads") = 1);
    m.def("reference_means", &reference_means, nb::arg("K"), nb::arg("chosen").noconvert(),
          nb::arg("out").noconvert(), nb::arg("n_threads") = 1);
    m.def("image_all", &image_all, nb::arg("K"), nb::arg("eta").noconvert(), nb::arg("V").noconvert(),
          nb::arg("out").noconvert(), nb::arg("n_threads") = 1);
    m.def("energies_all", &energies_all, nb::arg("K"), nb::arg("V").noconvert(), nb::arg("out").noconvert(),
          nb::arg("n_threads") = 1);
    m.def("images_all", &images_all, nb::arg("K"), nb::arg("V").noconvert(), nb::arg("out").noconvert(),
          nb::arg("n_threads") = 1, nb::arg("where") = nb::none());
    nb::class_<UpperSums>(m, "UpperSums")
        .def(nb::init<Given, Input<double, 2>, int>(), nb::arg("K"), nb::arg("probes").noconvert(), nb::arg("n_threads") = 1)
        .def("energies", &UpperSums::energies, nb::arg("v").noconvert(), nb::arg("out").noconvert())
        .def_prop_ro("goes_on", &UpperSums::goes_on)
        .def("finish", &UpperSums::finish);
    bind<float>(m);
    bind<double>(m);
}
