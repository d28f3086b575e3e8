"""What the tests of `lockstep train` share: small data, the command, and what it prints.

Every script is called as  SCRIPT LOCKSTEP npz|records whole|short [TEST...]  and knows nothing but the
command line. It works in a folder of its own, where temporary files go, too, so that what is left behind is
seen. `records` is for builds that cannot read .npz; `short` for those that are slow.
"""
import hashlib
import json
import math
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import zipfile

PATIENCE = 120  # seconds, after which a command counts as hanging
SKIPPED = 77
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOCKSTEP, KIND, WAY = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3]
DATA = 'small.npz' if KIND == 'npz' else 'small-*.tfrecord'
SAMPLES, TESTED = 300, 100

# The model: cnn, which is the default; a tiny one where there are only the reference kernels, perhaps with
# a sanitizer.
TINY = WAY == 'short' and KIND == 'records'
MODEL = ['tiny.c'] if TINY else []
PARAMETERS = 7850 if TINY else 347146
CNN = ['conv/kernel', 'conv/bias', 'hidden/kernel', 'hidden/bias', 'out/kernel', 'out/bias']
WEIGHTS = ['out/kernel', 'out/bias'] if TINY else CNN
TINY_MODEL = '''#include <lockstep/train.h>
ls_model *lockstep_model(void)
{
    ls_model *m = ls_model_new(LS_MODEL(.input = "f32[28,28,1]"));
    ls_flatten_layer(m);
    ls_dense_layer(m, LS_DENSE_LAYER(.name = "out", .units = 10));
    return m;
}
'''

SMALL = ['--data', DATA, '--batch', '16']  # 10 steps an epoch with 2 replicas; the last batch is short


def check(truth, what, *more):
    if not truth:
        raise AssertionError(what + ''.join(f'\n    {x}' for x in more))


# ---- data -----------------------------------------------------------------------------------------


def npy(descr, shape, data):
    """The bytes of an .npy file."""
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    head += ' ' * (-(len(head) + 11) % 64) + '\n'
    return b'\x93NUMPY\x01\x00' + struct.pack('<H', len(head)) + head.encode() + data


def samples(count, seed):
    """Pictures that a model can learn: the darker, the higher the class. As bytes: pixels, labels."""
    r = random.Random(seed)
    labels = bytes(r.randrange(10) for _ in range(count))
    noise = [bytes(r.randrange(30) + 25 * c for _ in range(784)) for c in range(10) for _ in range(8)]
    return b''.join(noise[label * 8 + r.randrange(8)] for label in labels), labels


def write_npz(path, train=SAMPLES, test=TESTED, **other):
    with zipfile.ZipFile(path, 'w') as z:
        for part, count, seed in ('train', train, 1), ('test', test, 2):
            x, y = samples(count, seed)
            z.writestr(f'x_{part}.npy', other.get(f'x_{part}') or npy('|u1', (count, 28, 28), x))
            z.writestr(f'y_{part}.npy', other.get(f'y_{part}') or npy('|u1', (count,), y))


def crc_table():
    table = []
    for c in range(256):
        for _ in range(8):
            c = c >> 1 ^ (0x82f63b78 if c & 1 else 0)
        table.append(c)
    return table


CRC = crc_table()


def masked_crc32c(data):
    c = 0xffffffff
    for byte in data:
        c = CRC[(c ^ byte) & 255] ^ c >> 8
    c ^= 0xffffffff
    return ((c >> 15 | c << 17) + 0xa282ead8) & 0xffffffff


def field(number, data):
    """A protobuf field that holds bytes."""
    size, n = b'', len(data)
    while n > 127:
        size, n = size + bytes([n & 127 | 128]), n >> 7
    return bytes([number << 3 | 2]) + size + bytes([n]) + data


def example(pixels, label):
    image = field(1, b'image') + field(2, field(1, field(1, pixels)))
    number = field(1, b'label') + field(2, field(3, field(1, bytes([label]))))
    return field(1, field(1, image) + field(1, number))


