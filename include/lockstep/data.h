/*
 * data.h: reading data.
 *
 * How to use it
 *
 *     ls_tensor *images = ls_read_idx("train-images-idx3-ubyte.gz");
 *     ls_value *train = ls_fashion_mnist("train");     // u8 [60000,28,28], u8 [60000]
 *
 * Both return tensors of the innermost frame; ls_keep holds on to them.
 */
#ifndef LOCKSTEP_DATA_H
#define LOCKSTEP_DATA_H

#include <lockstep/value.h>

LS_BEGIN_DECLS

/* An idx file (the format of MNIST), plain or gzip: the whole of it, in its
 * dtype: u8, i32, f32 or f64 (i8 and i16 become i32). */
LS_API ls_tensor *ls_read_idx(const char *path);

/* Fashion-MNIST as Debian's dataset-fashion-mnist installs it: a list of the
 * images and the labels of "train" (60,000) or "test" (10,000). The directory
 * is $LOCKSTEP_FASHION_MNIST, else the package's. */
LS_API ls_value *ls_fashion_mnist(const char *which);

LS_END_DECLS

#endif
