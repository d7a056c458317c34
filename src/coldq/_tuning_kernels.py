"""The loops of a learner that keeps a violation rate: surprises, forecasts, margin, pool."""

import math

from coldq.compiled import batch_kernel, exact, matrix, vector

# The entries of a tally.
FACTOR, EFFORT, FIRST_STEP, LAST_STEP, JUDGED, COUNTED, EXCLUDED, SATURATED, CHOSEN, KIND = range(
    10
)
TALLY = 10
ROWS = 1.0  # the kind of affine rows
GAP, SQUARES, STEEPEST, HEAVIEST = range(4)  # and those of a hedge
HEDGE = 4
LAST, AVERAGE, TREND, SEASON = range(4)  # kinds of forecasts

SPREAD = 0.03  # the weight of a surprise in its moving average
CLIP, CLIP_FROM = 4.0, 10  # surprises count up to 4 times their average, once there are 10
FORGET = 0.02  # the least weight of a slot in a forecast's error
GAIN = 0.98  # another forecast is taken if its error is below this share
LEAST_STEP = 0.1  # of the factor
ALIKE = 1e-10  # losses of the pool, relative to R |d|, that rounding alone may make
WEIGHT = 100.0  # the price of a row of slope 1 against a loss whose step has a slope below 1
CAP = WEIGHT * (1.0 - 1e-9)
UNSEEN = 1e-6  # of R |grad g|: terms below that are lost among what a step rounds
HEARD = 1e-3  # an expert with less weight than this does not make a step saturated


@exact
def correction(t):
    """What corrects the bias of a moving average of the surprises of slots 2 to t."""
    return 1.0 / (1.0 - math.exp((t - 1.0) * math.log(1.0 - SPREAD))) if t >= 2.0 else 0.0


@exact
def slack_of(tolerance, terms, widest):
    """Above what a row of such terms counts as violated, as in ``foresight.slack_at``."""
    return tolerance * min(max(terms, UNSEEN * widest), widest)


@exact
def judge(t, g, seen, slack, rate, tally, predicted, moments, errors, out, new, wrong, margin):
    """Steps 2 to 4: was a row violated, how wrong were the forecasts, and the rows' margins.

    Violations are those of `seen`, the values where the slot was played, above their `slack`;
    forecasts were made for x_t, where the values are g. Nothing of `seen` is read once margins are
    written.
    """
    f, n = predicted.shape
    now = correction(t)
    for k in range(TALLY):
        out[k] = tally[k]
    for j in range(f):
        wrong[j] = errors[j]
        for k in range(n):
            new[j, k] = moments[j, k]
    if t >= 2.0:
        violated = False
        for k in range(n):
            violated = violated or seen[k] > slack[k]
        out[JUDGED] += 1.0
        if violated:
            out[EXCLUDED if tally[SATURATED] > 0.0 else COUNTED] += 1.0
        if rate > 0.0:
            e = -rate
            if violated:
                e = 0.0 if tally[SATURATED] > 0.0 else 1.0 - rate
            out[EFFORT] += e * e
            eta = max(LEAST_STEP, 1.0 / math.sqrt(1.0 + out[EFFORT]))
            out[FACTOR] = max(0.0, tally[FACTOR] + eta * e)
            out[LAST_STEP] = eta
            if tally[JUDGED] == 0.0:
                out[FIRST_STEP] = eta
        forget, before = max(FORGET, 1.0 / (t - 1.0)), CLIP * correction(t - 1.0)
        for j in range(f):
            error = 0.0
            for k in range(n):
                surprise = abs(g[k] - predicted[j, k])
                counted, most = surprise, before * moments[j, k]
                # What nobody would call a violation is no measure: a row may have stood still.
                if t - 2.0 >= CLIP_FROM and most > slack[k]:
                    counted = min(surprise, most)
                new[j, k] += SPREAD * (counted - moments[j, k])
                # Where the last constraint is never wrong, any surprise counts as a usual one.
                if surprise > 0.0:
                    error += surprise / (now * new[0, k]) if new[0, k] > 0.0 else 1.0
            if n > 0:
                wrong[j] += forget * (error / n - errors[j])
        chosen = int(out[CHOSEN])
        best = 0
        for j in range(1, f):
            if wrong[j] < wrong[best]:
                best = j
        if wrong[best] < GAIN * wrong[chosen]:
            out[CHOSEN] = float(best)
    chosen = int(out[CHOSEN])
    for k in range(n):
        margin[k] = out[FACTOR] * now * new[chosen, k]


