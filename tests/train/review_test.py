"""What a review of `lockstep train` found: each test names what should hold."""
from command import *


def saved(folder, *words, **how):
    return train('--checkpoint', folder, *words, **how)


def longer_than_its_schedule():
    """A cosine that has come to its end, and more steps: they learn something, or it is refused. Not 20 steps at rate 0."""
    first = saved('cosine', '--steps', 10, '--schedule', 'cosine')
    words = [*SMALL, '--json', '--checkpoint', 'cosine', '--steps', 30, '--epochs', 3, '--schedule', 'cosine', '--resume']
    done = subprocess.run([LOCKSTEP, 'train', *map(str, words)], capture_output=True, timeout=PATIENCE, env=environment())
    more = Done(['train'], done.returncode, done.stdout, done.stderr)
    check(done.returncode != 0 or b'rate' in done.stderr or more.shas[0] != first.shas[0],
          'steps that change no weight, and not a word about it', more)


def cosine_of_records():
    """A cosine falls with TFRecord files, too; one that has nothing to fall in is refused."""
    write_records('c-train.tfrecord', SAMPLES, 1)
    write_records('c-test.tfrecord', TESTED, 2)
    records = ['--data', 'c-*.tfrecord', '--batch', 16]
    done, same, constant = (lockstep('train', *records, '--json', *more).shas[0] for more in
                            (['--schedule', 'cosine'], ['--schedule', 'cosine', '--steps', 10], []))
    check(done == same, 'not the cosine of 10 steps')
    check(done != constant, 'the rate is constant')
    for warmup in 10, 11:
        failed(*SMALL, '--schedule', 'cosine', '--warmup', warmup, '--json', status=2,
               says=['--schedule cosine', f'--warmup {warmup}', '10 steps', '--steps'])


def rates_that_are_ignored():
    """Another --lr, --warmup or --schedule counts, or is refused like another --clip."""
    saved('rate', '--steps', 5)
    want = train('--steps', 8).shas[0]
    for option in ['--lr', '0.5'], ['--warmup', '30'], ['--schedule', 'cosine']:
        subprocess.run(['cp', '-r', 'rate', 'rate' + option[0]], check=True)
        done = subprocess.run([LOCKSTEP, 'train', *SMALL, '--checkpoint', 'rate' + option[0], '--steps', '8', '--resume', '--json',
                               *option], capture_output=True, timeout=PATIENCE, env=environment())
        check(done.returncode != 0 or want not in done.stdout.decode(), f'{option} is ignored without a word')


def stdout_is_closed():
    """The log has the run's events, and nothing of what was for the terminal."""
    subprocess.run(['sh', '-c', 'exec "$@" >&-', 'sh', LOCKSTEP, 'train', *SMALL, '--steps', '3', '--log', 'closed'],
                   timeout=PATIENCE, env=environment(), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open('closed/run.jsonl') as f:
        for line in f:
            parse(line)


def one_directory_by_two_names():
    """--log run --checkpoint ./run: one log, each event once."""
    words = ['--log', 'one', '--checkpoint', './one', '--resume']
    train(*words, '--steps', 3)
    train(*words, '--steps', 6)
    with open('one/run.jsonl') as f:
        starts = [e for e in map(parse, f) if e['event'] == 'start']
    check(len(starts) == 2, f'{len(starts)} starts of two runs')


def weights_that_are_no_numbers():
    """A run that diverged leaves its last good checkpoint: one of weights that are not finite is no good one."""
    diverges = ['--optimizer', 'sgd', '--lr', '1e30', '--weight-decay', '1e30']
    failed(*SMALL, *diverges, '--checkpoint', 'nan', '--checkpoint-every', 1, '--keep', 1, status=1, says='not finite')
    for path in checkpoints('nan'):
        held, _ = tensors(path)
        numbers = struct.unpack(f'<{len(held["out/bias"]) // 4}f', held['out/bias'])
        kernel = struct.unpack(f'<{len(held["conv/kernel"]) // 4}f', held['conv/kernel'])
        check(all(map(math.isfinite, numbers + kernel)), f'{path} has weights that are not finite, and is the newest')


def interrupted_in_the_directory_of_a_longer_run():
    """What it says was saved is what was saved."""
    saved('longer', '--epochs', 3)
    with Going(*SMALL, '--epochs', 1000000, '--seed', 2, '--checkpoint', 'longer') as going:
        going.until(lambda e: e.get('step') == 1)
        going.send(signal.SIGINT)
        done = going.end(130)
    last = done.event('interrupted')
    check(f'step-{last["steps"]:09d}' in last['checkpoint'], 'it names a checkpoint of the run before', done)


LONG = """
#include <lockstep.h>
typedef struct net { ls_layer *e, *o; } net;
static void build(ls_model *m, void *u)
{
    net *n = u;
    n->e = ls_embedding_layer(m, "e", 256, 4, 0);
    n->o = ls_dense_layer(m, LS_DENSE_LAYER(.units = 256));
}
static ls_tensor *forward(void *u, ls_tensor *x, bool training)
{
    net *n = u;
    return ls_forward(n->o, ls_forward(n->e, x, training), training);
}
ls_model *lockstep_model(void)
{
    return ls_model_new(LS_MODEL(.name = "long", .input = "i32[8192]", .label = "i32[8192]", .shorter = true, .batch = 1,
                                 .net_bytes = sizeof(net), .build = build, .forward = forward));
}
"""


def a_long_context():
    """A model that looks back to more than 4096 bytes writes text, too."""
    with open('long.c', 'w') as f:
        f.write(LONG)
    with open('text.txt', 'w') as f:
        f.write(' '.join(map(str, range(40000))))
    lockstep('train', 'long.c', '--data', 'text.txt', '--steps', 1, '--replicas', 1, '--checkpoint', 'long')
    lockstep('sample', 'long', '--model', 'long.c', '--bytes', 3, '--prompt', 'a' * 8000)
    lockstep('evaluate', 'long', '--model', 'long.c')  # not 256 such rows at once: they are more than the text has


def a_full_disk_for_events():
    """The reason is the system's."""
    with open('/dev/full', 'w') as full:
        done = subprocess.run([LOCKSTEP, 'train', *SMALL, '--steps', '2', '--json'], stdout=full, stderr=subprocess.PIPE,
                              timeout=PATIENCE, env=environment(), stdin=subprocess.DEVNULL)
    check(b'No space left' in done.stderr, f'another reason: {done.stderr.decode()}')


def evaluated_as_it_was_trained():
    """What was trained with small data is tested with them: a test wants no training samples."""
    saved('small')
    lockstep('evaluate', 'small', '--data', DATA)


def classes_without_names():
    """Classes of one's own data have no names of Fashion-MNIST's."""
    saved('mine')
    if KIND == 'npz':
        check('Trouser' not in lockstep('predict', 'mine', DATA, '--top', 10).out, "another data set's names")


main([longer_than_its_schedule, cosine_of_records, rates_that_are_ignored, stdout_is_closed, one_directory_by_two_names, weights_that_are_no_numbers,
      interrupted_in_the_directory_of_a_longer_run, a_long_context, a_full_disk_for_events,
      evaluated_as_it_was_trained, classes_without_names])
