"""`lockstep plot` as a person calls it: plot_test.py PATH-OF-LOCKSTEP [--write]

The plots of the run in tests/plots (which was resumed once, and has a damaged and a torn line) are
compared with what lies beside it; --write writes that anew, to be looked at.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unicodedata
import xml.etree.ElementTree as ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
PLOTS = os.path.join(HERE, 'plots')

failed = []


def run(*words, **variables):
    """(status, stdout, stderr) where no locale, colour or size is set but these."""
    env = {k: v for k, v in os.environ.items()
           if k not in ('LC_ALL', 'LC_CTYPE', 'LANG', 'NO_COLOR', 'CLICOLOR_FORCE', 'COLUMNS', 'LINES')}
    done = subprocess.run([sys.argv[1], *words], env={**env, **variables}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def check(truth, what):
    if not truth:
        failed.append(what)
        print(what)


def compare(name, got):
    path = os.path.join(PLOTS, name)
    if '--write' in sys.argv:
        with open(path, 'w', encoding='utf-8') as file:
            file.write(got)
        return
    with open(path, encoding='utf-8') as file:
        check(file.read() == got, f'{name} is not as it was:\n{got}')


def columns(line):
    plain = re.sub(r'\033\[[0-9;]*m', '', line)
    return sum(2 if unicodedata.east_asian_width(c) in 'WF' else 1 for c in plain)


def ordinary(folder):
    shutil.copy(os.path.join(PLOTS, 'run.jsonl'), folder)
    svg = os.path.join(folder, 'plot.svg')
    for name, width, variables in (
            ('80.txt', 80, {'LANG': 'C.UTF-8'}),
            ('140.txt', 140, {'LANG': 'C.UTF-8', 'LINES': '30'}),
            ('colours.txt', 100, {'LANG': 'C.UTF-8', 'CLICOLOR_FORCE': '1', 'LINES': '36'}),
            ('ascii.txt', 60, {'LANG': 'C', 'CLICOLOR_FORCE': '1', 'NO_COLOR': '1'})):
        status, out, err = run('plot', folder, COLUMNS=str(width), **variables)
        check(status == 0, f'{name}: {err}')
        check('1 of 44 lines of run.jsonl are damaged' in err, f'{name}: damage is not told: {err}')
        lines = out.split('\n')
        check(lines[-2:] == [f'wrote {svg}', ''], f'{name}: it does not say where the SVG is')
        compare(name, '\n'.join(lines[:-3]) + '\n')
        check(max(map(columns, lines[:-2])) <= width, f'{name} is too wide')
        os.unlink(svg) if name != 'ascii.txt' else None
    with open(svg, encoding='utf-8') as file:
        compare('plot.svg', file.read())
    check(sorted(os.listdir(folder)) == ['plot.svg', 'run.jsonl'], 'files are left over')


def drawn(folder):
    """The SVG is XML, paints its background and has what it should have."""
    root = ElementTree.parse(os.path.join(folder, 'plot.svg')).getroot()
    ns = '{http://www.w3.org/2000/svg}'
    check(root.tag == ns + 'svg', 'no SVG')
    first = next(root.iter(ns + 'rect'))
    check(first.get('width') == root.get('width') and first.get('height') == root.get('height'),
          'the background is not painted')
    words = ' '.join(''.join(text.itertext()) for text in root.iter(ns + 'text'))
    for wanted in ('cnn', 'lockstep train cnn --epochs 6', 'loss', 'accuracy', 'epoch', 'step',
                   '347,146 parameters', 'input', 'backward'):
        check(wanted in words, f'{wanted} is not in the SVG')
    check(len(list(root.iter(ns + 'path'))) == 5, 'not five curves')
    check(len(list(root.iter(ns + 'circle'))) == 24, 'not six epochs, four times')
    outside = [a for e in root.iter() for k, a in e.attrib.items() if 'href' in k]
    check(not outside, 'it needs other files')


def hostile(folder):
    with open(os.path.join(folder, 'run.jsonl'), 'w', encoding='utf-8') as file:
        name = '<x a="&">\x1b[2J\u202e' + '漢' * 100
        print(json.dumps({'event': 'start', 'model': name, 'command': name}), file=file)
        for i in range(1, 2000):
            print(json.dumps({'event': 'step', 'step': i, 'loss': 10.0 ** (i % 600 - 300)}), file=file)
        print(json.dumps({'event': 'epoch', 'epoch': 1, name: 1, 'loss': None}), file=file)
    status, out, err = run('plot', folder, '--width', '50', LANG='C.UTF-8')
    check(status == 0, f'hostile: {err}')
    check('\033' not in out and max(map(columns, out.split('\n')[:-3])) <= 50, 'hostile: ' + out)
    ElementTree.parse(os.path.join(folder, 'plot.svg'))


def other_places(folder):
    other = os.path.join(folder, 'other.svg')
    status, out, err = run('plot', folder, '--svg', other, '--json')
    check(status == 0 and os.path.exists(other), f'--svg: {err}')
    event = json.loads(out)
    check(event['event'] == 'plot' and event['svg'] == other and event['damaged_lines'] == 0,
          f'--json: {out}')


def refused(folder):
    def expect(what, code, *words):
        status, out, err = run('plot', *words, '--json')
        check(status == (1 if code == 'LS_IO' else 2), f'{words}: status {status}')
        check(err.count('\n') == 1 and what in err, f'{words}: {err}')
        check(json.loads(out)['code'] == code, f'{words}: {out}')

    log = os.path.join(folder, 'run.jsonl')
    expect("cannot read 'no/such'", 'LS_NOT_FOUND', 'no/such')
    expect('is no directory', 'LS_INVALID', log)
    expect("cannot write 'no/such/x.svg'", 'LS_IO', folder, '--svg', 'no/such/x.svg')
    expect("--width: '19' is not a whole number from 20", 'LS_INVALID', folder, '--width', '19')
    check(not [f for f in os.listdir(folder) if f.endswith('.part')], 'half a file is left')
    with open(log, 'w', encoding='utf-8') as file:
        file.write('{"event":"start","model":"cnn"}\n')
    expect('nothing to plot yet', 'LS_NOT_FOUND', folder)
    with open(log, 'w', encoding='utf-8') as file:
        file.write('not JSON\n')
    expect('whose lines are damaged', 'LS_NOT_FOUND', folder)
    os.unlink(log)
    expect(f"cannot read '{folder}/run.jsonl'", 'LS_NOT_FOUND', folder)
    os.mkfifo(log)
    expect('is no file', 'LS_INVALID', folder)


def main():
    with tempfile.TemporaryDirectory() as folder:
        ordinary(folder)
        drawn(folder)
        hostile(folder)
        other_places(folder)
        refused(folder)
    sys.exit(bool(failed))


main()
