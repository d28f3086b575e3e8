/*
 * The reductions of one element type: included by ref_reduce.c once per type,
 * with T the type, U the type sums are made in (unsigned for integers, so that
 * they wrap), NAME(x) the function's name, LOWEST and HIGHEST the limits.
 */

static T NAME(sum_one)(const walk *start, const T *x, int64_t count)
{
    walk w = *start;
    U tree[LS__SUM_LEVELS];
    U lanes[LS__SUM_LANES] = { 0 };
    int depth = 0;
    for (int64_t r = 0; r < count; r++) {
        lanes[r % LS__SUM_LANES] += (U)x[w.offset];
        walk_step(&w);
        if (r % LS__SUM_BLOCK != LS__SUM_BLOCK - 1 && r != count - 1)
            continue;
        for (int gap = LS__SUM_LANES / 2; gap; gap /= 2)
            for (int j = 0; j < gap; j++)
                lanes[j] += lanes[j + gap];
        tree[depth++] = lanes[0];
        for (int64_t block = r / LS__SUM_BLOCK; block & 1; block >>= 1, depth--)
            tree[depth - 2] += tree[depth - 1];
        for (int j = 0; j < LS__SUM_LANES; j++)
            lanes[j] = 0;
    }
    for (; depth > 1; depth--)
        tree[depth - 2] += tree[depth - 1];
    return depth ? (T)tree[0] : (T)0;
}

static T NAME(extreme_one)(ls__reduce_op op, const walk *start, const T *x, int64_t count)
{
    walk w = *start;
    T best = op == LS__REDUCE_MAX ? (T)LOWEST : (T)HIGHEST;
    for (int64_t r = 0; r < count; r++) {
        T v = x[w.offset];
        if ((op == LS__REDUCE_MAX ? v > best : v < best) || isnan((double)v))
            best = v;
        walk_step(&w);
    }
    return best;
}

/* any and all: whether a nonzero, or a zero, is among them. */
static T NAME(logic_one)(ls__reduce_op op, const walk *start, const T *x, int64_t count)
{
    walk w = *start;
    bool seek = op == LS__REDUCE_ANY, found = false;
    for (int64_t r = 0; r < count && !found; r++) {
        found = (x[w.offset] != 0) == seek;
        walk_step(&w);
    }
    return (T)(found == seek);
}

void NAME(ls__ref_reduce)(ls__reduce_op op, const ls__reduce_plan *p, const T *x, T *y)
{
    walk kept, inside;
    walk_make(&kept, p, false);
    walk_make(&inside, p, true);
    for (int64_t i = 0; i < p->kept; i++) {
        if (op == LS__REDUCE_SUM)
            y[i] = NAME(sum_one)(&inside, x + kept.offset, p->count);
        else if (op == LS__REDUCE_MAX || op == LS__REDUCE_MIN)
            y[i] = NAME(extreme_one)(op, &inside, x + kept.offset, p->count);
        else
            y[i] = NAME(logic_one)(op, &inside, x + kept.offset, p->count);
        walk_step(&kept);
    }
}

#undef T
#undef U
#undef NAME
#undef LOWEST
#undef HIGHEST
