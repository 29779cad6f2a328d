import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Event, ToKernel } from '../src/core/events';
import { NotebookModel } from '../src/core/model';
import line from './fixtures/line.json';
import softmax from './fixtures/softmax.json';

function panel(): { model: NotebookModel; sent: ToKernel[] } {
  const sent: ToKernel[] = [];
  return { sent, model: new NotebookModel(message => sent.push(message)) };
}

function events(first: number, last: number, kind = 'kernel-ran'): Event[] {
  return Array.from({ length: last - first + 1 }, (_, index) => ({ kind, seq: first + index }));
}

function batch(cell: string, first: number, last: number, kind?: string) {
  return { op: 'batch', cell, first, last, events: events(first, last, kind) } as const;
}

test('a hello is answered, because the kernel is silent until it is asked', () => {
  const { model, sent } = panel();
  model.receive({ op: 'hello', epoch: 'e', last: 3 });
  assert.deepEqual(sent, [{ op: 'resume', epoch: 'e', since: 0 }]);
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

test('a gap asks for what is missing, but not in every batch', () => {
  const { model, sent } = panel();
  model.receive(batch('a', 5, 6));
  model.receive(batch('a', 9, 10));
  model.receive(batch('a', 13, 14));
  assert.deepEqual(sent, [{ op: 'resume', epoch: '', since: 0 }]);
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