def write_records(path, count, seed):
    x, y = samples(count, seed)
    with open(path, 'wb') as f:
        for i in range(count):
            data = example(x[784 * i:784 * i + 784], y[i])
            size = struct.pack('<Q', len(data))
            f.write(size + struct.pack('<I', masked_crc32c(size)))
            f.write(data + struct.pack('<I', masked_crc32c(data)))


def write_data():
    if KIND == 'npz':
        write_npz('small.npz')
    else:
        write_records('small-train.tfrecord', SAMPLES, 1)
        write_records('small-test.tfrecord', TESTED, 2)
    if TINY:
        with open('tiny.c', 'w') as f:
            f.write(TINY_MODEL)


# ---- the command ----------------------------------------------------------------------------------


def environment():
    keep = {k: v for k, v in os.environ.items()
            if not k.startswith(('LOCKSTEP', 'TMUX')) and k not in ('NO_COLOR', 'CLICOLOR_FORCE', 'LC_ALL')}
    return {**keep, 'LANG': 'C.UTF-8', 'TMPDIR': os.path.abspath('tmp'), 'COLUMNS': '80'}


class Done:
    """A command that has ended: its words, status, and what it printed."""

    def __init__(self, words, status, out, err):
        self.words, self.status = ' '.join(words), status
        self.out, self.err = out.decode(errors='replace'), err.decode(errors='replace')

    def __str__(self):
        out = re.sub(r',"replica_seconds":\[.*?\]', '', self.out)
        return f'$ lockstep {self.words}\n{out}{self.err}-> {self.status}'

    @property
    def events(self):
        """Of --json: nothing but one object a line."""
        check(self.out == '' or self.out.endswith('\n'), 'the last line has no end', self)
        return [parse(line, self) for line in self.out.splitlines()]

    def event(self, name):
        found = [e for e in self.events if e['event'] == name]
        check(len(found) == 1, f'not one event {name!r}', self)
        return found[0]

    @property
    def shas(self):
        end = self.event('end')
        return end['weights_sha256'], end['state_sha256']


def refuse(constant):
    raise ValueError(f'{constant} is not JSON')


def parse(line, whose=''):
    try:
        event = json.loads(line, parse_constant=refuse)
    except ValueError as e:
        raise AssertionError(f'not JSON ({e}): {line}\n{whose}') from None
    check(isinstance(event, dict), 'not an object', line)
    return event


def lockstep(*words, status=0, env=None, **how):
    """Runs it to its end, which has to be this one; None: any."""
    words = [str(w) for w in words]
    done = subprocess.run([LOCKSTEP, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=PATIENCE, env={**environment(), **(env or {})}, **how)
    done = Done(words, done.returncode, done.stdout, done.stderr)
    check(status in (None, done.status), f'exit status {done.status}, not {status}', done)
    return done


def train(*words, **how):
    """Small data, --json; a model first where it is not that of all tests."""
    given = [words[0]] if words and not str(words[0]).startswith('-') else []
    return lockstep('train', *given or MODEL, *SMALL, '--json', *words[len(given):], **how)


def failed(*words, status, says=(), command='train', **how):
    """Fails with one line on stderr that says all this, and the same as the last event."""
    done = lockstep(command, *words, status=status, **how)
    lines = done.err.splitlines()
    check(len(lines) == 1 and lines[0].startswith(f'lockstep {command}: '), 'not one line on stderr', done)
    for what in [says] if isinstance(says, str) else says:
        check(what in lines[0], f'stderr does not say {what!r}', done)
    if '--json' in words:
        last = done.events[-1]
        check(last['event'] == 'error' and last['code'].startswith('LS_') and last['text'] in lines[0]
              and last['hint'] in lines[0], 'it does not end with the error', done)
    else:
        check('{"' not in done.out, 'JSON without --json', done)
    return done


def heed_signals():
    """Under nohup, or behind a shell's `&`, tests begin with signals ignored, and what they start would keep that."""
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, signal.SIG_DFL)