@exact
def remember(t, data, past, spec, out):
    """The past of every forecast with one more slot; row 0 is the last slot itself."""
    f, d = spec.shape[0], data.size
    last = past[0]
    for j in range(f):
        kind, weight, row = int(spec[j, 0]), spec[j, 1], int(spec[j, 2])
        before, after = past[row], out[row]
        if kind == SEASON:
            for r in range(row, row + int(weight)):
                for i in range(d):
                    out[r, i] = past[r, i] if t > 1.0 else data[i]
            after = out[row + int(t) % int(weight)]
            for i in range(d):
                after[i] = data[i]
        elif kind == AVERAGE and t > 1.0:
            for i in range(d):
                after[i] = before[i] + weight * (data[i] - before[i])
        elif kind == AVERAGE:
            for i in range(d):
                after[i] = data[i]
        elif kind == TREND and t > 1.0:
            for i in range(d):
                after[i] = before[i] + weight * (data[i] - last[i] - before[i])
        elif kind == TREND:
            for i in range(d):
                after[i] = 0.0
    first = out[0]
    for i in range(d):
        first[i] = data[i]


@exact
def row_of(t, spec, j):
    """Where forecast j has the data of slot t + 1, or what it adds to row 0, after slot t."""
    if j >= spec.shape[0]:  # one of the user's own, who gave none
        return 0
    kind, row = int(spec[j, 0]), int(spec[j, 2])
    if kind == SEASON:
        period = int(spec[j, 1])
        return row + (int(t) + 1) % period if t >= spec[j, 1] else 0
    return row


@exact
def is_trend(spec, j):
    return j < spec.shape[0] and int(spec[j, 0]) == TREND


@exact
def set_weights(losses, gap, alike, weights):
    """AdaHedge's weights: those of the leaders while nothing was lost to mixing."""
    K = losses.size
    least = math.inf
    for k in range(K):
        least = min(least, losses[k])
    total, eta = 0.0, math.log(K) / gap if gap > 0.0 else 0.0
    for k in range(K):
        over = losses[k] - least
        if gap > 0.0:
            weights[k] = math.exp(-eta * over)
        else:
            weights[k] = 1.0 if over <= alike else 0.0
        total += weights[k]
    share = 1.0 / total
    for k in range(K):
        weights[k] *= share


@exact
def tune_pool(d, x, points, sizes, R, hedge, losses, weights, out, new, shares, directions, alphas):
    """Steps 1, 5 and 6: the gradient's size, the weights of the pool, and each one's own step."""
    K, p = points.shape
    square = 0.0
    for i in range(p):
        square += d[i] * d[i]
    size = math.sqrt(square)
    out[SQUARES] = hedge[SQUARES] + square
    out[STEEPEST] = max(hedge[STEEPEST], size)
    gap = hedge[GAP]
    mean, least, old = 0.0, math.inf, math.inf
    for k in range(K):
        loss = 0.0
        for i in range(p):
            loss += d[i] * (points[k, i] - x[i])
        if abs(loss) <= ALIKE * R * size:
            loss = 0.0
        mean += weights[k] * loss
        alphas[k] = loss  # kept here for a moment
        old = min(old, losses[k])
        new[k] = losses[k] + loss
        least = min(least, new[k])
    if gap > 0.0:
        eta, total = math.log(K) / gap, 0.0
        low = math.inf
        for k in range(K):
            if weights[k] > 0.0:
                low = min(low, alphas[k])
        for k in range(K):
            if weights[k] > 0.0:
                total += weights[k] * math.exp(-eta * (alphas[k] - low))
        mixed = low - math.log(total) / eta
    else:
        mixed = least - old
    lost = mean - mixed
    if K > 1 and lost > ALIKE * R * size:
        gap += lost
    out[GAP] = gap
    for k in range(K):
        new[k] -= least
    set_weights(new, gap, ALIKE * R * out[STEEPEST], shares)
    heaviest = 0
    for k in range(K):
        if shares[k] > shares[heaviest]:
            heaviest = k
    out[HEAVIEST] = sizes[heaviest]
    # Before any gradient the steps are those of a first one, of any size.
    root = math.sqrt(out[SQUARES]) if out[SQUARES] > 0.0 else 1.0
    steepest = out[STEEPEST] if out[STEEPEST] > 0.0 else 1.0
    for k in range(K):
        scale = steepest + 2.0 * sizes[k] * root
        alphas[k] = sizes[k] * root / R / scale
        part = 1.0 / scale
        for i in range(p):
            directions[k, i] = part * d[i]


