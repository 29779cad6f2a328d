import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ledgerOf, ledgerSummary } from '../src/core/sections/retraces/layout';
import line from './fixtures/line.json';
import softmax from './fixtures/softmax.json';
import version1 from './fixtures/version1.json';
import { report } from './helpers';

test('retraces of one cause are one entry, the most time lost first', () => {
  const { entries } = ledgerOf(report(softmax));
  assert.deepEqual(
    entries.map(entry => entry.title),
    ['lr changed 5 times', 'X changed once']
  );
  assert.deepEqual(
    [entries[0]?.changes[0], entries[0]?.count, entries[0]?.where],
    [{ argument: 'lr', before: '0.1', after: '0.095' }, 5, 'lines 10–11']
  );
});

test('a retrace without a fix is harmless', () => {
  const { entries } = ledgerOf(report(softmax));
  assert.equal(entries[1]?.fix, null);
});

test('where there is no fix the panel says what the text says', () => {
  const json = report(softmax);
  const retraces = json.retraces.map(retrace => ({
    ...retrace,
    fix: null,
    compiled: retrace.argument === 'lr' ? 1 : 0
  }));
  assert.deepEqual(
    ledgerOf({ ...json, retraces }).entries.map(({ fix, unfixed }) => [fix, unfixed?.text]),
    [
      [null, 'No fix found: the changes that were tried do not avoid it.'],
      [null, 'No fix found. It cost tracing only: the compiled code was used again.']
    ]
  );
  assert.equal(ledgerOf(json).entries[0]?.unfixed, null);
  const done = { code: 'array', text: 'Once: lr was a number before, an array from now on. Nothing to fix.' };
  const settled = json.retraces.map(retrace => ({ ...retrace, fix: null, done, compiled: 1 }));
  assert.equal(ledgerOf({ ...json, retraces: settled }).entries[0]?.unfixed, done);
});

test('a fix that was replayed says what it would have done, as the newest retrace knows it', () => {
  const json = report(softmax);
  const retraces = json.retraces.map((retrace, n) => ({
    ...retrace,
    proof: retrace.fix ? `${n} traces become 1` : '',
    place: retrace.fix ? `Write this before the call in line ${n}.` : ''
  }));
  const { entries } = ledgerOf({ ...json, retraces });
  const last = retraces.filter(retrace => retrace.fix !== null).at(-1);
  assert.deepEqual([entries[0]?.proof, entries[1]?.proof], [last?.proof, '']);
  assert.deepEqual([entries[0]?.place, entries[1]?.place], [last?.place, '']);
});

test('the first trace is warm-up, not a retrace', () => {
  const ledger = ledgerOf(report(line));
  assert.deepEqual([ledger.entries.length, ledger.warmUp.length], [0, 1]);
  assert.equal(ledgerSummary(ledger), 'none after the first call');
  assert.equal(ledgerSummary(ledgerOf(report(softmax))), '32.6 ms lost');
});

test('the pieces of a cell are captured in one first call', () => {
  const json = report(line);
  const ledger = ledgerOf({ ...json, retraces: [...json.retraces, ...json.retraces] });
  assert.deepEqual([ledger.warmUp.length, ledger.warmUp[0]?.text], [1, 'traced in 2 pieces']);
});

test('a line of another cell says which', () => {
  const json = report(softmax);
  const { entries } = ledgerOf({ ...json, cell: { ...json.cell, title: 'In [9]' } });
  assert.equal(entries[0]?.where, 'In [7], lines 10–11');
});

test('a report of version 1 has its fixes as text: code is copied, a sentence that quotes code is not', () => {
  const fixOf = (fix: string | null, proof = '') =>
    report({ ...softmax, version: 1, retraces: [{ ...softmax.retraces[1], fix, proof }] }).retraces[0];
  const call = 'damp(xs, 0.1, np.asarray(0.05 * step, np.float64))';
  assert.deepEqual(fixOf(call)?.fix, { code: '', text: call, form: 'line' });
  assert.equal(fixOf('pass `np.asarray(…)` for `t` at the call in In [4], line 8')?.fix?.form, 'words');
  const once = 'Once: lr was a number before, an array from now on. Nothing to fix.';
  assert.deepEqual(fixOf(null, once)?.done, { code: '', text: once });
  assert.deepEqual([fixOf(null)?.done, fixOf(null)?.fix], [null, null]);
});

test('a report says in codes what its fixes are', () => {
  const fix = {
    code: 'as_array',
    args: { paths: ['lr'], written: 'f(np.asarray(0.1))', form: 'call' },
    text: 'f(np.asarray(0.1))'
  };
  const done = { code: 'array', args: { names: '`lr`' }, text: 'Once: `lr` was a number.' };
  const [known, none] = report({
    ...softmax,
    version: 2,
    retraces: [
      { ...softmax.retraces[1], fix, done: null, proof: '2 traces become 1' },
      { ...softmax.retraces[1], fix: null, done, proof: '' }
    ]
  }).retraces;
  assert.deepEqual([known?.fix?.code, known?.fix?.form, known?.done], ['as_array', 'call', null]);
  assert.deepEqual([none?.fix, none?.done?.text], [null, 'Once: lr was a number.']);
});

test('a report that version 1 wrote opens: its calls are code, a call that cannot be read is a sentence', () => {
  const { retraces } = report(version1);
  assert.deepEqual(
    retraces.map(({ fix, done, proof }) => [fix?.form ?? null, done, proof !== '']),
    [
      [null, null, false],
      ['line', null, true],
      ['line', null, true],
      ['line', null, true],
      [null, null, false],
      ['words', null, true]
    ]
  );
  const { entries } = ledgerOf(report(version1));
  assert.deepEqual(
    entries.map(({ changes, unfixed }) => [changes[0]?.argument, unfixed?.code]),
    entries.map(({ changes, fix }) => [changes[0]?.argument, fix ? undefined : 'recorded'])
  );
});
