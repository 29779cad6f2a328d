import assert from 'node:assert/strict';
import { test } from 'node:test';
import { layoutRoofline } from '../src/core/sections/roofline/layout';
import { flopRate, meaningOf, rooflineOf, roofAt, roofText } from '../src/core/sections/roofline/points';
import softmax from './fixtures/softmax.json';
import { areaOf, measure, misplaced, report } from './helpers';

/** Kernels whose roof and reach are known: memory 10 GB/s, arithmetic 100 GFLOP/s, so the knee is at 10 operations a byte. */
const PEAKS = { bytes_per_second: 1e10, flops_per_second: 1e11 };
const PLANTED = [
  { name: 'k0', flops: 1e9, bytes: 1e9, seconds: 0.2, reaches: '50 % of the limit' },
  { name: 'k1', flops: 1e11, bytes: 1e9, seconds: 4, reaches: '25 % of the limit' },
  { name: 'k2', flops: 1e9, bytes: 1e9, seconds: 0.05, reaches: 'in cache' },
  { name: 'k3', flops: 8, bytes: 1e9, seconds: 0.1, reaches: '' }
];

function planted(peaks: typeof PEAKS | null) {
  const [kernel] = softmax.kernels;
  const kernels = PLANTED.map(({ name, flops, bytes, seconds }) => ({
    ...kernel,
    ...{ name, flops, bytes_read: bytes / 2, bytes_written: bytes / 2, calls: 1, seconds, bound: null, of_peak: null }
  }));
  return report({ ...softmax, kernels, peaks });
}

test('a kernel stands below the roof by what it reaches, and above it is in the caches', () => {
  const { points, others } = rooflineOf(planted(PEAKS));
  const wanted = PLANTED.filter(({ reaches }) => reaches).sort((a, b) => b.seconds - a.seconds);
  assert.deepEqual(
    points.map(point => [point.name, roofText(point)]),
    wanted.map(({ name, reaches }) => [name, reaches])
  );
  assert.deepEqual(others, ['k3']);
  assert.deepEqual([roofAt({ bytesPerSecond: 1e10, flopsPerSecond: 1e11 }, 1), flopRate(2.5e10)], [1e10, '25 GFLOP/s']);
});

test('the slowest mark is said in words: what it reaches, of what, or that its bytes come from the caches', () => {
  const roof = rooflineOf(planted(PEAKS));
  const of = (name: string) => meaningOf({ ...roof, points: roof.points.filter(point => point.name === name) });
  assert.equal(
    meaningOf(roof),
    'k1 runs at 25 GFLOP/s of the 100 GFLOP/s that arithmetic allows at 100 operations a byte.'
  );
  assert.equal(of('k0'), 'k0 runs at 5 GFLOP/s of the 10 GFLOP/s that memory allows at 1 operations a byte.');
  const cached = 'k2 runs at 20 GFLOP/s: its bytes come from the caches, faster than memory gives them (10 GB/s).';
  assert.equal(of('k2'), cached);
  const slow = rooflineOf(planted({ ...PEAKS, flops_per_second: 2e9 }));
  const above = 'k1 runs at 25 GFLOP/s, above the 2 GFLOP/s that were measured as the limit of this machine.';
  assert.equal(meaningOf(slow), above);
  assert.equal(meaningOf(rooflineOf(planted(null))), '');
});

test('the picture has a mark a kernel and no text on another, at every width, with and without limits', () => {
  for (const width of [216, 356, 536, 700]) {
    for (const peaks of [PEAKS, null]) {
      const roof = rooflineOf(planted(peaks));
      const picture = layoutRoofline(roof, width, measure, () => false);
      assert.deepEqual(misplaced(picture), [], `${width}`);
      assert.equal(picture.shapes.filter(shape => shape.shape === 'box' && shape.mark).length, roof.points.length);
      assert.equal(
        picture.shapes.some(shape => shape.shape === 'stroke' && shape.thickness === 1.5),
        peaks !== null
      );
      assert.ok(picture.items.every(({ x, width: wide }) => x >= 0 && x + wide <= width));
    }
  }
});

test('of many kernels no name stands on a line of the machine or on a mark, and what is in the caches is said once', () => {
  const [kernel] = softmax.kernels;
  const kernels = Array.from({ length: 24 }, (_, n) => ({
    ...{ ...kernel, name: `kernel_${n}`, bytes_read: 5e8, bytes_written: 5e8, calls: 1, bound: null, of_peak: null },
    flops: 1e9 * 3 ** ((n % 6) - 2),
    seconds: 0.02 * 4 ** (n % 5)
  }));
  for (const width of [356, 536]) {
    const roof = rooflineOf(report({ ...softmax, kernels, peaks: PEAKS }));
    const { shapes } = layoutRoofline(roof, width, measure, () => false);
    const said = shapes.filter(shape => shape.shape === 'words');
    assert.equal(said.filter(({ text }) => text.includes('in cache')).length, 1);
    assert.deepEqual(misplaced({ width, height: 230, shapes }), []);
    const named = said.filter(({ text }) => text.startsWith('kernel_')).length;
    assert.ok(named >= 20, `${width}: ${named} of 24 have their names`);
    assert.ok(
      said.some(({ text }) => text.startsWith('memory ')) && said.some(({ text }) => text.startsWith('arithmetic '))
    );
    const roofs = shapes.flatMap(shape => (shape.shape === 'stroke' && shape.thickness === 1.5 ? [shape.path] : []));
    const [x0 = 0, y0 = 0, x1 = 0, y1 = 0, x2 = 0] = (roofs[0] ?? '').match(/-?[\d.]+/g)?.map(Number) ?? [];
    const roofAtPixel = (at: number): number => (at >= x1 ? y1 : y0 + ((y1 - y0) * (at - x0)) / (x1 - x0));
    for (const area of said.map(areaOf)) {
      const on = shapes.filter(
        shape =>
          shape.shape === 'box' &&
          shape.mark &&
          area.left < shape.x + shape.width &&
          shape.x < area.right &&
          area.top < shape.y + shape.height &&
          shape.y < area.bottom
      );
      assert.deepEqual(on, [], `${area.text} stands on a mark`);
      for (let at = Math.max(area.left, x0); at < Math.min(area.right, x2); at += 2) {
        assert.ok(roofAtPixel(at) < area.top || roofAtPixel(at) > area.bottom, `${area.text} stands on a line`);
      }
    }
  }
});

test('calls of traces with the same plan are one mark', () => {
  const json = planted(PEAKS);
  const one = rooflineOf(json).points.find(({ name }) => name === 'k0');
  const [plan] = json.plans;
  assert.ok(plan && one);
  const [first, again] = ['first', 'again'].map(name => json.kernels.map(kernel => ({ ...kernel, plan: name })));
  assert.ok(first && again);
  const plans = ['first', 'again'].map(name => ({ ...plan, name, like: 'first' }));
  const both = rooflineOf({ ...json, plans, kernels: [...first, ...again] }).points;
  assert.deepEqual([both.length, both.find(({ name }) => name === 'k0')?.rate], [3, one.rate]);
});
