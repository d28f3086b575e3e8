"""What goes wrong: one clear line each, the right status, and the last good checkpoint stays whole."""
import resource
import shutil
import signal

from command import *


def unknown_models():
    """One line that names the models."""
    for words in [['nosuch'], ['nosuch', '--json'], ['cn', '--json']]:
        failed(*words, *SMALL, status=2, says=[f"'{words[0]}'", 'cnn', 'cnn2', 'mlp', 'resnet', 'gpt', 'FILE.c'])
    failed('CNN', *SMALL, status=2, says="'CNN'")
    failed('', *SMALL, status=2)
    failed('cnn', 'mlp', *SMALL, status=2, says="'mlp'")


def wrong_options():
    """Every option with what it does not take; it is named, and so is what was given."""
    wrong = {'--batch': ['0', 'x', '-1', '1.5', '99999999999999999999'], '--epochs': ['0', ''], '--steps': ['0', 'ten'],
             '--optimizer': ['rmsprop'], '--lr': ['0', '-1', 'nan', 'inf', '0.1x'], '--seed': ['x', '-1'],
             '--replicas': ['0', '1000000'], '--threads': ['0'], '--devices': ['/tpu:0', '/cpu:x', ','],
             '--cross-device-ops': ['fast'], '--keep': ['0'], '--checkpoint-every': ['0'], '--schedule': ['linear'],
             '--warmup': ['-1'], '--minutes': ['0'], '--clip': ['-1'], '--weight-decay': ['-1']}
    for option, values in wrong.items():
        for value in values:
            failed(*SMALL, '--checkpoint', 'wrong', option, value, status=2,
                   says=[value] if option == '--devices' else [option, f"'{value}'"])
        failed(*SMALL, option, status=2, says=option)
    failed(*SMALL, '--bach', '3', '--json', status=2, says=["'--bach'", '--batch'])
    failed(*SMALL, '--json=yes', status=2, says='--json')
    failed(*SMALL, '--resume', status=2, says=['--resume', '--checkpoint'])


def options_that_do_nothing():
    """Options that ask for a directory of checkpoints, without one, are no good as --resume is not."""
    failed(*SMALL, '--checkpoint-every', 2, status=2, says=['--checkpoint-every', '--checkpoint DIR'])
    failed(*SMALL, '--keep', 2, status=2, says=['--keep', '--checkpoint DIR'])


def no_internal_names():
    """A person who types options is not told of C functions."""
    for words in (['--devices', '/cpu:0,/cpu:0'], ['--devices', '/tpu:0']):
        done = failed(*SMALL, *words, status=2)
        check('ls_' not in done.err, 'a function of the library', done)


def missing_data():
    """Files that are not there, or are not what they should be."""
    failed('--data', 'missing.npz', '--json', status=2, says=['missing.npz', 'No such file'])
    failed('--data', 'missing.tfrecord', status=2, says='missing.tfrecord')
    failed('--data', 'missing-*.tfrecord', status=2, says='missing-*.tfrecord')
    failed('--data', '.', status=2)
    failed('--data', '', status=2)
    failed('gpt', '--data', 'missing.txt', status=2, says='missing.txt')
    failed('gpt', '--data', os.devnull, status=2)