@batch_kernel("(),(n),(n),(n),(),(c),(f,n),(f,n),(f)->(c),(f,n),(f),(n)")
def judge_values(sizes, at):
    n, c, f = sizes[0], sizes[1], sizes[2]
    judge(
        vector(at[0], 1)[0], vector(at[1], n), vector(at[2], n), vector(at[3], n),
        vector(at[4], 1)[0], vector(at[5], c), matrix(at[6], f, n), matrix(at[7], f, n),
        vector(at[8], f), vector(at[9], c), matrix(at[10], f, n), vector(at[11], f),
        vector(at[12], n),
    )  # fmt: skip
    return 0.0


@batch_kernel("(),(),(d),(r,d),(f,s),(g)->(r,d),(g,d)")
def remember_data(sizes, at):
    # `age` is 1 where the past is of another kind. (g) has an entry for each forecast, the user's
    # own among them.
    d, r, f, s, g = sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]
    t, age, spec = vector(at[0], 1)[0], vector(at[1], 1)[0], matrix(at[4], f, s)
    new, ahead = matrix(at[6], r, d), matrix(at[7], g, d)
    remember(age, vector(at[2], d), matrix(at[3], r, d), spec, new)
    for j in range(g):
        row = row_of(t, spec, j)
        for i in range(d):
            ahead[j, i] = new[0, i] + new[row, i] if is_trend(spec, j) else new[row, i]
    return 0.0


@batch_kernel("(p),(p),(k,p),(k),(),(h),(k),(k)->(h),(k),(k),(k,p),(k)")
def pool_steps(sizes, at):
    p, k, h = sizes[0], sizes[1], sizes[2]
    tune_pool(
        vector(at[0], p), vector(at[1], p), matrix(at[2], k, p), vector(at[3], k),
        vector(at[4], 1)[0], vector(at[5], h), vector(at[6], k), vector(at[7], k),
        vector(at[8], h), vector(at[9], k), vector(at[10], k), matrix(at[11], k, p),
        vector(at[12], k),
    )  # fmt: skip
    return 0.0


@batch_kernel("(k),(k,p),(k,n),(c)->(p),(c)")
def play_pool(sizes, at):
    k, p, n, c = sizes[0], sizes[1], sizes[2], sizes[3]
    play(
        vector(at[0], k), matrix(at[1], k, p), matrix(at[2], k, n), vector(at[3], c),
        vector(at[4], p), vector(at[5], c),
    )  # fmt: skip
    return 0.0


@exact
def play(weights, points, multipliers, tally, x, out):
    """Step 7: the mean of the pool, and whether a multiplier that counts is at its cap."""
    K, p = points.shape
    for k in range(tally.size):
        out[k] = tally[k]
    saturated = 0.0
    for j in range(K):
        if weights[j] > HEARD:
            for k in range(multipliers.shape[1]):
                if multipliers[j, k] >= CAP:
                    saturated = 1.0
    out[SATURATED] = saturated
    for i in range(p):
        total, least, largest = 0.0, math.inf, -math.inf
        for j in range(K):
            total += weights[j] * points[j, i]
            least = min(least, points[j, i])
            largest = max(largest, points[j, i])
        x[i] = min(max(total, least), largest)  # rounding must not take it out of a box


# The same for affine rows, before and after the step; data is one row after the other, (A_n, b_n).
GIVEN = "(),(n,p),(n),(p),(p),(),(),(),(c),(f,n),(f,n),(f),(r,d),(m,s),(k,p),(k),(h),(k),(k),(p)"


