// Python bindings of the passes over pairs of rows.
#include "arrays.hpp"
#include "pairs.hpp"

namespace {

kw::Functions functions(int argument, const Input<std::int64_t, 1>& shape, const Input<std::int64_t, 1>& degree,
                        const Input<double, 1>& gamma, const Input<double, 1>& offset) {
    const std::size_t count = shape.shape(0);
    require(argument == 0 || argument == 1, "kernels: the argument is 0 for distances or 1 for inner products");
    require(degree.shape(0) == count && gamma.shape(0) == count && offset.shape(0) == count,
            "kernels: shape, degree, gamma and offset must have one entry per kernel");
    for (std::size_t a = 0; a < count; ++a)
        require(shape.data()[a] >= 0 && shape.data()[a] <= static_cast<std::int64_t>(kw::Shape::kPower),
                "kernels: there is no such shape");
    return {static_cast<kw::Argument>(argument), count, shape.data(), degree.data(), gamma.data(), offset.data()};
}

template <class T>
kw::RowSet<T> rows_of(const Input<T, 2>& X) {
    return {X.data(), X.shape(0), X.shape(1)};
}

template <class T>
void kernel_values(Input<T, 2> left, Input<T, 2> right, int argument, Input<std::int64_t, 1> shape,
                   Input<std::int64_t, 1> degree, Input<double, 1> gamma, Input<double, 1> offset, Output<T, 3> out,
                   int n_threads) {
    const auto kernels = functions(argument, shape, degree, gamma, offset);
    require(left.shape(1) == right.shape(1), "kernel_values: left and right must have the same columns");
    require(out.shape(0) == kernels.count && out.shape(1) == left.shape(0) && out.shape(2) == right.shape(0),
            "kernel_values: out must have shape (kernels, rows of left, rows of right)");
    nb::gil_scoped_release release;
    kw::kernel_values<T>(rows_of(left), rows_of(right), kernels, out.data(), n_threads);
}

template <class T>
void add_weighted_values(Input<T, 2> left, Input<T, 2> right, int argument, Input<std::int64_t, 1> shape,
                         Input<std::int64_t, 1> degree, Input<double, 1> gamma, Input<double, 1> offset,
                         Input<double, 1> weights, Output<T, 2> out, int n_threads) {
    const auto kernels = functions(argument, shape, degree, gamma, offset);
    require(left.shape(1) == right.shape(1), "add_weighted_values: left and right must have the same columns");
    require(weights.shape(0) == kernels.count, "add_weighted_values: one weight per kernel is needed");
    require(out.shape(0) == left.shape(0) && out.shape(1) == right.shape(0),
            "add_weighted_values: out must have shape (rows of left, rows of right)");
    nb::gil_scoped_release release;
    kw::add_weighted_values<T>(rows_of(left), rows_of(right), kernels, weights.data(), out.data(), n_threads);
}

template <class T>
void add_weighted_gram(Input<T, 2> rows, int argument, Input<std::int64_t, 1> shape, Input<std::int64_t, 1> degree,
                       Input<double, 1> gamma, Input<double, 1> offset, Input<double, 1> weights,
                       Output<T, 2> out, int n_threads) {
    const auto kernels = functions(argument, shape, degree, gamma, offset);
    require(weights.shape(0) == kernels.count, "add_weighted_gram: one weight per kernel is needed");
    require(out.shape(0) == rows.shape(0) && out.shape(1) == rows.shape(0),
            "add_weighted_gram: out must have one row and one column per row");
    nb::gil_scoped_release release;
    kw::add_weighted_gram<T>(rows_of(rows), kernels, weights.data(), out.data(), n_threads);
}

template <class T>
void add_products(Input<T, 2> left, Input<T, 2> right, Input<double, 2> coef, int argument,
                  Input<std::int64_t, 1> shape, Input<std::int64_t, 1> degree, Input<double, 1> gamma,
                  Input<double, 1> offset, Output<double, 3> out, int n_threads) {
    const auto kernels = functions(argument, shape, degree, gamma, offset);
    require(left.shape(1) == right.shape(1), "add_products: left and right must have the same columns");
    require(coef.shape(1) == right.shape(0), "add_products: coef must have one column per row of right");
    require(out.shape(0) == kernels.count && out.shape(1) == coef.shape(0) && out.shape(2) == left.shape(0),
            "add_products: out must have shape (kernels, rows of coef, rows of left)");
    nb::gil_scoped_release release;
    kw::add_products<T>(rows_of(left), rows_of(right), coef.data(), coef.shape(0), kernels, out.data(), n_threads);
}

template <class T>
void add_weighted_products(Input<T, 2> left, Input<T, 2> right, Input<double, 2> coef, int argument,
                           Input<std::int64_t, 1> shape, Input<std::int64_t, 1> degree, Input<double, 1> gamma,
                           Input<double, 1> offset, Input<double, 1> weights, Output<double, 2> out, int n_threads) {
    const auto kernels = functions(argument, shape, degree, gamma, offset);
    require(left.shape(1) == right.shape(1), "add_weighted_products: left and right must have the same columns");
    require(coef.shape(1) == right.shape(0), "add_weighted_products: coef must have one column per row of right");
    require(weights.shape(0) == kernels.count, "add_weighted_products: one weight per kernel is needed");
    require(out.shape(0) == coef.shape(0) && out.shape(1) == left.shape(0),
            "add_weighted_products: out must have shape (rows of coef, rows of left)");
    nb::gil_scoped_release release;
    kw::add_weighted_products<T>(rows_of(left), rows_of(right), coef.data(), coef.shape(0), kernels, weights.data(),
                                 out.data(), n_threads);
}

template <class T>
void pair_energies(Input<T, 2> rows, Input<double, 2> coef, int argument, Input<std::int64_t, 1> shape,
                   Input<std::int64_t, 1> degree, Input<double, 1> gamma, Input<double, 1> offset,
                   Output<double, 1> out, int n_threads) {
    const auto kernels = functions(argument, shape, degree, gamma, offset);
    require(coef.shape(1) == rows.shape(0), "pair_energies: coef must have one column per row");
    require(out.shape(0) == kernels.count, "pair_energies: out must have one entry per kernel");
    nb::gil_scoped_release release;
    kw::pair_energies<T>(rows_of(rows), coef.data(), coef.shape(0), kernels, out.data(), n_threads);
}

template <class T>
void bind(nb::module_& m) {
    const auto n_threads = threads();
    const nb::arg argument("argument");
    const auto shape = array("shape"), degree = array("degree"), gamma = array("gamma"), offset = array("offset");
    const auto left = array("left"), right = array("right"), rows = array("rows"), coef = array("coef");
    const auto weights = array("weights"), out = array("out");
    m.def("kernel_values", &kernel_values<T>, left, right, argument, shape, degree, gamma, offset, out, n_threads);
    m.def("add_weighted_values", &add_weighted_values<T>, left, right, argument, shape, degree, gamma, offset, weights,
          out, n_threads);
    m.def("add_weighted_gram", &add_weighted_gram<T>, rows, argument, shape, degree, gamma, offset, weights, out,
          n_threads);
    m.def("add_products", &add_products<T>, left, right, coef, argument, shape, degree, gamma, offset, out, n_threads);
    m.def("add_weighted_products", &add_weighted_products<T>, left, right, coef, argument, shape, degree, gamma,
          offset, weights, out, n_threads);
    m.def("pair_energies", &pair_energies<T>, rows, coef, argument, shape, degree, gamma, offset, out, n_threads);
}

}  // namespace

void bind_pairs(nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
}
