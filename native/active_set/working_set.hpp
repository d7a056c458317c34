// The working set of an active-set method: the rows that are met with equality.
//
// For its rows S, in their order, and the free coordinates F, each with its share,
//
//     H = A_SF diag(share_F) A_SF' + diag(compliance_S) = L D L'
//
// is kept factored. A row that joins adds a line to L; a row that leaves and a coordinate that is
// fixed or freed change H by rank one, which the factor follows (Gill, Golub, Murray and Saunders
// 1974) at the cost of a line of H where a refactorisation costs a matrix.
#pragma once

#include "precision.hpp"
#include "problem.hpp"

namespace coldq::COLDQ_LEVEL {

template <class Number>
class WorkingSet {
  public:
    using Digits = Precision<Number>;

    // What H is made of; whoever owns the coordinates says which of them are free.
    struct Matrix {
        Size n = 0, p = 0;
        const double* A = nullptr;
        const double* share = nullptr;
        const double* compliance = nullptr;
        const double* square = nullptr;  // of each row, with shares, over all coordinates
        const bool* free = nullptr;
    };

    void lay_out(Memory& memory, Size n, Size p, Size most) {
        most_ = most;
        rows_ = memory.take<Size>(n + 1);
        member_ = memory.take<bool>(n);
        L_ = memory.take<Number>(most, most);
        pivots_ = memory.take<Number>(most);
        line_ = memory.take<Number>(most);
        weighted_ = memory.take<Number>(p);
    }

    void begin(const Matrix& matrix) {
        matrix_ = matrix;
        size_ = factored_ = updates_ = 0;
        fill(member_, matrix.n, false);
    }

    Size size() const { return size_; }
    Size row(Size place) const { return rows_[place]; }
    bool has(Size k) const { return member_[k]; }

    // Puts a row in without a look at the others; `refactor` sees to that.
    void propose(Size k) {
        rows_[size_++] = k;
        member_[k] = true;
    }

    // Makes the factor whole, or anew if it was changed too often. Rows that depend on others
    // leave.
    void refactor() {
        if (updates_ > Digits::UPDATES) factored_ = 0;
        if (factored_ == 0) updates_ = 0;
        const Size proposed = size_;
        size_ = factored_;
        for (Size a = factored_; a < proposed; ++a) {
            const Size k = rows_[a];
            if (extend(k)) {
                rows_[size_++] = k;
                factored_ = size_;
            } else {
                member_[k] = false;
            }
        }
    }

    // Puts a row in and says whether it is independent. If not the factor is without it, and
    // `explain` says what it is the sum of.
    bool join(Size k) {
        const bool independent = extend(k);
        rows_[size_] = k;
        member_[k] = true;
        size_ += 1;
        if (independent) factored_ = size_;
        return independent;
    }

    // Sets v to the coefficients with which the rows before sum up to the last one, which depends.
    void explain(Number* v) const {
        for (Size a = 0; a < factored_; ++a) v[a] = line_[a] / pivots_[a];
        back_substitute(v);
    }

    // Takes out the row at a place.
    void leave(Size place) {
        member_[rows_[place]] = false;
        for (Size a = place; a + 1 < size_; ++a) rows_[a] = rows_[a + 1];
        size_ -= 1;
        if (place >= factored_) return;
        const Size last = factored_ - 1;
        const Number sigma = pivots_[place];
        for (Size a = place; a < last; ++a) line_[a] = at(a + 1, place);
        for (Size j = 0; j < place; ++j)
            for (Size a = place; a < last; ++a) at(a, j) = at(a + 1, j);
        for (Size j = place; j < last; ++j) {
            pivots_[j] = pivots_[j + 1];
            for (Size a = j + 1; a < last; ++a) at(a, j) = at(a + 1, j + 1);
        }
        factored_ = last;
        follow(sigma, place);
    }

    // A coordinate was freed, or fixed; the owner's flags say so already.
    void turn(Size i, bool freed) {
        for (Size a = 0; a < factored_; ++a) line_[a] = Number(matrix_.A[rows_[a] * matrix_.p + i]);
        follow(Number(freed ? matrix_.share[i] : -matrix_.share[i]), 0);
    }

