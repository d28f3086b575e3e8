/*
 * A graph as bytes: what graph_write.c writes and graph_read.c reads.
 *
 *     magic     8 bytes, "LSGRAPH" and a NUL
 *     version   u32, 1
 *     size      u64, of the whole, from the magic to the checksum
 *     name      string
 *     counts    u32 each: inputs, cells, constants, rows, nodes, outputs
 *     calls     u32
 *     draws     u64
 *     inputs    a spec each
 *     cells     serial u64, name string, spec
 *     constants spec, splat u8 (0 or 1), then one element of a splat, else all
 *     rows      name string, count u32, of each attribute: kind u8, name string
 *     nodes     row u32, call u32, draw u64 if the row draws,
 *               count u32 and wires u32, count u32 and cells u32, count u32 and specs,
 *               values of the attributes: u64 (a float's are its bits), or of a list
 *               count i64 and that many u64
 *     outputs   wires u32
 *     checksum  u64, FNV-1a of all before it: finds accidents, not malice
 *
 * All little-endian. A string is its length (u32) and its bytes, none of them 0. A spec
 * is dtype u8, rank u8, sizes u64. Wires have the numbers of ls__numbers (graph_out.h):
 * inputs, constants, then results in program order, so that they need no list. Rows
 * stand in the order of their first use.
 *
 * There is one way to write a graph: the reader refuses any other, so that a graph
 * read and written again is the same bytes.
 */
#ifndef LS__TRACE_GRAPH_BYTES_H
#define LS__TRACE_GRAPH_BYTES_H

#include <string.h>

#include "trace/graph.h"

/* Integers and constants travel as they lie in memory. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "graphs are stored little-endian");

#define LS__GRAPH_MAGIC "LSGRAPH"
#define LS__GRAPH_VERSION 1u
#define LS__GRAPH_HEAD (8 + 4 + 8) /* bytes of magic, version, size */

/* Finding a cell by its serial is a walk over all; so they are bounded, far above what
 * models have (the largest of TensorFlow's have some thousands, slots included). */
#define LS__GRAPH_MAX_CELLS 32768

/* The memory that constants of one file may take: a splat of a few bytes could ask for
 * any amount. */
#define LS__GRAPH_CONSTANT_BYTES ((size_t)1 << 30)

/* ls__graph_read with another bound on that memory. */
ls__graph *ls__graph_read_within(const void *bytes, size_t size, size_t constant_bytes);

static inline uint64_t ls__graph_checksum(const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash;
}

#endif
