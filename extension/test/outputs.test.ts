import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CellState } from '../src/core/report/model';
import { readReport } from '../src/core/report/read-report';
import type { Report } from '../src/core/report/report';
import { newest } from '../src/plugin/outputs';
import softmax from './fixtures/softmax.json';

function reportOf(change: object = {}): Report {
  const read = readReport({ ...softmax, ...change });
  assert.ok(typeof read !== 'string');
  return read;
}

function state(report: Report, origin: CellState['origin'] = 'live'): CellState {
  return { report, refusal: null, origin, running: report.cell.running, events: 0 };
}

const kept = reportOf();
const again = reportOf({
  cell: { ...softmax.cell, title: 'In [12]', execution_count: 12 },
  verdict: { ...softmax.verdict, seconds: 0.25 }
});

test('the output of a cell that ran again alike shows the newest run, also after the kernel went', () => {
  assert.equal(newest(kept, state(again)), again);
  assert.equal(newest(kept, state(again, 'previous')), again);
});

test('an output keeps its own report where nothing newer of the same program is known', () => {
  assert.equal(newest(kept, undefined), null);
  assert.equal(newest(null, state(again)), null);
  assert.equal(newest(kept, state(again, 'saved')), null);
  assert.equal(newest(kept, state(reportOf({ cell: { ...softmax.cell, running: true } }))), null);
});

test('a report of a part of the cell that somebody displays is not taken for the cell’s own', () => {
  const other = reportOf({ cell: { ...softmax.cell, id: '' } });
  assert.equal(newest(other, state(again)), null);
  assert.equal(newest(reportOf({ cell: { ...softmax.cell, source: ['y = 1'] } }), state(again)), null);
});

test('a report that was cut for the file gives way to the whole one of the newest run', () => {
  const cut = reportOf({ kernels: softmax.kernels.slice(1), ops: softmax.ops.slice(4) });
  assert.equal(newest(cut, state(again)), again);
});
