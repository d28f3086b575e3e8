"""Calls liblockstep from another language, by ctypes and the header's signatures alone: no macro, no
struct by value. Usage: foreign_test.py LIBRARY"""
import ctypes as c
import sys

ls = c.CDLL(sys.argv[1])
F32 = 1
i64, p = c.c_int64, c.c_void_p


def function(name, result, *arguments):
    f = getattr(ls, name)
    f.restype, f.argtypes = result, arguments
    return f


version = function("ls_version", c.c_char_p)
open_frame = function("ls_frame_open", c.c_int)
close_frame = function("ls_frame_close", c.c_int, c.c_int)
from_memory = function("ls_from", p, c.c_int, c.c_int, c.POINTER(i64), p)
matmul = function("ls_matmul", p, p, p)
total = function("ls_sum", p, p, c.c_int, c.POINTER(i64), c.c_bool)
conv2d = function("ls_conv2d", p, p, p, p)
tape_open = function("ls_tape_open", p)
gradient = function("ls_gradient", p, p, p, p)
copy_out = function("ls_copy_out", c.c_int, p, p, c.c_size_t)
to_float = function("ls_to_float", c.c_float, p)
describe = function("ls_describe", c.c_char_p, p)
error = function("ls_error", c.c_int)
error_text = function("ls_error_text", c.c_char_p)


def tensor(shape, values):
    dims = (i64 * len(shape))(*shape)
    return from_memory(F32, len(shape), dims, (c.c_float * len(values))(*values))


frame = open_frame()
a, b = tensor([2, 2], [1, 2, 3, 4]), tensor([2, 1], [5, 6])
tape = tape_open()
y = total(matmul(a, b), -1, None, False)
assert to_float(y) == 5 + 12 + 15 + 24, to_float(y)
da = (c.c_float * 4)()
assert copy_out(gradient(tape, y, a), da, c.sizeof(da)) == 0
assert list(da) == [5, 6, 5, 6], list(da)


class ConvOptions(c.Structure):  # ls_conv_options
    _fields_ = [("size", c.c_size_t), ("stride", i64 * 2), ("dilation", i64 * 2), ("padding", c.c_int)]


options = ConvOptions()
function("ls_conv_init", None, p)(c.byref(options))
assert options.size == c.sizeof(options)
options.stride = (2, 2)
out = conv2d(tensor([1, 4, 4, 1], range(16)), tensor([1, 1, 1, 1], [2]), c.byref(options))
assert describe(out) == b"f32[1,2,2,1]", describe(out)

assert matmul(a, tensor([3, 1], [1, 2, 3])) is None
assert error() == 2 and b"matmul" in error_text(), error_text()
assert error() == 0
assert close_frame(frame) == 0
print("ok: lockstep", version().decode(), "from Python", sys.version.split()[0])
