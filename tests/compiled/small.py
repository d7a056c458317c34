"""Small kernels, to try the cache and the calls with: each compiles in about a second."""

from __future__ import annotations

from coldq.compiled import (
    address_of,
    anywhere,
    batch_kernel,
    below,
    chosen,
    compiled,
    eight,
    exact,
    exact_inlined,
    four,
    fourfold,
    fused,
    gathered,
    gathered_2,
    gathered_4,
    gathered_8,
    joined,
    kernel,
    lane_at,
    larger,
    length,
    matrix,
    parts_from,
    put_lane,
    put_thirds,
    scattered,
    scattered_2,
    scattered_4,
    scattered_8,
    smaller,
    spread,
    thirds,
    turned,
    vector,
    width,
    without,
)  # fmt: skip
from coldq.compiled.calls import words

OFFSET = 0.5


@exact
def shifted(value):
    return value + OFFSET


@compiled
def total(values):
    s = 0.0
    for i in range(values.size):
        s += values[i]
    return s


@batch_kernel("(n,p),(p),()->(n)")
def scaled_product(sizes, at):
    """``factor A x``; returns its largest entry, if that is positive."""
    n, p = sizes[0], sizes[1]
    A, x, factor, out = (matrix(at[0], n, p), vector(at[1], p), vector(at[2], 1)[0],
                         vector(at[3], n))  # fmt: skip
    most = 0.0
    for k in range(n):
        s = 0.0
        for i in range(p):
            s += A[k, i] * x[i]
        out[k] = factor * s
        most = max(most, out[k])
    return most


@batch_kernel("(m*,p)->(p)?,()")
def column_sums(sizes, at):
    """The sums over lines that may lie apart, if wanted; and how many numbers on the stack work."""
    m, p, step = sizes[0], sizes[1], sizes[2]
    memory = vector(at[3], 1024)
    for i in range(memory.size):
        memory[i] = 1.0
    vector(at[2], 1)[0] = total(memory)
    if at[1] != 0:
        out = vector(at[1], p)
        for i in range(p):
            out[i] = 0.0
        for k in range(m):
            line = vector(at[0] + 8 * k * step, p)
            for i in range(p):
                out[i] += line[i]
    return 0.0


@kernel("VMIfi")
def everything(v, M, w, number, whole):
    """Something of every kind of argument."""
    return shifted(total(v)) + 10.0 * M[1, 0] + 100.0 * w[0] + number + whole


@kernel("VV")
def guarded_quotients(a, b):
    """Quotients where they are finite; the compiler may run all divisions ahead in its lanes."""
    largest = 0.0
    for i in range(a.size):
        quotient = a[i] / b[i] * 1e300
        largest = max(largest, quotient) if quotient < 1e308 else largest
    return largest


@kernel("V")
def three(v):
    """Several numbers at once."""
    return v[0], v[1], v[2]


@kernel("ff")
def long_product(a, b):
    """A product, and what rounding took from it."""
    return a * b, below(a, b, a * b)


@kernel("ii")
def rounds(start, stop):
    """How many rounds loops take, and the sums of what they count."""
    found, up, down, leaps = 0, 0, 0, 0
    for i in range(stop):
        found += 1 + 0 * i
    for i in range(start, stop):
        up += i
    for i in range(stop - 1, start - 1, -1):
        down += i
    for i in range(start, stop, 3):
        leaps = 10 * leaps + i
    return found, up, down, leaps


@kernel("Vii")
def wander(v, start, stop):
    """Variables set once, in one branch, in both, in loops, read after them and a round later."""
    first, rest = v[0], v[1]
    before, kept, turns, last = first, 0.0, 0, -1
    for i in range(start, stop):
        square = v[i % 3] * v[i % 3]
        for j in range(i, stop):
            if j == 4:
                break
            step = square + j
            if step > rest:
                kept, inner = kept + before, step
            else:
                inner = -step
                if i == 2:
                    continue
            kept += inner
            last = j
        before, turns = square, turns + 1
        while turns > 3:
            turns -= 2
    late = kept - first if stop > 2 else first
    return kept, before, late, turns, last


@kernel("fffi")
def extremes(a, b, c, whole):
    """The largest and the smallest of two and of three numbers, whole ones too."""
    return max(a, b), min(a, b), max(a, b, c), min(a, b, c), max(a, whole), min(whole, 3)


@kernel("Vi")
def entries(v, i):
    """Entries from both ends of memory."""
    M = matrix(address_of(v, 0), 2, 3)
    return v[0], v[-1], v[i], M[1, -1], M[-1, i], M[-2][2], M[1][i]


@batch_kernel("()->()?")
def itself(sizes, at):
    return vector(at[0], 1)[0]


ALL = scaled_product, everything, guarded_quotients, three


@exact_inlined
def lost(a, b):
    """What rounding takes from a sum."""
    s = a + b
    return b - (s - a)


@exact
def lost_further(a, b):
    return lost(a, b)


@compiled
def lost_of_both(a, b):
    return lost(a, b) + lost_further(a, b)