class Going:
    """A `train --json`, or another command, that is under way; closed at the end whatever happens."""

    def __init__(self, *words, command='train', env=None, **how):
        how.setdefault('preexec_fn', heed_signals)
        self.words = [command, *map(str, words), '--json']
        self.process = subprocess.Popen([LOCKSTEP, *self.words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env={**environment(), **(env or {})}, **how)
        self.read = b''

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def until(self, fine):
        """Reads events until one is `fine`."""
        for line in self.process.stdout:
            self.read += line
            if fine(parse(line.decode())):
                return
        raise AssertionError(f'ended too early: {self.read.decode()}{self.process.stderr.read().decode()}')

    def until_there(self, path):
        """Waits until the model has made this file."""
        until = time.monotonic() + PATIENCE
        while not os.path.exists(path):
            check(self.process.poll() is None and time.monotonic() < until, f'it never made {path}', self.words)
            time.sleep(0.005)

    def send(self, number):
        """Returns when the signal was taken."""
        self.process.send_signal(number)
        bit = 1 << number - 1
        until = time.monotonic() + PATIENCE
        while self.process.poll() is None and self.pending() & bit:
            check(time.monotonic() < until, f'signal {number} is never taken')
            time.sleep(0.001)

    def pending(self):
        try:
            with open(f'/proc/{self.process.pid}/status') as f:
                return int(re.search(r'ShdPnd:\s*(\w+)', f.read())[1], 16)
        except OSError:
            return 0

    def end(self, status):
        out, err = self.process.communicate(timeout=PATIENCE)
        done = Done(self.words, self.process.returncode, self.read + out, err)
        check(done.status == status, f'exit status {done.status}, not {status}', done)
        return done


# ---- checkpoints ----------------------------------------------------------------------------------


def checkpoints(folder):
    """Names of checkpoints, oldest first; nothing half-written is among the files."""
    names = sorted(os.listdir(folder))
    rest = [n for n in names if not re.fullmatch(r'step-\d+\.safetensors|run\.jsonl|plot\.svg|earlier-\d+', n)]
    check(not rest, f'strange files in {folder}: {rest}')
    return [os.path.join(folder, n) for n in names if n.endswith('.safetensors')]


def tensors(path):
    """Of a safetensors file: {name: bytes}, and the notes."""
    with open(path, 'rb') as f:
        data = f.read()
    size = struct.unpack('<Q', data[:8])[0]
    head = json.loads(data[8:8 + size])
    notes = head.pop('__metadata__', {})
    body = data[8 + size:]
    return {k: body[v['data_offsets'][0]:v['data_offsets'][1]] for k, v in head.items()}, notes


def weights_sha256(path, names):
    held, _ = tensors(path)
    return hashlib.sha256(b''.join(held[n] for n in names)).hexdigest()


def flip(path, where=0.5):
    """One bit, at this part of the file."""
    with open(path, 'r+b') as f:
        at = int(os.path.getsize(path) * where)
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ 1]))


def cut(path, part=0.5):
    os.truncate(path, int(os.path.getsize(path) * part))


# ---- a script -------------------------------------------------------------------------------------


def call(test):
    """False when it fails. What it did is in a folder of its own name."""
    began = time.monotonic()
    try:
        test()
    except (AssertionError, subprocess.TimeoutExpired, KeyError, IndexError, OSError) as e:
        text = str(e) if isinstance(e, AssertionError) else traceback.format_exc()
        print(f'FAIL {test.__name__}: {test.__doc__ or ""}\n{text}\n', file=sys.stderr)
        return False
    print(f'ok {test.__name__} {time.monotonic() - began:.2f} s')
    return True


def main(whole, short=()):
    """Runs these tests, or those named; all of them, even when one fails."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was started is ended
    tests = {t.__name__: t for t in (short if WAY == 'short' else whole)}
    chosen = [tests[n] for n in sys.argv[4:]] or list(tests.values())
    with tempfile.TemporaryDirectory(prefix='lockstep-train-') as folder:
        os.chdir(folder)
        os.mkdir('tmp')
        write_data()
        good = [call(test) for test in chosen]
        left = os.listdir('tmp')
        os.chdir('/')
    if left:
        print(f'left behind in TMPDIR: {left}', file=sys.stderr)
    sys.exit(not all(good) or bool(left))
