import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JobsModel, type KernelAccess } from '../src/core/report/kernel';
import { fetchPage, folderOf, pageName } from '../src/core/panel/saving';

function kernelThatSends(answer: (start: number) => unknown): KernelAccess & { asked: unknown[] } {
  const asked: unknown[] = [];
  return {
    jobs: new JobsModel(),
    asked,
    request: body => {
      asked.push(body);
      return Promise.resolve(answer(body.want === 'page' ? body.start : 0));
    }
  };
}

test('a page is put together of the pieces that the kernel sends', async () => {
  const whole = 'a 🪡 lo\u200ag\ufeff pa\r';
  const letters = Array.from(whole); // as Python counts them
  const kernel = kernelThatSends(start => ({
    page: { stop: Math.min(13, start + 4), total: 13, text: letters.slice(start, start + 4).join('') }
  }));
  assert.equal(await fetchPage(kernel, 'c1', 'html', 'work/a.ipynb'), whole);
  assert.deepEqual(kernel.asked[1], { want: 'page', cell: 'c1', form: 'html', start: 4, notebook: 'a.ipynb' });
  assert.equal(kernel.asked.length, 4);
});

test('a page that does not come whole is an error, and never asked for without end', async () => {
  const kernel = kernelThatSends(() => ({ page: { total: 9, text: '' } }));
  await assert.rejects(fetchPage(kernel, 'c1', 'svg', 'a.ipynb'), /only a part/);
  assert.equal(kernel.asked.length, 1);
  assert.equal(
    await fetchPage(
      kernelThatSends(() => 7),
      'c1',
      'html',
      'a.ipynb'
    ),
    ''
  );
});

test('a page lies beside its notebook, named after it and the cell, and takes no other file’s place', () => {
  assert.equal(pageName('work/soft max.ipynb', 'In [7]', 'html', new Set()), 'soft max-In-7.html');
  const taken = new Set(['a-In-7.svg', 'a-In-7-2.svg']);
  assert.equal(pageName('a.ipynb', 'In [7]', 'svg', taken), 'a-In-7-3.svg');
  assert.equal(pageName('RTC:a.b.ipynb', 'In [ ]', 'html', taken), 'a.b-In.html');
  assert.equal(pageName('', '../x', 'html', taken), 'report-x.html');
  assert.deepEqual(['a.ipynb', 'work/deep/a.ipynb', 'RTC:a.ipynb', 'RTC:w/a.ipynb'].map(folderOf), [
    '',
    'work/deep',
    'RTC:',
    'RTC:w'
  ]);
});