def broken_arrays():
    """.npz files that lie."""
    with open('small.npz', 'rb') as f:
        good = f.read()
    for name, data in ('empty', b''), ('text', b'hello\n'), ('half', good[:len(good) // 2]), ('flipped', flipped(good)):
        with open(name + '.npz', 'wb') as f:
            f.write(data)
        failed('--data', name + '.npz', '--batch', 16, '--json', status=2, says=name + '.npz')
    x, y = samples(SAMPLES, 1)
    cases = {
        'shape': {'x_train': npy('|u1', (SAMPLES, 27, 28), x[:SAMPLES * 27 * 28])},
        'rows': {'y_train': npy('|u1', (SAMPLES - 1,), y[:-1])},
        'type': {'x_train': npy('<c8', (SAMPLES, 28, 14), x * 4)},
        'object': {'y_train': npy('|O', (SAMPLES,), y)},
        'huge': {'x_train': npy('|u1', (1 << 40, 28, 28), x)},
        'minus': {'x_train': npy('|u1', (-SAMPLES, 28, 28), x)},
        'short': {'x_train': npy('|u1', (SAMPLES, 28, 28), x[:1000])},
        'head': {'x_train': b'\x93NUMPY\x01\x00\xff\xff{'},
    }
    for name, other in cases.items():
        write_npz(f'{name}.npz', **other)
        failed('--data', f'{name}.npz', '--batch', 16, status=2, says=f'{name}.npz')
    write_npz('few.npz', train=20)
    failed('--data', 'few.npz', '--batch', 16, status=2, says=['20', '32', '--batch'])


def wrong_labels():
    """A class that the model does not have is found when a step comes to it."""
    write_npz('label.npz', y_train=npy('|u1', (SAMPLES,), bytes([200]) * SAMPLES))
    failed('--data', 'label.npz', '--batch', 16, '--json', status=1, says=['label 200', '0 to 9'])


def flipped(data):
    """A bit of the pixels, which zip's checksum finds."""
    at = len(data) // 3
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]


def missing_arrays():
    """The line says which array is wanted."""
    with zipfile.ZipFile('lacking.npz', 'w') as z:
        x, y = samples(SAMPLES, 1)
        z.writestr('x_train.npy', npy('|u1', (SAMPLES, 28, 28), x))
        z.writestr('y_train.npy', npy('|u1', (SAMPLES,), y))
        z.writestr('x_test.npy', npy('|u1', (SAMPLES, 28, 28), x))
    failed('--data', 'lacking.npz', '--batch', 16, status=2, says=['lacking.npz', 'y_test'])


def damaged_records():
    """A TFRecord file that is cut short or damaged; only training comes to some of it."""
    write_records('r-train.tfrecord', SAMPLES, 1)
    write_records('r-test.tfrecord', TESTED, 2)
    words = ['--data', 'r-*.tfrecord', '--batch', 16, '--json']
    lockstep('train', *words)
    cut('r-train.tfrecord', 0.701)
    failed_line(*words)
    write_records('r-train.tfrecord', SAMPLES, 1)
    flip('r-train.tfrecord', 0.701)
    failed_line(*words)


def failed_line(*words):
    """Fails with 1 or 2, and says where."""
    done = lockstep('train', *words, status=None)
    check(done.status in (1, 2), 'it did not fail', done)
    check('r-train.tfrecord' in done.err.splitlines()[-1], 'it does not say where', done)
    check(done.events[-1]['event'] == 'error', 'it does not end with the error', done)


def unwritable():
    """Directories that cannot be: found before anything is trained."""
    for option in '--checkpoint', '--log', '--profile':
        for path in DATA_FILE + '/below', '/proc/nothing/here':
            done = failed(*SMALL, option, path, '--json', status=2, says=[option, path])
            check(not any(e['event'] == 'step' for e in done.events), 'it trained before it looked', done)
    failed(*SMALL, '--checkpoint', DATA_FILE, status=2, says=DATA_FILE)
    os.mkdir('folder')
    for path in 'folder', 'trace.json/':
        failed(*SMALL, '--profile', path, status=2, says=['--profile', f"'{path}'", 'Is a directory'])
    if os.geteuid() != 0:
        os.mkdir('locked', 0o500)
        failed(*SMALL, '--checkpoint', 'locked', status=2, says='locked')


DATA_FILE = DATA.replace('*', 'train')


def nothing_made():
    """A command that fails before it begins leaves no directories behind."""
    failed('nosuch.c', *SMALL, '--checkpoint', 'unmade', '--log', 'unmade-log', status=2)
    failed('--data', 'missing.npz', '--checkpoint', 'unmade', '--log', 'unmade-log', status=2)
    with open('unmade.c', 'w') as f:
        f.write('int x = ;\n')
    lockstep('train', 'unmade.c', *SMALL, '--checkpoint', 'unmade', '--log', 'unmade-log', status=2)
    check(not os.path.exists('unmade') and not os.path.exists('unmade-log'), 'directories were made')


# ---- full disks -----------------------------------------------------------------------------------


def full_disk():
    """A disk that has room for one checkpoint and not for two."""
    for private in ['unshare', '-m'], ['unshare', '-rm']:
        os.makedirs('disk', exist_ok=True)
        mount = [*private, 'sh', '-c', 'mount -t tmpfs -o size=7m lockstep-test disk && exec "$@"', 'sh']
        try:
            if subprocess.run([*mount, 'true'], stderr=subprocess.DEVNULL).returncode:
                continue
        except FileNotFoundError:
            break
        done = subprocess.run([*mount, sys.executable, os.path.abspath(__file__), LOCKSTEP, KIND, 'inside', os.path.abspath('disk')],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE)
        check(done.returncode == 0, 'with a full disk', done.stdout.decode())
        return
    print('no file system may be mounted here: a limit of file sizes has to do')


def full(folder, **how):
    first = train('--checkpoint', folder, '--keep', 1)
    before = checkpoints(folder)
    words = [*SMALL, '--checkpoint', folder, '--keep', 1, '--resume', '--epochs', 2, '--json']
    done = failed(*words, status=1, says=folder, **how)
    check(checkpoints(folder) == before, 'other checkpoints, or a half-written one', done)
    check(weights_sha256(before[-1], CNN) == first.shas[0], 'the checkpoint changed')
    evaluated = lockstep('evaluate', folder, '--data', DATA, '--batch', 16, '--json').event('evaluate')
    check(abs(evaluated['loss'] - first.event('end')['test_loss']) < 1e-5, 'another loss', evaluated, first)
    return done


def on_the_disk():
    """Run by full_disk(), where the small disk is."""
    full(sys.argv[4])


def size_limit():
    """A limit on the size of files, as of a quota, stops the saving: as a full disk."""
    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    full('limited', preexec_fn=limited, restore_signals=False)


def full_output():
    """Nobody can read what is printed: it saves, fails, and does not go on for ever."""
    for i, way in enumerate((['--json'], [])):
        with open('/dev/full', 'w') as f:
            mute(f, f'full-{i}', way, 'No space left on device')
        reader, writer = os.pipe()
        os.close(reader)
        mute(writer, f'closed-{i}', way, 'Broken pipe')
        os.close(writer)


def mute(output, folder, way, why):
    """Without an end, into that; SIGPIPE, which would end it, is ignored."""
    words = [LOCKSTEP, 'train', *SMALL, '--epochs', '1000000', '--checkpoint', folder, *way]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE, timeout=PATIENCE, env=environment(),
                          preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN))
    check(done.returncode == 1 and done.stderr == f'lockstep train: cannot write the results: {why}\n'.encode(), 'not so', done)
    check(len(checkpoints(folder)) == 1, 'not saved', os.listdir(folder))