@exact
def look(sizes, at):
    """Steps 1 to 5 and what each of the pool steps on, of operands in the order of `before_rows`
    and room for n numbers more."""
    n, p, c, f, r, d = sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5]
    m, s, k, h = sizes[6], sizes[7], sizes[8], sizes[9]
    t, A, b, x = vector(at[0], 1)[0], matrix(at[1], n, p), vector(at[2], n), vector(at[3], p)
    R, rate, tolerance = vector(at[5], 1)[0], vector(at[6], 1)[0], vector(at[7], 1)[0]
    old, past, spec = vector(at[8], c), matrix(at[12], r, d), matrix(at[13], m, s)
    tally, margin, new = vector(at[20], c), vector(at[23], n), matrix(at[24], r, d)
    rows, limits = matrix(at[25], n, p), vector(at[26], n)

    y, g, seen, slack = vector(at[19], p), limits, margin, vector(at[32], n)
    data = vector(at[24], d)  # row 0 of what is remembered
    for j in range(n):
        value, there, terms, square = 0.0, 0.0, 0.0, 0.0
        for i in range(p):
            value += A[j, i] * x[i]
            there += A[j, i] * y[i]
            terms += abs(A[j, i] * y[i])
            square += A[j, i] * A[j, i]
            data[j * (p + 1) + i] = A[j, i]
        data[j * (p + 1) + p] = b[j]
        g[j] = value - b[j]
        seen[j] = there - b[j]
        slack[j] = slack_of(tolerance, terms + abs(b[j]), R * math.sqrt(square))
    judge(
        t, g, seen, slack, rate, old, matrix(at[9], f, n), matrix(at[10], f, n),
        vector(at[11], f), tally, matrix(at[21], f, n), vector(at[22], f), margin,
    )  # fmt: skip
    remember(t if old[KIND] == ROWS else 1.0, data, past, spec, new)
    tally[KIND] = ROWS
    chosen = int(tally[CHOSEN])
    ahead = new[row_of(t, spec, chosen)]
    share = 1.0 if is_trend(spec, chosen) else 0.0
    for j in range(n):
        square = 0.0
        for i in range(p):
            rows[j, i] = ahead[j * (p + 1) + i] + share * data[j * (p + 1) + i]
            square += rows[j, i] * rows[j, i]
        slope = math.sqrt(square)
        if slope == 0.0:
            margin[j] = 0.0  # no decision makes room for one
        limits[j] = ahead[j * (p + 1) + p] + share * data[j * (p + 1) + p] - margin[j]
        if slope > 0.0:
            part = 1.0 / slope
            limits[j] *= part
            for i in range(p):
                rows[j, i] *= part
        elif limits[j] != 0.0:  # a row that no decision moves: all that counts is its sign
            limits[j] = R if limits[j] > 0.0 else -R
    tune_pool(
        vector(at[4], p), x, matrix(at[14], k, p), vector(at[15], k), R, vector(at[16], h),
        vector(at[17], k), vector(at[18], k), vector(at[27], h), vector(at[28], k),
        vector(at[29], k), matrix(at[30], k, p), vector(at[31], k),
    )  # fmt: skip


@batch_kernel(f"{GIVEN}->(c),(f,n),(f),(n),(r,d),(n,p),(n),(h),(k),(k),(k,p),(k)")
def before_rows(sizes, at):
    look(sizes, at)
    return 0.0


@exact
def expect(t, past, spec, x, ahead):
    """What every forecast expects of the rows at x."""
    (f, n), p = ahead.shape, x.size
    last = past[0]
    for j in range(f):
        data = past[row_of(t, spec, j)]
        trend = is_trend(spec, j)
        for row in range(n):
            at_row, value = row * (p + 1), 0.0
            if trend:
                for i in range(p):
                    value += (last[at_row + i] + data[at_row + i]) * x[i]
                ahead[j, row] = value - (last[at_row + p] + data[at_row + p])
            else:
                for i in range(p):
                    value += data[at_row + i] * x[i]
                ahead[j, row] = value - data[at_row + p]


@batch_kernel("(),(k),(k,p),(k,n),(c),(r,d),(m,s),(f)->(p),(c),(f,n)")
def after_rows(sizes, at):
    k, p, n, c, r, d = sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5]
    m, s, f = sizes[6], sizes[7], sizes[8]
    x = vector(at[8], p)
    play(
        vector(at[1], k), matrix(at[2], k, p), matrix(at[3], k, n), vector(at[4], c), x,
        vector(at[9], c),
    )  # fmt: skip
    spec = matrix(at[6], m, s)
    expect(vector(at[0], 1)[0], matrix(at[5], r, d), spec, x, matrix(at[10], f, n))
    return 0.0
