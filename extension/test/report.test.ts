import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readReport } from '../src/core/read-report';
import { prompted } from '../src/core/sources';
import softmax from './fixtures/softmax.json';
import { report } from './helpers';

test('a report is read as it stands in docs/report-format.md', () => {
  const read = report(softmax);
  assert.equal(read.verdict.lead, '21 of 22 operations compiled');
  assert.equal(read.ops.length, 22);
  assert.deepEqual(
    read.lanes.map(lane => lane.name),
    ['op by op', 'compiled', 'kernels', 'host', 'capture', 'passes', 'codegen quick', 'codegen good']
  );
  assert.equal(read.boundaries[0]?.wouldFuseIf, 'Would fuse with np.take_along_axis(p, y[:, None], 1)');
});

test('a newer version is refused with one sentence', () => {
  assert.match(
    JSON.stringify(readReport({ version: 2 })),
    /^"This report has version 2; this jitlab reads version 1\./
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