    // Solves H v = v, in the order of the set.
    void solve(Number* v) const {
        for (Size j = 0; j < factored_; ++j) {
            const Number known = v[j];
            const Number* const column = L_ + j * most_;
            for (Size a = j + 1; a < factored_; ++a) v[a] = v[a] - column[a] * known;
        }
        for (Size a = 0; a < factored_; ++a) v[a] = v[a] / pivots_[a];
        back_substitute(v);
    }

  private:
    Number& at(Size a, Size j) const { return L_[j * most_ + a]; }

    Number dot_weighted(const double* row) const {
        return sum<Number>(matrix_.p, [=, this](Size i) { return weighted_[i] * row[i]; });
    }

    void back_substitute(Number* v) const {
        for (Size j = factored_ - 1; j >= 0; --j) {
            const Number* const column = L_ + j * most_;
            const Size first = j + 1;
            const Number known = sum<Number>(
                factored_ - first, [=](Size a) { return column[first + a] * v[first + a]; });
            v[j] = v[j] - known;
        }
    }

    // Sets line `size_` of the factor for row k; whether the rows before leave some of it
    // unexplained. Leaves L's part of the line, times the pivots, in `line_`.
    bool extend(Size k) {
        const double* const own = matrix_.A + k * matrix_.p;
        const double gives = matrix_.compliance[k];
        Size room = 0;  // free coordinates less rows that do not give way
        for (Size i = 0; i < matrix_.p; ++i) {
            const bool free = matrix_.free[i];
            weighted_[i] = free ? exact_product<Number>(own[i], matrix_.share[i]) : Number(0.0);
            room += free;
        }
        const Number square = Number(gives) + dot_weighted(own);
        for (Size a = 0; a < size_; ++a) {
            line_[a] = dot_weighted(matrix_.A + rows_[a] * matrix_.p);
            room -= matrix_.compliance[rows_[a]] == 0.0;
        }
        Number rest = square;
        for (Size j = 0; j < size_; ++j) {
            const Number known = line_[j], entry = known / pivots_[j];
            const Number* const column = L_ + j * most_;
            for (Size a = j + 1; a < size_; ++a) line_[a] -= column[a] * known;
            at(size_, j) = entry;
            rest -= entry * known;
        }
        pivots_[size_] = rest;
        const bool some = rounded(square) > Digits::VANISHING * matrix_.square[k] &&
                          (room > 0 || gives > 0.0) && size_ + 1 < most_;
        return some && rounded(rest) > Digits::DEPENDENT * rounded(square);
    }

    // The factor of H + sigma v v', where v is in `line_` from `first` on. If digits get lost that
    // a new factor has, there is none until the next `refactor`.
    void follow(Number sigma, Size first) {
        updates_ += 1;
        for (Size j = first; j < factored_; ++j) {
            const Number v = line_[j], old = pivots_[j];
            if (rounded(v) == 0.0) continue;
            const Number push = sigma * v, pivot = old + push * v;
            if (!(rounded(pivot) > Digits::CANCELLED * rounded(old))) {
                factored_ = 0;
                return;
            }
            pivots_[j] = pivot;
            const Number gain = push / pivot;
            sigma = sigma * (old / pivot);
            Number* const column = L_ + j * most_;
            for (Size a = j + 1; a < factored_; ++a) {
                line_[a] -= v * column[a];
                column[a] += gain * line_[a];
            }
        }
    }

    Matrix matrix_;
    Size most_ = 0, size_ = 0, factored_ = 0;
    int updates_ = 0;
    Size* rows_ = nullptr;      // of A, in the order in which they joined
    bool* member_ = nullptr;    // by row of A
    Number* L_ = nullptr;       // column after column, below the diagonal
    Number* pivots_ = nullptr;  // D
    Number* line_ = nullptr;
    Number* weighted_ = nullptr;  // a row, with shares, where coordinates are free
};

}  // namespace coldq::COLDQ_LEVEL
