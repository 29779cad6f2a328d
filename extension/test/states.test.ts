import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PanelState } from '../src/core/panel/panel-state';
import { savedText } from '../src/core/report/saved';
import { howToBegin, noticeText } from '../src/core/panel/states';
import softmax from './fixtures/softmax.json';
import { report } from './helpers';

const EMPTY: PanelState = {
  notebook: 'a.ipynb',
  cell: undefined,
  loaded: null,
  source: null,
  other: null,
  pinned: false
};

test('a newcomer is told the next line to run in each state that has no figures', () => {
  const begin = (change: Partial<PanelState>) => howToBegin({ ...EMPTY, ...change });
  assert.deepEqual(
    [begin({ notebook: '' }), begin({}), begin({ loaded: false }), begin({ loaded: true })].map(({ title, code }) => [
      title,
      code
    ]),
    [
      ['No notebook is open', ''],
      ['No kernel is connected', '%load_ext jitlab'],
      ['This kernel has not loaded jitlab', '%load_ext jitlab'],
      ['Nothing compiled in this cell', '%%jit']
    ]
  );
  assert.match(begin({ loaded: true }).text, /%load_ext jitlab/);
});

test('a cell without a saved report says so, and a report that stands in its place says whose it is', () => {
  const other = { id: 'b', title: 'In [11]', lead: '2 kernels' };
  const cell = { report: report(softmax), refusal: null, origin: 'saved' as const, running: false, events: 0 };
  assert.equal(howToBegin({ ...EMPTY, isSaved: true, other }).title, 'This cell has no saved report');
  assert.equal(howToBegin({ ...EMPTY, isSaved: true }).title, 'No kernel is connected');
  assert.equal(
    noticeText({ ...EMPTY, isSaved: true, instead: true, cell }, []),
    `The active cell has no saved report. This is the one of ${cell.report.cell.title}.`
  );
});

test('figures that are not of this kernel say so, and what to run', () => {
  const cellOf = (origin: 'live' | 'previous' | 'saved') => ({
    ...{ report: report({ ...softmax, run: { at: '2026-11-22T13:15:17+01:00' } }), refusal: null, origin },
    ...{ running: false, events: 0 }
  });
  const saved = 'Saved report, of the run at 13:15 on 2026-11-22. Later runs gave similar times and were not saved.';
  const of = (origin: 'live' | 'previous' | 'saved', loaded: boolean | null, edited: number[] = []) =>
    noticeText({ ...EMPTY, loaded, cell: cellOf(origin), saved: savedText(cellOf(origin)) }, edited);
  assert.equal(of('previous', false), 'From before the restart. Run %load_ext jitlab, then the cell to measure again.');
  assert.equal(of('previous', true), 'From before the restart. Run the cell to measure again.');
  assert.equal(of('saved', false), `${saved} Run %load_ext jitlab, then the cell to measure anew.`);
  assert.equal(of('saved', true), saved);
  assert.equal(of('live', true), '');
  assert.equal(of('live', true, [4, 8]), 'Compiled from an older version of this cell; lines 4 and 8 differ.');
});
