import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  arrayBytes,
  arrayType,
  bytes,
  duration,
  lines,
  percent,
  sentence,
  some,
  unbroken
} from '../src/core/base/format';
import { wrap } from '../src/core/base/shapes';
import { ulps } from '../src/core/report/numerics';
import units from './fixtures/units.json';
import { measure } from './helpers';

test('a number is not parted from its unit, nor from the arrow that leads to it', () => {
  const text = 'Others took 88 % of it: 4 kernels → 5, 9 operations → 7; 6.4 MB in 3 ms by 2 programs.';
  assert.equal(
    unbroken(text).replaceAll('\u00a0', '_'),
    'Others took 88_% of it: 4 kernels_→_5, 9 operations_→_7; 6.4_MB in 3_ms by 2 programs.'
  );
});

test('a number is written as Python writes it', () => {
  const check = (cases: readonly (readonly unknown[])[], write: (...given: never[]) => string) => {
    for (const [given, shown] of cases) {
      assert.equal(write(...((Array.isArray(given) ? given : [given]) as never[])), shown);
    }
  };
  check(units.size, bytes);
  check(units.duration, duration);
  check(units.percent, percent);
  check(units.counted, some);
  check(units.ulps, ulps);
});

test('lines that follow one another are a range', () => {
  assert.equal(lines([8, 9, 11, 8]), 'lines 8–9 and 11');
  assert.deepEqual(['a', 'a.', 'a, …'].map(sentence), ['a.', 'a.', 'a, …']);
  assert.equal(lines([1, 3, 5]), 'lines 1, 3 and 5');
  assert.equal(lines([7]), 'line 7');
  assert.equal(lines([]), '');
});

test('an array type is short', () => {
  assert.equal(arrayType('float32', [60000, 784]), 'f32[60000,784]');
  assert.equal(arrayType('bool', []), 'bool[]');
  assert.equal(arrayBytes('complex64', [10, 2]), 160);
  assert.equal(arrayBytes('object', [10]), null);
  assert.equal(arrayBytes('|V0', []), null);
});

test('a line never breaks between a number and its unit', () => {
  assert.deepEqual(wrap('93 % of peak and 191 MB', 60, 'note', measure), ['93 % of', 'peak and', '191 MB']);
  const rows = wrap('see encoder____layer_12____kernel now', 60, 'note', measure);
  assert.equal(rows.join(''), 'seeencoder____layer_12____kernelnow'.replace('kernelnow', 'kernel now'));
  assert.deepEqual(
    rows.filter(row => measure(row, 'note') > 60),
    []
  );
  assert.deepEqual(wrap('abc', 0, 'note', measure), ['a', 'b', 'c']);
});