@kernel("ff")
def lost_to_rounding(a, b):
    """The same asked for by a function whose own sums may be reordered."""
    return lost_of_both(a, b)


@exact_inlined
def mixed(a, b, c):
    """Something of every operation, of numbers or of lanes."""
    inside = smaller(larger(fused(a, b, c), -1.0), 1.0)
    steep = without(a, inside, b) / larger(length(c), 0.5)
    either = ((a < b) & (b <= c)) | ((a > 0.5) & (c >= b)) | (inside == 1.0)
    return chosen(either, steep - inside, 0.25 * steep + a)


@batch_kernel("(p),(p),(p)->(p),(p)")
def beside(sizes, at):
    """The same of eight numbers side by side, and of one after the other."""
    like = eight()
    side = mixed(lane_at(at[0], 0, like), lane_at(at[1], 0, like), lane_at(at[2], 0, like))
    put_lane(at[3], 0, side)
    for i in range(sizes[0]):
        a, b, c = lane_at(at[0], i, 0.0), lane_at(at[1], i, 0.0), lane_at(at[2], i, 0.0)
        put_lane(at[4], i, mixed(a, b, c))
    return 1.0 if anywhere(side == spread(0.0, like)) else 0.0


@batch_kernel("(p)->(),()")
def in_four_parts(sizes, at):
    """A sum of 4, 8, ... terms in four parts that take turns, and across four lanes."""
    parts, across = parts_from(0.0), four()
    for i in range(sizes[0]):
        parts = turned(parts, lane_at(at[0], i, 0.0), 1.0)
    for i in range(0, sizes[0], 4):
        across = across + lane_at(at[0] + 8 * i, 0, across)
    put_lane(at[1], 0, joined(parts))
    put_lane(at[2], 0, fourfold(across))
    return 0.0


@batch_kernel("(m,p)->(p,m),(m,p)")
def there_and_back(sizes, at):
    """Eight lines gathered into lanes, and scattered again."""
    m, p, like = sizes[0], sizes[1], eight()
    lines, back = words(at[3], m), words(at[3] + 8 * m, m)
    for k in range(m):
        lines[k], back[k] = at[0] + 8 * k * p, at[2] + 8 * k * p
    for i in range(p):
        put_lane(at[1], i, gathered(at[3], i, like))
        scattered(at[3] + 8 * m, i, lane_at(at[1], i, like))
    return 1.0 * width(like) + width(0.0)


@batch_kernel("(m,p)->(p,m),(m,p),(m,p)")
def in_squares(sizes, at):
    """Lines of 14 numbers taken in squares into eight lanes and back; and one by one."""
    m, p, like = sizes[0], sizes[1], eight()
    lines, back, alone = words(at[4], m), words(at[4] + 8 * m, m), words(at[4] + 16 * m, m)
    for k in range(m):
        lines[k], back[k] = at[0] + 8 * k * p, at[2] + 8 * k * p
        alone[k] = at[3] + 8 * k * p
    gathered_8(at[4], 0, at[1], like)
    gathered_4(at[4], 8, at[1] + 64 * 8, like)
    gathered_2(at[4], 12, at[1] + 64 * 12, like)
    scattered_2(at[4] + 8 * m, 0, at[1], like)
    scattered_4(at[4] + 8 * m, 2, at[1] + 64 * 2, like)
    scattered_8(at[4] + 8 * m, 6, at[1] + 64 * 6, like)
    spare = at[4] + 24 * m
    for k in range(m):
        gathered_8(at[4] + 8 * k, 0, spare, 0.0)
        gathered_4(at[4] + 8 * k, 8, spare + 64, 0.0)
        gathered_2(at[4] + 8 * k, 12, spare + 96, 0.0)
        scattered_2(at[4] + 16 * m + 8 * k, 0, spare, 0.0)
        scattered_4(at[4] + 16 * m + 8 * k, 2, spare + 16, 0.0)
        scattered_8(at[4] + 16 * m + 8 * k, 6, spare + 48, 0.0)
    return 0.0


@batch_kernel("(m*,p),(m*),(m*,p)->(m*,p)")
def scaled_and_shifted(sizes, at):
    """A line times a factor, and more, where a factor or a shift may be that of all lines."""
    for k in range(sizes[0]):
        factor = lane_at(at[1], k * sizes[3], 0.0)
        for i in range(sizes[1]):
            line = lane_at(at[0], k * sizes[2] + i, 0.0)
            shift = lane_at(at[2], k * sizes[4] + i, 0.0)
            put_lane(at[3], k * sizes[5] + i, line * factor + shift)
    return 0.0


@batch_kernel("(p)->(p),(p)")
def in_thirds(sizes, at):
    """Numbers in threes, the first ones doubled and the others swapped: by lanes, and by one."""
    for i in range(0, sizes[0], 12):
        first, second, third = thirds(at[0] + 8 * i, four())
        put_thirds(at[1] + 8 * i, first + first, third, second)
    for i in range(0, sizes[0], 3):
        first, second, third = thirds(at[0] + 8 * i, 0.0)
        put_thirds(at[2] + 8 * i, first + first, third, second)
    return 0.0
