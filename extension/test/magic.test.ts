import assert from 'node:assert/strict';
import { test } from 'node:test';
import { magicOf, readSwitch, switchText, toggled, UNKNOWN } from '../src/plugin/magic';

function after(source: string): string {
  const { start, end, text } = toggled(source);
  return source.slice(0, start) + text + source.slice(end);
}

test('a cell gets %%jit above all, and gives it back with its options', () => {
  assert.equal(after('x = 1\n'), '%%jit\nx = 1\n');
  assert.equal(after(''), '%%jit\n');
  assert.equal(after('%%jit --level O0\nx = 1'), 'x = 1');
  assert.equal(after('\n  \n%%jit\nx = 1'), '\n  \nx = 1');
  assert.equal(after('%%jit'), '');
  for (const source of ['x = 1', '\n# a comment\nx = 1\n']) {
    assert.equal(after(after(source)), source);
  }
});

test('what stands on the first line that has something', () => {
  assert.equal(magicOf('\n %%jit -q\nx'), 'jit');
  assert.equal(magicOf('%%jitter\nx'), 'other');
  assert.equal(magicOf('%%jit?'), 'other');
  assert.equal(magicOf('%%time\nx'), 'other');
  assert.equal(magicOf('%jit on'), 'none');
  assert.equal(magicOf('x = 1\n%%jit'), 'none');
});

test('the button says how %jit is on, and what a click does where nobody has loaded jitlab', () => {
  const on = readSwitch({ op: 'switch', on: true, level: 'O0', strict: true });
  assert.equal(switchText(on ?? UNKNOWN).text, 'jit on O0 strict');
  assert.match(switchText(on ?? UNKNOWN).about, /%jit on --level O0 --strict/);
  assert.equal(switchText({ on: true, level: 'O1', strict: false }).text, 'jit on');
  assert.match(switchText(UNKNOWN).about, /%load_ext jitlab and %jit on/);
  assert.deepEqual(readSwitch({ op: 'switch', on: null }), UNKNOWN);
  assert.deepEqual(readSwitch({ op: 'switch', on: 'yes', level: 3 }), UNKNOWN);
  assert.equal(readSwitch({ op: 'hello' }), null);
  assert.equal(readSwitch(null), null);
});
