// LS_FOR_EACH in C++: break, continue, return and exceptions close iterator and frame. Run by
// cpp_test.sh; prints what went wrong.
#include <lockstep.h>
#include <lockstep/image.h>
#include <lockstep/input.h>
#include <lockstep/records.h>

#include <cstdio>
#include <stdexcept>

namespace {

int wrong;

void check(bool ok, int line)
{
    if (!ok) {
        std::printf("line %d: %s\n", line, ls_error_report());
        wrong++;
    }
}
#define CHECK(x) check(x, __LINE__)

int opened, closed;

// Numbers 0 to 9, which count how often they are opened and closed.
ls_dataset *numbers()
{
    static int64_t next;
    ls_generator g;
    ls_generator_init(&g);
    g.open = [](void *, int64_t) -> void * { return opened++, next = 0, &next; };
    g.close = [](void *) { closed++; };
    g.next = [](void *, ls_value **out) {
        if (next == 10)
            return LS_END;
        *out = ls_leaf(ls_scalar_int(LS_I64, next++));
        return LS_OK;
    };
    g.spec = "i64[]";
    return ls_generate(&g);
}

int64_t number(const ls_value *v)
{
    return ls_to_int(ls_leaf_tensor(v));
}

int depth()
{
    int d = ls_frame_open();
    ls_frame_close(d);
    return d;
}

int64_t find(int64_t what)
{
    LS_FOR_EACH(v, numbers())
        LS_FRAME
            if (number(v) == what)
                return what;
    return -1;
}

void throw_at(int64_t what)
{
    LS_FOR_EACH(v, numbers())
        if (number(v) == what)
            throw std::runtime_error("here");
}

} // namespace

int main()
{
    int before = depth();
    int64_t sum = 0;
    LS_FOR_EACH(v, numbers()) {
        if (number(v) == 2)
            continue;
        if (number(v) == 6)
            break;
        CHECK(depth() == before + 1);
        sum += number(v);
    }
    CHECK(sum == 0 + 1 + 3 + 4 + 5);
    CHECK(opened == 1 && closed == 1 && depth() == before);

    CHECK(find(7) == 7 && opened == 2 && closed == 2 && depth() == before);
    CHECK(find(70) == -1 && opened == 3 && closed == 3 && depth() == before);

    bool thrown = false;
    try {
        throw_at(3);
    } catch (const std::runtime_error &) {
        thrown = true;
    }
    CHECK(thrown && opened == 4 && closed == 4 && depth() == before);

    int turns = 0;
    LS_FOR_EACH(a, ls_range(0, 3, 1))
        LS_FOR_EACH(b, ls_range(0, 5, 1)) {
            if (number(b) > number(a))
                break;
            turns++;
        }
    CHECK(turns == 6 && depth() == before);

    // Options have an init in place of the macros that C has.
    ls_map_options map;
    ls_map_init(&map);
    map.fn = [](ls_value *v, void *) { return ls_leaf(ls_add(ls_leaf_tensor(v), ls_leaf_tensor(v))); };
    map.parallel = 2;
    ls_interleave_options interleave;
    ls_interleave_init(&interleave);
    interleave.cycle = 2;
    interleave.fn = [](ls_value *v, void *) { return ls_range(number(v), number(v) + 2, 1); };
    ls_padded_options padded;
    ls_padded_init(&padded);
    ls_records_options records;
    ls_records_init(&records);
    CHECK(records.compression == LS_PLAIN && padded.size == sizeof padded);
    ls_dataset *d = ls_map(ls_interleave(ls_range(0, 20, 10), &interleave), &map);
    int64_t want[] = { 0, 20, 2, 22 }, *at = want;
    LS_FOR_EACH(v, ls_unbatch(ls_padded_batch(d, 3, &padded)))
        CHECK(at < want + 4 && number(v) == *at++);
    CHECK(at == want + 4);

    ls_mirrored_options mirrored;
    ls_mirrored_init(&mirrored);
    mirrored.replicas = 2;
    ls_strategy *s = ls_mirrored(&mirrored);
    turns = 0;
    LS_FOR_EACH(v, ls_distribute(s, ls_batch(ls_range(0, 8, 1), 4)))
        turns += ls_components(v);
    CHECK(turns == 4);
    CHECK(ls_strategy_free(s) == LS_OK);

    ls_dataset *none = nullptr;
    LS_FOR_EACH(v, none)
        CHECK(v == nullptr);
    CHECK(ls_error() == LS_INVALID);
    return wrong != 0;
}
