import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
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
      assert.ok(join(CORE, dirname(file), from).startsWith(join(CORE, '/')), `${file} imports ${from}`);
    }
  }
});

test('values come from shared packages of JupyterLab only; the rest of it are types', () => {
  const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as { jupyterlab: { sharedPackages: object } };
  const shared = Object.keys(manifest.jupyterlab.sharedPackages);
  const wiring = ['extension/src', 'extension/src/plugin'].flatMap(folder =>
    readdirSync(folder).map(name => join(folder, name))
  );
  for (const file of wiring.filter(name => name.endsWith('.ts'))) {
    const source = readFileSync(file, 'utf8');
    for (const [, names = '', from = ''] of source.matchAll(/^import (.*) from '(@jupyterlab\/[^']+)'/gm)) {
      const types = names.startsWith('type ') || /^\{ (type \w+(, )?)+ \}$/.test(names);
      assert.ok(types || shared.includes(from), `${file} imports a value of ${from}`);
    }
  }
});

test('layouts are pure: no document, no window, no canvas', () => {
  const files = readdirSync(join(CORE, 'sections'), { recursive: true, encoding: 'utf8' });
  const layouts = files.filter(name => name.endsWith('/layout.ts'));
  assert.ok(layouts.length > 4);
  for (const file of layouts) {
    const source = readFileSync(join(CORE, 'sections', file), 'utf8');
    assert.doesNotMatch(source, /document\.|getContext|from '.*\/base\/(dom|canvas|draw)'/, file);
  }
});

const LAYERS = ['base', 'report', 'sections', 'panel'];

/** What a section asks of the panel around it: what it implements, what is lent to it, and what is pointed at. */
const LENT = ['section', 'panel-state', 'selection', 'settings', 'keys', 'states'];

test('base knows no report, a report no view, a section not the panel', () => {
  for (const file of readdirSync(CORE, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.ts'))) {
    const source = readFileSync(join(CORE, file), 'utf8');
    const mine = LAYERS.indexOf(file.split('/')[0] ?? '');
    for (const [, from = ''] of source.matchAll(/(?:from|import)\s*\(?'([^']+)'/g)) {
      const [layer = '', name = ''] = join(dirname(file), from).split('/');
      const isBelow = LAYERS.indexOf(layer) <= mine || (layer === 'panel' && LENT.includes(name));
      assert.ok(isBelow || from.endsWith('.json'), `${file} imports ${from}`);
    }
  }
});

test('a folder has at most 15 files', () => {
  const folders = readdirSync('extension/src', { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.ts'))
    .map(dirname);
  for (const folder of new Set(folders)) {
    assert.ok(folders.filter(other => other === folder).length <= 15, folder);
  }
});

test('what JupyterLab starts with has no view of a section: each is loaded when it is opened', () => {
  const reached = new Set<string>();
  const reach = (file: string): void => {
    if (reached.has(file) || file.endsWith('.json')) {
      return;
    }
    reached.add(file);
    const source = readFileSync(`${file}.ts`, 'utf8');
    for (const [, from = ''] of source.matchAll(/^(?:import|export) (?!type )[^;]*?from '(\.[^']+)'/gm)) {
      reach(join(dirname(file), from));
    }
  };
  reach('extension/src/index');
  reach('extension/src/mime');
  const views = [...reached].filter(name => name.endsWith('/view'));
  assert.deepEqual(views, [join(CORE, 'sections/verdict/view')]);
  const later = [
    'clusters/map/map',
    'clusters/spine',
    'code/pane',
    'timeline/layout',
    'roofline/layout',
    'whatif/cards'
  ];
  for (const name of later) {
    assert.ok(!reached.has(join(CORE, 'sections', name)), name);
  }
});
