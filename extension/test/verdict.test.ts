import assert from 'node:assert/strict';
import { test } from 'node:test';
import { flowOf } from '../src/core/clusters/flow';
import { layoutBars, layoutStrip } from '../src/core/verdict/layout';
import { bytesMoved } from '../src/core/verdict/view';
import softmax from './fixtures/softmax.json';
import { measure, misplaced, report } from './helpers';
import { hugeReport } from './huge';

test('the strip has one cell an operation and a diamond for the host', () => {
  const { shapes } = layoutStrip(flowOf(report(softmax)), 356, measure);
  const cells = (mark: string) => shapes.filter(shape => shape.shape === 'box' && shape.mark === mark).length;
  assert.deepEqual([cells('c0'), cells('c1'), shapes.filter(shape => shape.shape === 'diamond').length], [10, 11, 1]);
});

test('the strip fits at every width', () => {
  for (const width of [216, 356, 536]) {
    const picture = layoutStrip(flowOf(report(softmax)), width, measure);
    assert.deepEqual(misplaced(picture), []);
    for (const shape of picture.shapes) {
      if (shape.shape === 'box') {
        assert.ok(shape.x + shape.width <= width, `${shape.x}`);
      }
    }
  }
});

test('many operations become proportional bands', () => {
  const { shapes } = layoutStrip(flowOf(report(hugeReport(1000))), 356, measure);
  assert.ok(shapes.filter(shape => shape.shape === 'box').length <= 50);
});

test('both bars share one scale', () => {
  const json = report(softmax);
  const { shapes } = layoutBars(flowOf(json), 0.0588, 0.2874, 356, measure);
  const boxes = shapes.filter(shape => shape.shape === 'box');
  const ours = boxes.filter(box => box.y < 10);
  const end = Math.max(...ours.map(box => box.x + box.width)) - 52;
  const numpy = boxes.find(box => box.y > 20)?.width ?? 0;
  assert.ok(Math.abs(end / numpy - 0.0588 / 0.2874) < 0.01);
});

test('bytes of alike plans are counted once', () => {
  const json = report(softmax);
  const plan = { name: 'In [7] #2', function: 'In [7]', trace: 2, like: json.plans[0]?.name ?? '' };
  const again = json.clusters.map(cluster => ({ ...cluster, plan: plan.name }));
  assert.ok(bytesMoved(json) > 0);
  assert.equal(
    bytesMoved({ ...json, plans: [...json.plans, plan], clusters: [...json.clusters, ...again] }),
    bytesMoved(json)
  );
});
