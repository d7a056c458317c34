// Weighted products, factors and solutions as entries, which the tests look at.
#include "dense.hpp"

#include "each.hpp"

namespace coldq::COLDQ_LEVEL {
namespace {

constexpr double LEAST_PIVOT = 1e-14;  // of the diagonal entry

// H = A' diag(w) A + diag(D) or A diag(w) A' + diag(D), its factor, and d with H d = right.
template <class T>
struct System {
    T *H, *factor, *weights, *inverse, *d, *work;
    Size m;

    static Size numbers(Size n, Size p, bool columns) {
        const Size m = columns ? p : n, terms = columns ? n : p;
        const Size work = columns ? weighted_columns_work(p) : weighted_rows_work(n);
        return Size(sizeof(T) / sizeof(double)) * (2 * m * m + terms + 2 * m + work);
    }

    System(Scratch scratch, Matrix A, Vector w, Vector diagonal, bool columns) : m(diagonal.size) {
        T* memory = reinterpret_cast<T*>(scratch.at);
        auto take = [&](Size count) { return (memory += count) - count; };
        H = take(m * m), factor = take(m * m), weights = take(w.size);
        inverse = take(m), d = take(m), work = memory;
        for (Size i = 0; i < m * m; ++i) H[i] = T(0.0);
        for (Size i = 0; i < m; ++i) H[i * m + i] = T(diagonal[i]);
        for (Size i = 0; i < w.size; ++i) weights[i] = T(w[i]);
        const Lines<double> lines = {A.at, A.step};
        if (columns)
            add_weighted_columns(H, m, lines, A.rows, A.columns, weights, work);
        else
            add_weighted_rows(H, m, lines, A.rows, A.columns, weights, work);
    }
};

template <class T, bool columns>
void weighted_system(Scratch scratch, Matrix A, Vector w, Vector diagonal, Vector right,
                     OutMatrix H, OutMatrix U, OutVector d, double& sound) {
    System<T> of(scratch, A, w, diagonal, columns);
    const Size m = of.m;
    for (Size i = 0; i < m * m; ++i) of.factor[i] = of.H[i];
    sound = coldq::COLDQ_LEVEL::factor(of.factor, m, m, of.inverse, LEAST_PIVOT);
    for (Size i = 0; i < m; ++i) of.d[i] = T(right[i]);
    solve(of.factor, m, m, of.inverse, of.d);
    for (Size i = 0; i < m; ++i) {
        d[i] = rounded(of.d[i]);
        for (Size j = 0; j < m; ++j) {
            H[i][j] = j < i ? 0.0 : rounded(of.H[i * m + j]);
            U[i][j] = j < i ? 0.0 : rounded(of.factor[i * m + j]);
        }
    }
}

template <class T, bool columns>
Size scratch(const Operand* operands) {
    return System<T>::numbers(operands[0].length[0], operands[0].length[1], columns);
}

}  // namespace

extern const Entry dense[];
const Entry dense[] = {
    {"column_system", "(n,p),(n),(p),(p)->(p,p),(p,p),(p),()", each<weighted_system<double, true>>,
     scratch<double, true>},
    {"row_system", "(n,p),(p),(n),(n)->(n,n),(n,n),(n),()", each<weighted_system<double, false>>,
     scratch<double, false>},
    {"column_system_extended", "(n,p),(n),(p),(p)->(p,p),(p,p),(p),()",
     each<weighted_system<DoubleDouble, true>>, scratch<DoubleDouble, true>},
    {"row_system_extended", "(n,p),(p),(n),(n)->(n,n),(n,n),(n),()",
     each<weighted_system<DoubleDouble, false>>, scratch<DoubleDouble, false>},
    {},
};

}  // namespace coldq::COLDQ_LEVEL
