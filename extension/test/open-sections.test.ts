import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OpenSections } from '../src/core/panel/open-sections';
import type { PanelActions } from '../src/core/panel/panel-state';
import { SECTIONS } from '../src/core/panel/sections';
import { DEFAULTS } from '../src/core/panel/settings';
import softmax from './fixtures/softmax.json';
import { report } from './helpers';

function made(keep?: PanelActions['keep']) {
  const sections = SECTIONS.slice(0, 3).map(place => ({ place, title: place.title, open: false }));
  const actions = { settings: { ...DEFAULTS, openSections: ['Clusters'] }, keep } as unknown as PanelActions;
  const opened = new OpenSections(sections, actions, false);
  return { sections, opened, open: () => sections.filter(section => section.open).map(({ title }) => title) };
}

test('what a person opens in a notebook stays there, and another one begins with the sections of the setting', () => {
  const { sections, opened, open } = made();
  opened.recall('a.ipynb');
  assert.deepEqual(open(), ['Clusters']);
  sections.forEach(section => (section.open = section.title !== 'Clusters'));
  opened.changed('a.ipynb');
  opened.recall('b.ipynb');
  assert.deepEqual(open(), ['Clusters']);
  opened.recall('a.ipynb');
  assert.deepEqual(open(), ['Code', 'Retraces']);
});

test('the section of the advice opens until a person has chosen, and what the host has kept is a choice', () => {
  const advised = report(softmax);
  assert.equal(advised.verdict.next?.section, 'retraces');
  const fresh = made();
  fresh.opened.recall('a.ipynb');
  fresh.opened.forReport(advised, 'a.ipynb');
  assert.deepEqual(fresh.open(), ['Clusters', 'Retraces']);
  const kept = made(() => ['Code']);
  kept.opened.recall('a.ipynb');
  kept.opened.forReport(advised, 'a.ipynb');
  assert.deepEqual(kept.open(), ['Code']);
});