def full_log():
    """A log that cannot be written is warned of, once; the training is not the worse for it."""
    words = ['--checkpoint', 'unlogged', '--log', 'unlogged-log', '--resume']
    train(*words)
    os.remove('unlogged/run.jsonl')
    os.symlink('/dev/full', 'unlogged/run.jsonl')
    done = train(*words, '--epochs', 2)
    check(done.err == "lockstep train: warning: events are missing in 'unlogged/run.jsonl': No space left on device\n", 'not so', done)


LOST = """
#include <unistd.h>
static ls_layer *out;
static void build(ls_model *m, void *user)
{
    (void)user;
    out = ls_dense_layer(m, LS_DENSE_LAYER(.units = 10));
}
static ls_tensor *forward(void *user, ls_tensor *x, bool training)
{
    (void)user;
    if (ls_shape(x)[0] > 0)
        rmdir("lost");
    return ls_forward(out, ls_flatten_rows(x), training);
}
ls_model *lockstep_model(void)
{
    return ls_model_new(LS_MODEL(.name = "lost", .input = "f32[28,28,1]", .net_bytes = 8, .build = build, .forward = forward));
}
"""


def lost_profile():
    """A profile that cannot be written is told at the end, behind what the training came to."""
    os.mkdir('lost')
    done = failed(model_file('lost.c', LOST), *SMALL, '--profile', 'lost/trace.json', '--json', status=1, says='lost/trace.json')
    check([e['event'] for e in done.events[-2:]] == ['end', 'error'], 'no end', done)


# ---- models of a user -----------------------------------------------------------------------------


def model_file(name, text):
    with open(name, 'w') as f:
        f.write('#include <lockstep/train.h>\n' + text)
    return name


