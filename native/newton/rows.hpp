// Rows of A, dense or sparse, as a dual method takes them.
//
// Both have the same operations: sums over a row's entries, adding a row to a vector, and the
// products of chosen rows over the free coordinates, which are centred in every block whose sum is
// held: those of differences, in which nothing cancels that is common to all.
#pragma once

#include "newton/instance.hpp"

namespace coldq::COLDQ_LEVEL {

// Coordinates that move with z, block after block: `listed` has them, `end` where each block's end
// in that. Of a block whose sum is held only differences move, and `share` is one free coordinate's
// of their sum; else it is 0.
struct FreeCoordinates {
    Size blocks;
    Size *listed, *end;
    double* share;
};

// Sums of a few terms, in order; of more as everywhere.
template <int K, class F>
COLDQ_INLINE Terms<double, K> block_sums(Size count, F term) {
    if (count > PARTS) return sums_over<K, double>(count, term);
    Terms<double, K> sum = {};
    for (Size i = 0; i < count; ++i) {
        auto terms = term([i](const double* a) __attribute__((always_inline)) { return a[i]; });
        for (int k = 0; k < K; ++k) sum.of[k] += terms.of[k];
    }
    return sum;
}

constexpr Size NEAR_LINES = 48;  // of centred entries: they stay in the nearest cache

struct DenseRows {
    Size n, p;
    const double* A;
    double *lines, *mean;  // of the chosen rows: their entries at some coordinates, and of a block

    static Size padded(Size count) { return (count + PARTS - 1) / PARTS * PARTS; }
    // What lies where the piece is factored, which is after its Hessian is set.
    static Size shared(Size most) { return (NEAR_LINES + 1) * padded(most); }
    static Size scratch(Size, Size, Size, Size) { return 0; }

    bool begin(Scratch&, double* shared, Size most, Size) {
        mean = shared;
        lines = shared + padded(most);
        return true;
    }

    // The sums of `term(a, at)` over the entries a of row k, where `at(array)` reads the entry's
    // coordinate of an array.
    template <int K, class F>
    COLDQ_INLINE Terms<double, K> over(Size k, F term) const {
        const double* row = A + k * p;
        return sums_over<K, double>(
            p, [&](auto read) __attribute__((always_inline)) { return term(read(row), read); });
    }
    double largest(Size k, const double* x) const {
        double found = 0.0;
        for (Size i = 0; i < p; ++i)
            found = larger(found, A[k * p + i] == 0.0 ? 0.0 : absolute(x[i]));
        return found;
    }
    void add(Size k, double share, double* out) const {
        for (Size i = 0; i < p; ++i) out[i] += share * A[k * p + i];
    }
    void add_sizes(Size k, double share, double* out) const {
        for (Size i = 0; i < p; ++i) out[i] += absolute(share * A[k * p + i]);
    }

    // The mean of the chosen rows over the coordinates of a block whose sum is held, else zeros.
    void set_mean(const Size* chosen, Size m, const Size* listed, Size count, double share) const {
        for (Size a = 0; a < m; ++a) mean[a] = 0.0;
        if (share == 0.0) return;
        for (Size c = 0; c < count; ++c)
            for (Size a = 0; a < m; ++a) mean[a] += A[chosen[a] * p + listed[c]];
        for (Size a = 0; a < m; ++a) mean[a] *= share;
    }

    // Add the products of so many lines to the lower half of H, in tiles of four rows by eight.
    void add_products(Size count, Size m, double* H) const {
        using Wide = Pack<WIDEST>;
        constexpr int STEPS = PARTS / WIDEST;
        const Size width = padded(m);
        for (Size a = 0; a < m; a += 4)
            for (Size c = 0; c <= a + 3 && c < m; c += PARTS) {
                Wide tile[4][STEPS];
                for (int r = 0; r < 4; ++r)
                    for (int s = 0; s < STEPS; ++s) tile[r][s] = Wide(0.0);
                for (Size f = 0; f < count; ++f) {
                    const double* line = lines + f * width;
                    for (int s = 0; s < STEPS; ++s) {
                        const Wide own = load<Wide>(line + c + s * WIDEST);
                        for (int r = 0; r < 4; ++r)
                            tile[r][s] = tile[r][s] + Wide(line[a + r]) * own;
                    }
                }
                for (Size r = 0; r < 4 && a + r < m; ++r) {
                    double found[PARTS];
                    for (int s = 0; s < STEPS; ++s) store(found + s * WIDEST, tile[r][s]);
                    for (Size e = 0; e < PARTS && c + e <= a + r; ++e)
                        H[(a + r) * m + c + e] += found[e];
                }
            }
    }

