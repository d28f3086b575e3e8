/*
 * Which word was meant: the one that takes the fewest slips of the fingers (a letter too many, missing,
 * wrong, or two swapped), or that begins with what was given. Words that take many slips are not near:
 * a wrong guess helps nobody.
 */
#include "cli.h"

#include <string.h>

enum { LONGEST = 64 }; /* of a word that is compared */

static int least_of(int a, int b)
{
    return a < b ? a : b;
}

/* Slips between a and b; rows of the usual table, of which the last three are kept. */
static int slips(const char *a, int n, const char *b, int m)
{
    int rows[3][LONGEST + 1];
    int *before = rows[0], *above = rows[1], *row = rows[2];
    for (int j = 0; j <= m; j++)
        above[j] = j;
    for (int i = 1; i <= n; i++) {
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            row[j] =
                least_of(above[j - 1] + (a[i - 1] != b[j - 1]), 1 + least_of(above[j], row[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least_of(row[j], before[j - 2] + 1);
        }
        int *oldest = before;
        before = above, above = row, row = oldest;
    }
    return above[m];
}

/* Letters that tell words apart: not the dashes all options begin with. */
static int skip_dashes(const char **word, int length)
{
    int dashes = 0;
    for (; dashes < length && (*word)[dashes] == '-';)
        dashes++;
    *word += dashes;
    return length - dashes;
}

bool cli_nearest(const char *given, const char *words, char *out, size_t room)
{
    int n = skip_dashes(&given, (int)strcspn(given, "="));
    if (n == 0 || n > LONGEST)
        return false;
    int best = 1 + n / 4, found = 0; /* slips that are forgiven, and a word that takes them */
    best = least_of(best, n - 1);
    for (const char *next; *words; words = next) {
        int whole = (int)strcspn(words, " ");
        next = words + whole + (words[whole] == ' ');
        const char *word = words;
        int m = skip_dashes(&word, whole);
        if (m == 0 || m > LONGEST)
            continue;
        bool begins = n >= 3 && m > n && strncmp(given, word, (size_t)n) == 0;
        int took = begins ? 1 : slips(given, n, word, m);
        if (took > best || (took == best && found) || whole >= (int)room)
            continue;
        best = took, found = 1;
        memcpy(out, words, (size_t)whole);
        out[whole] = 0;
    }
    return found;
}
