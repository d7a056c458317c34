// Rows of A, dense or sparse, as a dual method takes them.
//
// Both have the same operations: sums over a row's entries, adding a row to a vector, and the
// products of chosen rows over the free coordinates, which are centred in every block whose sum is
// held: those of differences, in which nothing cancels that is common to all.
#pragma once

#include "newton/envelope.hpp"

namespace coldq::COLDQ_LEVEL {

// Coordinates that move with z, block after block: `listed` has them, `end` where each block's end
// in that. Of a block whose sum is held only differences move, and `share` is one free coordinate's
// of their sum; else it is 0.
struct FreeCoordinates {
    Size blocks;
    Size *listed, *end;
    double* share;
};

constexpr Size NEAR_LINES = 48;       // of centred entries: they stay in the nearest cache
constexpr Size LEAST_ROOM = 100'000;  // numbers, for a matrix of sparse rows

struct DenseRows {
    Size n, p;
    const double* A;
    double *lines, *mean;  // of the chosen rows: their entries at some coordinates, and of a block

    static Size padded(Size count) { return (count + PARTS - 1) / PARTS * PARTS; }
    // Numbers of the piece's matrix; lines lie where it is factored later.
    static Size room(Size most, Size, Size) {
        const Size lines = (NEAR_LINES + 1) * padded(most);
        return lines > triangle(most) ? lines : triangle(most);
    }
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

    // Add the products of so many lines to H, in tiles of four rows by eight.
    void add_products(Size count, Size m, const Envelope& H) const {
        using Wide = Pack<WIDEST>;
        constexpr int STEPS = PARTS / WIDEST;
        const Size width = padded(m);
        for (Size a = 0; a < m; a += 4)
            for (Size c = a / PARTS * PARTS; c < m; c += PARTS) {
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
                    for (Size e = c < a + r ? a + r - c : 0; e < PARTS && c + e < m; ++e)
                        H.row(a + r)[c + e] += found[e];
                }
            }
    }

    bool set_hessian(Size* chosen, Size m, const FreeCoordinates& at, Envelope& H) const {
        const Size width = padded(m);
        for (Size a = 0; a < m; ++a) H.last[a] = m - 1;
        if (!H.lay_out(m)) return false;
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
        return true;
    }
};

struct SparseRows {
    Size n, p;
    const double* data;
    const Size *indices, *indptr;  // as SciPy's rows are compressed
    // The same by columns; where each row is among the chosen ones; what is known of each column;
    // of a block its rows and their sums.
    double *turned, *sum;
    Size *row, *pointer, *place, *column, *touched, *seen;

    // Of a sparse matrix; sums of blocks fill it.
    static Size room(Size most, Size blocks, Size entries) {
        const Size some = LEAST_ROOM + 2 * entries;
        return blocks > 1 || some > triangle(most) ? triangle(most) : some;
    }
    static Size scratch(Size n, Size p, Size most, Size entries) {
        return 2 * entries + 2 * p + 1 + n + 3 * most;
    }

    // False where these are no rows.
    bool begin(Scratch& scratch, double*, Size most, Size entries) {
        auto whole = [&](Size count) { return reinterpret_cast<Size*>(scratch.take(count)); };
        turned = scratch.take(entries);
        row = whole(entries);
        pointer = whole(p + 1);
        place = whole(n);
        column = whole(p);
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

    // List the chosen rows that hang together with row k by free coordinates, nearest first; how
    // many. A later search has a larger stamp.
    Size search(Size k, Size stamp, Size* found) const {
        Size count = 1;
        found[0] = k;
        place[k] = stamp;
        for (Size head = 0; head < count; ++head)
            for (Size e = indptr[found[head]]; e < indptr[found[head] + 1]; ++e) {
                const Size i = indices[e];
                if (column[i] < 0 || column[i] == stamp) continue;
                column[i] = stamp;
                for (Size f = pointer[i]; f < pointer[i + 1]; ++f) {
                    const Size j = row[f];
                    if (place[j] < 0 || place[j] == stamp) continue;
                    place[j] = stamp;
                    found[count++] = j;
                }
            }
        return count;
    }

    // Order the chosen rows so that those that share free coordinates are near each other: the
    // reverse of a search from the last that a search finds (Cuthill and McKee 1969).
    void bring_together(Size* chosen, Size m) const {
        Size count = 0, stamp = 0;
        for (Size a = 0; a < m; ++a) {
            if (place[chosen[a]] != 0) continue;
            const Size its = search(chosen[a], ++stamp, touched + count);
            count += search(touched[count + its - 1], ++stamp, touched + count);
        }
        for (Size a = 0; a < m; ++a) chosen[a] = touched[m - 1 - a];
    }

    bool set_hessian(Size* chosen, Size m, const FreeCoordinates& at, Envelope& H) const {
        const Size listed = at.blocks > 0 ? at.end[at.blocks - 1] : 0;
        bool held = false;
        for (Size j = 0; j < at.blocks; ++j) held = held || at.share[j] != 0.0;
        for (Size k = 0; k < n; ++k) place[k] = -1;
        for (Size a = 0; a < m; ++a) place[chosen[a]] = 0, seen[a] = -1;
        for (Size i = 0; i < p; ++i) column[i] = -1;
        for (Size c = 0; c < listed; ++c) column[at.listed[c]] = 0;
        if (!held) bring_together(chosen, m);
        for (Size c = 0; c < listed; ++c) column[at.listed[c]] = 0;
        for (Size a = m; a-- > 0;) {
            place[chosen[a]] = a;
            H.last[a] = held ? m - 1 : a;
            for (Size e = indptr[chosen[a]]; e < indptr[chosen[a] + 1]; ++e) {
                Size& farthest = column[indices[e]];  // of the rows that share the coordinate
                if (farthest == 0) farthest = a;
                if (farthest > H.last[a]) H.last[a] = farthest;
            }
        }
        if (!H.lay_out(m)) return false;
        Size begin = 0;
        for (Size j = 0; j < at.blocks; ++j) {
            add_block(at, j, begin, H);
            begin = at.end[j];
        }
        return true;
    }

    // Column by column, and of a held block less what the mean has.
    void add_block(const FreeCoordinates& at, Size j, Size begin, const Envelope& H) const {
        Size count = 0;
        for (Size c = begin; c < at.end[j]; ++c) {
            const Size first = pointer[at.listed[c]], last = pointer[at.listed[c] + 1];
            for (Size e = first; e < last; ++e) {
                const Size a = place[row[e]];
                if (a < 0) continue;
                for (Size f = first; f <= e; ++f) {
                    const Size b = place[row[f]];
                    if (b >= 0) H.row(a < b ? a : b)[a < b ? b : a] += turned[e] * turned[f];
                }
                if (at.share[j] == 0.0) continue;
                if (seen[a] != j) seen[a] = j, sum[a] = 0.0, touched[count++] = a;
                sum[a] += turned[e];
            }
        }
        for (Size u = 0; u < count; ++u) {
            const Size a = touched[u];
            const double share = sum[a] * at.share[j];
            for (Size v = 0; v < count; ++v)
                if (touched[v] >= a) H.row(a)[touched[v]] -= share * sum[touched[v]];
        }
    }
};

}  // namespace coldq::COLDQ_LEVEL
