import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { KEYS, SELECTORS, shortcutOf } from '../src/core/panel/keys';
import { SECTIONS } from '../src/core/panel/sections';
import { DEFAULTS, readSettings } from '../src/core/panel/settings';

interface Schema {
  'jupyter.lab.shortcuts': { command: string; keys: string[]; selector: string }[];
  properties: Record<string, { title?: string; description?: string; default: unknown; items?: { enum: string[] } }>;
}

const schema = JSON.parse(readFileSync('extension/schema/panel.json', 'utf8')) as Schema;

test('every key is a shortcut that can be changed, and needs the focus in its place', () => {
  const wanted = KEYS.map(key => ({
    command: `jitlab:${key.id}`,
    keys: [shortcutOf(key)],
    selector: SELECTORS[key.place]
  }));
  assert.deepEqual(schema['jupyter.lab.shortcuts'], wanted);
});

test('a section has an id of its own, and with a key the setting for what is open at first knows it', () => {
  const known = schema.properties.openSections?.items?.enum ?? [];
  const keyed = SECTIONS.filter(({ key }) => key);
  assert.equal(new Set(['verdict', ...SECTIONS.map(({ id }) => id)]).size, SECTIONS.length + 1);
  assert.deepEqual(
    known,
    keyed.map(({ title }) => title)
  );
});

test('no two keys of one place are the same', () => {
  const names = KEYS.map(key => `${key.place} ${shortcutOf(key)}`);
  assert.equal(new Set(names).size, names.length);
});

test('every setting has a title, a description and the default that the panel has without it', () => {
  assert.deepEqual(Object.keys(schema.properties).sort(), Object.keys(DEFAULTS).sort());
  for (const [name, setting] of Object.entries(schema.properties)) {
    assert.ok(setting.title && setting.description, name);
    assert.deepEqual(setting.default, DEFAULTS[name as keyof typeof DEFAULTS], name);
  }
});

test('settings of another type have their defaults', () => {
  assert.deepEqual(readSettings({ badges: 'no', runs: 'many', colors: 3, openSections: {} }), DEFAULTS);
  assert.deepEqual(readSettings(null), DEFAULTS);
});
