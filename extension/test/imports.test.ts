import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const CORE = 'extension/src/core';

test('what draws knows nothing of Jupyter', () => {
  for (const file of readdirSync(CORE, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.ts'))) {
    const source = readFileSync(join(CORE, file), 'utf8');
    for (const [, from = ''] of source.matchAll(/(?:from|import)\s*\(?'([^']+)'/g)) {
      assert.match(from, /^\.\.?\//, `${file} imports ${from}`);
      if (from.endsWith('/jitlab/messages/table.json')) {
        continue; // the words of codes, which the kernel reads, too
      }
      assert.doesNotMatch(
        from,
        /\.\.\/\.\.\/(?!core)|^\.\.\/(index|mime|link|follow|icon|notebooks|badges|editors|commands|settings|status|lab-panel)$/,
        `${file} imports ${from}`
      );
    }
  }
});

test('values come from shared packages of JupyterLab only; the rest of it are types', () => {
  const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as { jupyterlab: { sharedPackages: object } };
  const shared = Object.keys(manifest.jupyterlab.sharedPackages);
  for (const file of readdirSync('extension/src').filter(name => name.endsWith('.ts'))) {
    const source = readFileSync(join('extension/src', file), 'utf8');
    for (const [, names = '', from = ''] of source.matchAll(/^import (.*) from '(@jupyterlab\/[^']+)'/gm)) {
      const types = names.startsWith('type ') || /^\{ (type \w+(, )?)+ \}$/.test(names);
      assert.ok(types || shared.includes(from), `${file} imports a value of ${from}`);
    }
  }
});

test('layouts are pure: no document, no window, no canvas', () => {
  for (const view of ['verdict', 'clusters', 'retraces', 'timeline']) {
    const source = readFileSync(join(CORE, view, 'layout.ts'), 'utf8');
    assert.doesNotMatch(source, /document\.|getContext|from '\.\.\/(dom|canvas|draw)'/, view);
  }
});
