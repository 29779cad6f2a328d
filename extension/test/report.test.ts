import assert from 'node:assert/strict';
import { test } from 'node:test';
import { editsOf } from '../src/core/report/edits';
import { clean } from '../src/core/base/read';
import { readReport } from '../src/core/report/read-report';
import { prompted } from '../src/core/report/sources';
import acts from './fixtures/acts.json';
import softmax from './fixtures/softmax.json';
import { report } from './helpers';

test('a report is read as it stands in docs/reference/report-format.md', () => {
  const read = report(softmax);
  assert.equal(read.verdict.lead, '21 of 22 operations compiled');
  assert.equal(read.ops.length, 22);
  assert.deepEqual(
    read.lanes.map(lane => lane.name),
    ['op by op', 'compiled', 'kernels', 'host', 'compiling', 'codegen good']
  );
  assert.equal(read.boundaries[0]?.flip?.text, 'p were read by np.take_along_axis(p, y[:, None], 1)');
});

/** Of each kind that `clean` of jitlab/ir/graphs/dot.py escapes: tests/ir/test_clean.py holds it to the same. */
for (const [raw, shown] of acts as [string, string][]) {
  test(`what would act is a visible escape: ${shown}`, () => {
    assert.equal(clean(raw), shown);
    const verdict = { ...softmax.verdict, lead: raw };
    const read = report({ ...softmax, verdict, ops: [{ ...softmax.ops[0], op: raw, inputs: [raw] }] });
    assert.deepEqual([read.verdict.lead, read.ops[0]?.op, read.ops[0]?.inputs], [shown, shown, [shown]]);
    assert.deepEqual([...editsOf([shown], [raw]).now], [[1, 1]]);
  });
}

test('letters, emoji and what lays out code stay as they are', () => {
  for (const plain of ['µ × Ω שלום 数', '👩\u200d🔬', 'if x:\n\ty = 1']) {
    assert.equal(clean(plain), plain);
  }
});

test('a newer version is refused with one sentence', () => {
  assert.match(
    JSON.stringify(readReport({ version: 5 })),
    /^"This report has version 5; this jitlab reads version 4\./
  );
});

test('a report says of which run it is where the kernel stated it', () => {
  assert.equal(report({ ...softmax, run: { text: 'Ran on 5 March 2031' } }).run, 'Ran on 5 March 2031');
  assert.equal(report({ ...softmax, run: 'now' }).run, '');
});

test('keys that are unknown, missing or of another type do no harm', () => {
  for (const value of [null, 3, [], 'x']) {
    assert.equal(typeof readReport(value), 'string');
  }
  const read = report({
    version: 1,
    new: {},
    ops: [{ name: 3, lines: 'no', shape: [null] }, null],
    clusters: { a: 1 },
    timeline: []
  });
  assert.equal(read.ops.length, 1);
  assert.deepEqual(read.lanes, []);
});

test('a saved report takes the prompt of the notebook that it is in, but for its source', () => {
  const lines = ['%%jit', 'print("In [ ]")'];
  const saved = {
    ...{ version: 1, cell: { id: 'a', execution_count: null, title: 'In [ ]', source: lines } },
    plans: [{ name: 'In [ ] #1', function: 'In [ ]' }],
    sources: [{ file: 'In [ ]', cell: 'a', first: 1, lines }]
  };
  const shown = report(prompted(saved, 4));
  assert.deepEqual(
    [shown.cell.title, shown.plans[0]?.name, shown.sources[0]?.file, shown.cell.source, shown.sources[0]?.lines],
    ['In [4]', 'In [4] #1', 'In [4]', lines, lines]
  );
  assert.equal(prompted(saved, null), saved);
  assert.equal(prompted(softmax, 4), softmax);
  assert.equal(prompted('junk', 4), 'junk');
});
