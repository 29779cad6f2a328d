import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Event, ToKernel } from '../src/core/report/events';
import { NotebookModel } from '../src/core/report/model';
import line from './fixtures/line.json';
import softmax from './fixtures/softmax.json';

function panel(): { model: NotebookModel; sent: ToKernel[] } {
  const sent: ToKernel[] = [];
  return { sent, model: new NotebookModel(message => sent.push(message)) };
}

function events(first: number, last: number, kind = 'kernel-ran'): Event[] {
  return Array.from({ length: last - first + 1 }, (_, index) => ({
    kind,
    seq: first + index
  }));
}

function batch(cell: string, first: number, last: number, kind?: string) {
  return {
    op: 'batch',
    cell,
    first,
    last,
    events: events(first, last, kind)
  } as const;
}

test('a hello is answered, because the kernel is silent until it is asked', () => {
  const { model, sent } = panel();
  model.receive({ op: 'hello', epoch: 'e', last: 3 });
  assert.deepEqual(sent, [{ op: 'resume', epoch: 'e', since: 0, have: {} }]);
});

test('a cell runs from its first event to its last', () => {
  const { model } = panel();
  model.receive({ op: 'hello', epoch: 'e', last: 0 });
  model.receive(batch('a', 1, 1, 'cell-started'));
  assert.equal(model.cell('a')?.running, true);
  model.receive(batch('a', 2, 9));
  model.receive(batch('a', 10, 10, 'cell-finished'));
  assert.deepEqual([model.cell('a')?.running, model.cell('a')?.events], [false, 9]);
});

test('events that were replayed are not counted again', () => {
  const { model } = panel();
  model.receive(batch('a', 1, 5));
  model.receive(batch('a', 1, 5));
  model.receive(batch('a', 4, 8));
  assert.equal(model.eventCount, 8);
});

test('after sleep what was missed is asked for at once, whoever asked shortly before', () => {
  const { model, sent } = panel();
  model.receive({ op: 'hello', epoch: 'e', last: 0 });
  model.receive(batch('a', 1, 4));
  model.cameBack();
  assert.deepEqual(sent.at(-1), { op: 'resume', epoch: 'e', since: 4, have: {} });
  assert.equal(sent.length, 2);
});

test('a batch without events says how many there were; who has them all does nothing', () => {
  const { model, sent } = panel();
  model.receive({ op: 'hello', epoch: 'e', last: 0 });
  model.receive(batch('a', 1, 4));
  model.receive({ op: 'batch', cell: null, first: 5, last: 4, events: [] });
  assert.equal(sent.length, 1);
  const late = panel();
  late.model.receive(batch('a', 1, 2));
  late.model.receive({ op: 'batch', cell: null, first: 5, last: 4, events: [] });
  assert.deepEqual([late.sent.length, late.model.eventCount], [1, 2]);
});

test('a gap asks for what is missing, but not in every batch', () => {
  const { model, sent } = panel();
  model.receive(batch('a', 5, 6));
  model.receive(batch('a', 9, 10));
  model.receive(batch('a', 13, 14));
  assert.deepEqual(sent, [{ op: 'resume', epoch: '', since: 0, have: {} }]);
});

test('what was missed is counted when it comes, and what came meanwhile is not counted twice', () => {
  const { model, sent } = panel();
  model.receive({ op: 'hello', epoch: 'e', last: 0 });
  model.receive({ op: 'hello', epoch: 'e', last: 0 });
  model.receive(batch('a', 1, 1, 'cell-started'));
  model.receive(batch('a', 5, 6));
  assert.equal(sent.length, 1, 'not twice in two seconds');
  const later = Date.now() + 3000;
  const { now } = Date;
  Date.now = () => later;
  model.receive(batch('a', 7, 8));
  Date.now = now;
  assert.deepEqual(sent.at(-1), {
    op: 'resume',
    epoch: 'e',
    since: 0,
    have: {}
  });
  model.receive({ op: 'hello', epoch: 'e', last: 8 });
  model.receive(batch('a', 1, 1, 'cell-started'));
  model.receive(batch('a', 2, 8));
  assert.deepEqual([model.eventCount, model.cell('a')?.events, model.cell('a')?.running, sent.length], [8, 7, true, 2]);
});

test('events told by their numbers count as much as those told one by one', () => {
  const { model } = panel();
  model.receive({ op: 'hello', epoch: 'e', last: 0 });
  model.receive({
    op: 'batch',
    cell: 'b',
    first: 1,
    last: 5003,
    events: [
      { kind: 'cell-started', seq: 1, cell: 'a' },
      { kind: 'cell-finished', seq: 5002, cell: 'a' },
      { kind: 'cell-started', seq: 5003 }
    ],
    counts: { a: { 'cluster-ran': 4000, 'function-called': 1000 } },
    behind: 12
  });
  assert.deepEqual([model.eventCount, model.cell('a')?.events, model.behind], [5003, 5001, 12]);
  assert.deepEqual([model.cell('a')?.running, model.cell('b')?.running], [false, true]);
});

