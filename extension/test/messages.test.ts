import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import table from '../../jitlab/messages/table.json';
import { causeText, noFix } from '../src/core/base/messages';

const SOURCES = 'extension/src';

/** What a source looks for in texts: the words in `includes('…')` and its like, in comparisons and in regular expressions. */
function lookedFor(source: string): string[] {
  const calls = /\.(?:includes|startsWith|endsWith|indexOf|split|search|match)\(\s*(['"`])(.*?)\1/g;
  const compared = /[!=]== (['"`])(.*?)\1/g;
  const patterns = /(?<=[=(,!:&|?\s])\/((?![*/])(?:\\.|\[[^\]\n]*\]|[^/\n\\[])+)\/[a-z]*(?=[.,;)\s])/g;
  const members = /\.(?:text|label|why|lead|proof|flip)\.(?:includes|startsWith|endsWith|search|match)\(([^)]*)/g;
  const words = /[(=,?:] \/\^?([a-z]{4,})\/i?\.test/g;
  return [
    ...[...source.matchAll(members), ...source.matchAll(words)].map(([, said = '']) => `look into a text: ${said}`),
    ...[...source.matchAll(calls), ...source.matchAll(compared)].map(([, , words = '']) => words),
    ...[...source.matchAll(patterns)].map(([, words = '']) => words.replace(/^\^/, ''))
  ].filter(isMessage);
}

const TEXTS = Object.values(table).flatMap(group => Object.values<string>(group));

function isMessage(words: string): boolean {
  const begins = /^[A-Z]\w* /.test(words) && TEXTS.some(text => text.startsWith(words));
  return /[A-Za-z]{2,} [a-z]|^[A-Z]?[a-z]{2,}[:,]? $/.test(words) || begins;
}

/** Names of lanes and parts that the kernel hands out, which are no texts. */
const NAMES = ['op by op', 'first call', 'codegen '];

test('a look into a text is found', () => {
  for (const source of [
    "proof.endsWith('Nothing to fix.')",
    "said.replace(/^Nothing to improve: /, '')",
    "fix.startsWith('Pass ')",
    "if (text === 'a Python value') {",
    "span.label.includes('quick')",
    'sentence(ok ? /^would/i.test(flip) ? flip : more)'
  ]) {
    assert.equal(lookedFor(source).length, 1, source);
  }
  assert.deepEqual(lookedFor("cause === 'shape' && /^[a-z]+$/.test(name) // a / b of that"), []);
});

test('nothing decides on the text of a message', () => {
  const found = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.ts') && !file.endsWith('/older.ts')) // which reads what an earlier version wrote
    .flatMap(file => lookedFor(readFileSync(join(SOURCES, file), 'utf8')).map(words => `${file}: ${words}`))
    .filter(said => !NAMES.some(name => said.endsWith(`: ${name}`)));
  assert.deepEqual(found, []);
});

test('a code is told in the words of the table, one that it has not by its name', () => {
  assert.equal(causeText('rank'), 'a number of axes');
  assert.equal(causeText('of_another_kind'), 'of another kind');
  assert.deepEqual(
    [noFix(true).code, noFix(false).text],
    ['compiled', 'No fix found. It cost tracing only: the compiled code was used again.']
  );
});