def models_that_fail():
    """A .c that does not compile, has no lockstep_model, gives NULL, or is not there."""
    name = model_file('broken.c', 'int x = ;\n')
    done = lockstep('train', name, *SMALL, '--json', status=2)
    check(done.err.startswith("lockstep train: 'broken.c' does not compile"), 'no clear first line', done)
    check('broken.c:2' in done.err.splitlines()[0], 'it does not say where', done)
    check(done.events[-1]['event'] == 'error' and 'broken.c' in done.events[-1]['text'], 'no event', done)
    failed(model_file('none.c', 'int x = 1;\n'), *SMALL, '--json', status=2, says=['none.c', 'lockstep_model'])
    failed(model_file('null.c', 'ls_model *lockstep_model(void) { return NULL; }\n'), *SMALL, '--json', status=2,
           says=['null.c', 'NULL'])
    failed('nowhere.c', *SMALL, '--json', status=2, says='nowhere.c')
    failed('nowhere.so', *SMALL, status=2, says='nowhere.so')
    with open('text.so', 'w') as f:
        f.write('no library\n')
    failed('./text.so', *SMALL, status=2, says='text.so')
    failed(model_file('input.c', 'ls_model *lockstep_model(void)\n'
                      '{ ls_model *m = ls_model_new(LS_MODEL(.input = "f32[5,5,1]"));\n'
                      '  ls_flatten_layer(m); ls_dense_layer(m, LS_DENSE_LAYER(.units = 10)); return m; }\n'),
           *SMALL, status=2)
    failed(model_file('input2.c', 'ls_model *lockstep_model(void)\n'
                      '{ return ls_model_new(LS_MODEL(.input = "f32[28,")); }\n'), *SMALL, status=2)
    failed(model_file('mine.c', 'int x;\n'), *SMALL, status=2, env={'CC': 'no-such-compiler'}, says='no-such-compiler')


CRASHES = {'SIGSEGV': '*(volatile int *)0 = 1;', 'SIGABRT': 'abort();', 'SIGFPE': 'raise(SIGFPE);', 'SIGBUS': 'raise(SIGBUS);'}


def models_that_crash():
    """When it is made."""
    for i, (name, how) in enumerate(CRASHES.items()):
        file = model_file(f'crash{i}.c', f'#include <stdlib.h>\n#include <signal.h>\n'
                          f'ls_model *lockstep_model(void) {{ {how} return NULL; }}\n')
        failed(file, *SMALL, '--json', '--checkpoint', f'crash{i}', status=1, says=[file, name])


def models_that_exit():
    """A model that ends the process has not been trained."""
    file = model_file('exit.c', '#include <stdlib.h>\nls_model *lockstep_model(void) { exit(0); }\n')
    failed(file, *SMALL, '--json', status=1, says='exit.c')


LATER = """
#include <stdlib.h>
static ls_layer *out;
static void build(ls_model *m, void *user)
{
    (void)user;
    out = ls_dense_layer(m, LS_DENSE_LAYER(.units = 10));
}
static ls_tensor *forward(void *user, ls_tensor *x, bool training)
{
    (void)user;
    const long long rows = ls_shape(x)[0];
    if (CRASH && rows > 0 && rows < 16)
        abort();
    return ls_forward(out, ls_flatten_rows(x), training);
}
ls_model *lockstep_model(void)
{
    return ls_model_new(LS_MODEL(.name = "later", .input = "f32[28,28,1]", .net_bytes = 8, .build = build,
                                 .forward = forward));
}
"""


def models_that_crash_later():
    """In a later step: the one with a short batch; what was saved before is whole."""
    words = [*SMALL, '--checkpoint', 'later', '--checkpoint-every', 4, '--json']
    failed(model_file('later.c', LATER.replace('CRASH', '1')), *words, status=1, says=['later.c', 'SIGABRT', 'step 10'])
    check([os.path.basename(p) for p in checkpoints('later')] == ['step-000000004.safetensors', 'step-000000008.safetensors'],
          'not the checkpoints before', os.listdir('later'))
    model_file('later.c', LATER.replace('CRASH', '0'))
    lockstep('evaluate', 'later', '--data', DATA, '--batch', 16, '--model', 'later.c')
    done = lockstep('train', 'later.c', *words, '--resume')
    check(done.event('start')['resumed_step'] == 8, 'it does not go on', done)
    check(done.shas == lockstep('train', 'later.c', *SMALL, '--json').shas, 'other bits after a crash', done)


REPLICA = LATER.replace('CRASH && rows > 0 && rows < 16', 'rows > 0 && ls_replica_id(ls_get_replica_context()) == 1')