test('after a reload the newest reports come first, and reports that are there are not asked for again', () => {
  const { model, sent } = panel();
  model.receive({ op: 'hello', epoch: 'e', last: 0 });
  model.receive({
    op: 'report',
    cell: 'b',
    report: softmax,
    mark: 7,
    order: 2
  });
  model.receive({
    op: 'report',
    cell: 'a',
    report: softmax,
    mark: 3,
    order: 1
  });
  assert.equal(model.latest, 'b');
  model.setShown(false);
  model.setShown(true);
  assert.deepEqual(sent.at(-1), {
    op: 'resume',
    epoch: 'e',
    since: 0,
    have: { b: 7, a: 3 }
  });
  model.kernelLost();
  model.receive({ op: 'hello', epoch: 'f', last: 0 });
  assert.deepEqual(sent.at(-1), {
    op: 'resume',
    epoch: 'f',
    since: 0,
    have: {}
  });
});

test('events that the kernel no longer has are not asked for again', () => {
  const { model, sent } = panel();
  model.resume();
  model.receive({ op: 'hello', epoch: 'e', last: 25_000 });
  model.receive(batch('a', 5001, 7000));
  model.receive(batch('a', 7001, 9000));
  assert.deepEqual([sent.length, model.last], [1, 9000]);
});

test('after a reload in the midst of a run, the replay counts each event once', () => {
  const { model } = panel();
  model.resume();
  model.receive(batch('a', 50, 60));
  model.receive({ op: 'report', cell: 'a', report: softmax });
  model.receive({ op: 'hello', epoch: 'e', last: 62 });
  model.receive(batch('a', 1, 1, 'cell-started'));
  model.receive(batch('a', 2, 61));
  model.receive(batch('a', 62, 62, 'cell-finished'));
  model.receive({ op: 'report', cell: 'a', report: softmax });
  assert.deepEqual([model.eventCount, model.cell('a')?.events, model.cell('a')?.origin], [62, 61, 'live']);
});

test('a replay that crosses a batch on the way loses no event that is told by its number', () => {
  const { model, sent } = panel();
  const all = { ...batch('a', 1, 1, 'cell-started'), last: 3002, counts: { a: { 'cluster-ran': 3001 } } };
  model.receive({ op: 'hello', epoch: 'e', last: 0 });
  model.receive(batch('a', 1, 1, 'cell-started'));
  model.cameBack(); // asks for what follows 1
  model.receive(batch('a', 2, 5)); // which was on its way
  model.receive({ op: 'hello', epoch: 'e', last: 3002 });
  model.receive({ ...batch('a', 2, 2), last: 3002, counts: { a: { 'cluster-ran': 3000 } } });
  assert.deepEqual(sent.at(-1), { op: 'resume', epoch: 'e', since: 0, have: {} });
  model.receive({ op: 'hello', epoch: 'e', last: 3002 });
  model.receive(all);
  assert.deepEqual([model.eventCount, model.cell('a')?.events, model.last], [3002, 3001, 3002]);
});

test('after a restart what was known stays and says so', () => {
  const { model } = panel();
  model.receive({ op: 'hello', epoch: 'one', last: 0 });
  model.receive({ op: 'report', cell: 'a1b2', report: softmax });
  model.kernelLost();
  assert.equal(model.cell('a1b2')?.origin, 'previous');
  model.receive({ op: 'hello', epoch: 'two', last: 0 });
  assert.equal(model.cell('a1b2')?.origin, 'previous');
  model.receive({ op: 'report', cell: 'a1b2', report: softmax });
  assert.equal(model.cell('a1b2')?.origin, 'live');
});

test('a saved report never replaces what the kernel said', () => {
  const { model } = panel();
  model.receive({ op: 'report', cell: 'a', report: softmax });
  model.setSaved(
    new Map<string, unknown>([
      ['a', line],
      ['b', line]
    ])
  );
  assert.deepEqual([model.cell('a')?.origin, model.cell('b')?.origin], ['live', 'saved']);
});

test('a report of a newer jitlab is refused, not drawn', () => {
  const { model } = panel();
  model.receive({ op: 'report', cell: 'a', report: { version: 9 } });
  assert.match(model.cell('a')?.refusal ?? '', /version 9/);
});

test('a hidden panel asks for silence, and for what it missed when it is shown again', () => {
  const { model, sent } = panel();
  model.receive({ op: 'hello', epoch: 'e', last: 0 });
  model.receive(batch('a', 1, 5));
  model.setShown(false);
  model.setShown(false);
  model.receive({ op: 'paused' });
  model.setShown(true);
  assert.deepEqual(sent, [
    { op: 'resume', epoch: 'e', since: 0, have: {} },
    { op: 'pause' },
    { op: 'resume', epoch: 'e', since: 5, have: {} }
  ]);
});

test('a panel that is shown goes on when another page has hidden its own', () => {
  const { model, sent } = panel();
  model.receive({ op: 'hello', epoch: 'e', last: 0 });
  model.receive({ op: 'paused' });
  assert.equal(sent.length, 2);
});

test('a hidden panel does not answer a hello', () => {
  const { model, sent } = panel();
  model.setShown(false);
  model.receive({ op: 'hello', epoch: 'e', last: 3 });
  assert.deepEqual(sent, []);
  model.setShown(true);
  assert.deepEqual(sent, [{ op: 'resume', epoch: 'e', since: 0, have: {} }]);
});