    void set_hessian(const Size* chosen, Size m, const FreeCoordinates& at, double* H) const {
        const Size width = padded(m);
        for (Size e = 0; e < m * m; ++e) H[e] = 0.0;
        Size begin = 0, count = 0;
        for (Size j = 0; j < at.blocks; ++j) {
            const Size end = at.end[j];
            set_mean(chosen, m, at.listed + begin, end - begin, at.share[j]);
            for (Size c = begin; c < end; ++c) {
                double* line = lines + count * width;
                for (Size a = 0; a < m; ++a) line[a] = A[chosen[a] * p + at.listed[c]] - mean[a];
                for (Size a = m; a < width; ++a) line[a] = 0.0;
                if (++count < NEAR_LINES) continue;
                add_products(count, m, H);
                count = 0;
            }
            begin = end;
        }
        add_products(count, m, H);
        for (Size a = 0; a < m; ++a)
            for (Size c = 0; c < a; ++c) H[c * m + a] = H[a * m + c];
    }
};

struct SparseRows {
    Size n, p;
    const double* data;
    const Size *indices, *indptr;  // as SciPy's rows are compressed
    // The same by columns; which of the chosen rows each row is; of a block its rows and their sums
    double *turned, *sum;
    Size *row, *pointer, *place, *touched, *seen;

    static Size shared(Size) { return 0; }
    static Size scratch(Size n, Size p, Size most, Size entries) {
        return 2 * entries + p + 1 + n + 3 * most;
    }

    // False where these are no rows.
    bool begin(Scratch& scratch, double*, Size most, Size entries) {
        auto whole = [&](Size count) { return reinterpret_cast<Size*>(scratch.take(count)); };
        turned = scratch.take(entries);
        row = whole(entries);
        pointer = whole(p + 1);
        place = whole(n);
        touched = whole(most);
        seen = whole(most);
        sum = scratch.take(most);
        bool sound = indptr[0] == 0 && indptr[n] == entries;
        for (Size k = 0; k < n; ++k) sound = sound && indptr[k] <= indptr[k + 1];
        for (Size e = 0; e < entries; ++e) sound = sound && 0 <= indices[e] && indices[e] < p;
        if (!sound) return false;
        for (Size i = 0; i <= p; ++i) pointer[i] = 0;
        for (Size e = 0; e < entries; ++e) ++pointer[indices[e] + 1];
        for (Size i = 0; i < p; ++i) pointer[i + 1] += pointer[i];
        for (Size k = 0; k < n; ++k)
            for (Size e = indptr[k]; e < indptr[k + 1]; ++e) {
                const Size to = pointer[indices[e]]++;
                turned[to] = data[e];
                row[to] = k;
            }
        for (Size i = p; i > 0; --i) pointer[i] = pointer[i - 1];
        pointer[0] = 0;
        return true;
    }

    template <int K, class F>
    COLDQ_INLINE Terms<double, K> over(Size k, F term) const {
        Terms<double, K> sum = {};
        for (Size e = indptr[k]; e < indptr[k + 1]; ++e) {
            const Size i = indices[e];
            auto terms =
                term(data[e], [i](const double* a) __attribute__((always_inline)) { return a[i]; });
            for (int s = 0; s < K; ++s) sum.of[s] += terms.of[s];
        }
        return sum;
    }
    double largest(Size k, const double* x) const {
        double found = 0.0;
        for (Size e = indptr[k]; e < indptr[k + 1]; ++e)
            found = larger(found, data[e] == 0.0 ? 0.0 : absolute(x[indices[e]]));
        return found;
    }
    void add(Size k, double share, double* out) const {
        for (Size e = indptr[k]; e < indptr[k + 1]; ++e) out[indices[e]] += share * data[e];
    }
    void add_sizes(Size k, double share, double* out) const {
        for (Size e = indptr[k]; e < indptr[k + 1]; ++e)
            out[indices[e]] += absolute(share * data[e]);
    }

    // Of the lower half: column by column, and of a held block less what the mean has.
    void set_hessian(const Size* chosen, Size m, const FreeCoordinates& at, double* H) const {
        for (Size k = 0; k < n; ++k) place[k] = -1;
        for (Size a = 0; a < m; ++a) place[chosen[a]] = a, seen[a] = -1;
        for (Size e = 0; e < m * m; ++e) H[e] = 0.0;
        Size begin = 0;
        for (Size j = 0; j < at.blocks; ++j) {
            const Size end = at.end[j];
            Size count = 0;
            for (Size c = begin; c < end; ++c) {
                const Size first = pointer[at.listed[c]], last = pointer[at.listed[c] + 1];
                for (Size e = first; e < last; ++e) {
                    const Size a = place[row[e]];
                    if (a < 0) continue;
                    for (Size f = first; f <= e; ++f) {
                        const Size b = place[row[f]];
                        if (b >= 0) H[a * m + b] += turned[e] * turned[f];
                    }
                    if (at.share[j] == 0.0) continue;
                    if (seen[a] != j) seen[a] = j, sum[a] = 0.0, touched[count++] = a;
                    sum[a] += turned[e];
                }
            }
            take_mean(count, at.share[j], m, H);
            begin = end;
        }
        for (Size a = 0; a < m; ++a)
            for (Size b = 0; b < a; ++b) H[b * m + a] = H[a * m + b];
    }

    void take_mean(Size count, double each, Size m, double* H) const {
        for (Size u = 0; u < count; ++u) {
            const Size a = touched[u];
            const double share = sum[a] * each;
            for (Size v = 0; v < count; ++v)
                if (touched[v] <= a) H[a * m + touched[v]] -= share * sum[touched[v]];
        }
    }
};

}  // namespace coldq::COLDQ_LEVEL
