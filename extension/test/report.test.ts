import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readReport } from '../src/core/report';
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