# The kernel of an operator, in a step, on a thread that is not the first.
KERNEL = LATER.replace('static ls_tensor *forward', """
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
int gettid(void);
static ls_status same_shape(ls_call *c)
{
    return ls_call_output(c, 0, LS_F32, ls_call_rank(c, 0), ls_call_shape(c, 0));
}
static ls_status crash(ls_call *c)
{
    static atomic_int calls;
    if (gettid() != getpid() && ++calls > 3)
        *(volatile int *)0 = 1;
    memcpy(ls_call_out(c, 0), ls_call_in(c, 0), sizeof(float) * (size_t)ls_call_count(c, 0));
    return LS_OK;
}
static ls_status gradient(ls_grad *g)
{
    return ls_grad_give(g, 0, ls_grad_output(g, 0));
}
static const ls_op op = { .size = sizeof op, .name = "crash", .inputs = 1, .outputs = 1, .shape = same_shape, .kernel = crash,
                          .gradient = gradient };
static ls_tensor *forward""", 1).replace('rows > 0 && rows < 16', '0').replace('CRASH', 'rows').replace(
    'ls_flatten_rows(x)', 'ls_apply(&op, 1, (ls_tensor *[]){ ls_flatten_rows(x) }, NULL)')


def models_that_crash_elsewhere():
    """On a thread of the library: of one replica alone, and in a later step."""
    two = [*SMALL, '--devices', '/cpu:0,/cpu:1', '--json']
    for name, text in ('replica.c', REPLICA.replace('abort();', '*(volatile int *)0 = 1;')), ('kernel.c', KERNEL):
        failed(model_file(name, '#include <lockstep.h>\n' + text), *two, status=1, says=[f'the model {name} crashed (SIGSEGV)', 'in step '])


# ---- numbers --------------------------------------------------------------------------------------


def not_finite():
    """A loss that is no number: it stops, says in which step and operator, and keeps what was good."""
    saved = train('--checkpoint', 'nan', '--epochs', 1)
    words = [*SMALL, '--optimizer', 'sgd', '--lr', '1e30', '--json']
    done = failed(*words, status=1, says='step ')
    step = int(re.search(r'step (\d+)', done.err)[1])
    check(1 <= step <= 10, 'not a step of the first epoch', done)
    check(re.search(r"(ls_\w+|softmax|cross|conv|matmul|dense|relu|add|mul|update)", done.err), 'it names no operator', done)
    check(not any(e['event'] == 'end' for e in done.events), 'an end', done)
    again = failed(*words, '--checkpoint', 'nan2', '--checkpoint-every', 1, status=1, says=f'step {step}')
    check(again.err == done.err, 'with checkpoints another text', again, done)
    for path in checkpoints('nan2'):
        held, _ = tensors(path)
        values = struct.unpack('<640f', held['out/kernel'])
        check(all(math.isfinite(v) for v in values), f'{path} has numbers that are none')
    check(weights_sha256(checkpoints('nan')[-1], CNN) == saved.shas[0], 'another checkpoint changed')


def strange_input():
    """One pixel of the training data is no number: found when a step comes to it, and said."""
    x, _ = samples(SAMPLES, 1)
    floats = [v / 255 for v in x]
    floats[784 * 100 + 5] = math.nan
    write_npz('pixel.npz', x_train=npy('<f4', (SAMPLES, 28, 28), struct.pack(f'<{len(floats)}f', *floats)))
    words = ['--data', 'pixel.npz', '--batch', 16, '--checkpoint', 'pixel', '--checkpoint-every', 1, '--json']
    done = failed(*words, status=1, says='step ')
    step = int(re.search(r'step (\d+)', done.err)[1])
    check([int(p[-21:-12]) for p in checkpoints('pixel')][-1:] == [step - 1] * (step > 1), 'not all before is saved', done)


def without_the_loss():
    """Events of a run with such numbers have null, never NaN: --json is parsed strictly in every test."""
    x = struct.pack('<f', math.inf) * 784 * TESTED
    write_npz('inf.npz', x_test=npy('<f4', (TESTED, 28, 28), x))
    done = lockstep('train', '--data', 'inf.npz', '--batch', 16, '--json')
    epoch = done.event('epoch')
    check('test_loss' in epoch and epoch['test_loss'] is None, 'test_loss is not null', done)


if WAY == 'inside':
    sys.exit(not call(on_the_disk))

NPZ = [broken_arrays, wrong_labels, missing_arrays, strange_input, without_the_loss] if KIND == 'npz' else []
main([unknown_models, wrong_options, options_that_do_nothing, no_internal_names, missing_data, *NPZ, damaged_records,
      unwritable, nothing_made, full_disk, size_limit, full_output, full_log, lost_profile, models_that_fail, models_that_crash,
      models_that_exit, models_that_crash_later, models_that_crash_elsewhere, not_finite])
