import { expect, type Locator } from '@playwright/test';
import { findings } from './access';
import { test, type Lab } from './lab';

const NOTEBOOK = 'shell.ipynb';

/** A real compiler, a real kernel: one cell with a host operation, and a function of one cell called in another. */
async function ready(lab: Lab): Promise<void> {
  await lab.has(NOTEBOOK, 'load', 'compiled');
  await lab.showPanel();
  await lab.select('compiled');
  await expect(lab.panel).toHaveAttribute('data-cell', 'compiled');
  await expect(lab.panel).toHaveAttribute('data-running', 'false');
}

function badge(lab: Lab, cell: string): Locator {
  return lab.cell(cell).locator('.jl-badge');
}

/** What stands in the page that was saved beside a notebook; "" before it is there. */
async function savedPage({ page }: Lab, notebook: string): Promise<string> {
  const read = async (path: string): Promise<unknown> =>
    ((await (await page.request.get(`api/contents/${path}`)).json()) as { content: unknown }).content;
  const files = (await read('')) as { name: string }[];
  const file = files.find(({ name }) => name.startsWith(`${notebook}-In-`) && name.endsWith('.html'));
  return file ? ((await read(`${file.name}?type=file&format=text`)) as string) : '';
}

test('a compiled cell has one line below it, which opens the panel there', async ({ lab }) => {
  await ready(lab);
  await expect(badge(lab, 'compiled')).toHaveText(
    /^[\d.]+ m?s this run(: [\w., µ;%]+)?\d+\/\d+ compiled\d+ kernels?1 by NumPy$/
  );
  await expect(badge(lab, 'plain')).toHaveCount(0);
  await lab.select('plain');
  await lab.command('application:toggle-right-area');
  await expect(lab.panel).toBeHidden();
  await badge(lab, 'compiled').click();
  await expect(lab.panel).toBeVisible();
  await expect(lab.panel).toHaveAttribute('data-cell', 'compiled');
  await lab.command('jitlab:toggle-badges');
  await expect(badge(lab, 'compiled')).toHaveCount(0);
  await lab.command('jitlab:toggle-badges');
  await expect(badge(lab, 'compiled')).toHaveCount(1);
});

test('a closed panel gets no messages, and the badge comes from the cell’s own output', async ({ lab }) => {
  await ready(lab);
  await lab.has(NOTEBOOK, 'planned'); // times that a busy machine takes longer for would be told anew
  await lab.command('application:toggle-right-area');
  await lab.quiet();
  const before = await lab.debugState();
  const never = `p * ${String(1 + (Date.now() % 1e8) / 1e8)}`; // a program that no run before this one has an output of
  await lab.edit('compiled', source => source.replace(/p \* [\d.]+/, never));
  await lab.run('compiled');
  await expect(badge(lab, 'compiled')).toHaveText(/compiled/);
  await expect(badge(lab, 'compiled')).not.toHaveText(/older version/);
  expect(await lab.debugState()).toMatchObject({ events: before.events, last: before.last });
  // It runs again alike: the file keeps its bytes, and what stands below the cell is of the newest run, as the badge is.
  const kept = await lab.htmlOutput('compiled');
  await lab.run('compiled');
  expect(await lab.htmlOutput('compiled')).toBe(kept);
  const times = lab.cell('compiled').locator('.jl-mime .jl-lead > span').first();
  const told = badge(lab, 'compiled').locator('.jl-badge-time');
  await expect(told).toHaveText(/\d/);
  await expect.poll(async () => (await times.textContent()) === (await told.textContent())).toBe(true);
  await lab.showPanel();
  await expect(lab.panel).toHaveAttribute('data-origin', 'live');
});

/** What each place says of the newest run of a cell: the lead by the clock, beside NumPy, and counts; "" is left out. */
interface Said {
  waited: string;
  speed: string;
  compiled: string;
  retraces: string;
}

/** "4 retraces" and "3/4 compiled" of a text; "" where it has none, and of nothing that is compiled. */
function countsIn(text: string): Pick<Said, 'compiled' | 'retraces'> {
  const compiled = /(\d+)(?:\/| of )(\d+)(?: operations?)? compiled/.exec(text);
  const all = /All (\d+) operations? compiled/.exec(text)?.[1];
  return {
    compiled: compiled && compiled[1] !== '0' ? `${compiled[1]}/${compiled[2]}` : all ? `${all}/${all}` : '',
    retraces: /(\d+) retraces?/.exec(text)?.[1] ?? ''
  };
}

/** All places that are on the screen, and the text and JSON of the kernel, for one cell. */
async function saidOf(lab: Lab, cell: string, read: (file: string) => Promise<string>): Promise<Record<string, Said>> {
  const text = async (found: Locator): Promise<string> =>
    (await found.count()) ? await found.first().innerText() : '';
  const shown = badge(lab, cell);
  const badgeText = await text(shown);
  const verdict = lab.panel.locator('.jl-verdict');
  const { verdict: told } = JSON.parse(await read('one-run.json')) as {
    verdict: {
      waited?: { text: string };
      speed?: { text: string };
      compiled: number;
      operations: number;
      retraces: number;
    };
  };
  const plain = (await read('one-run.txt')).replace(/\s+/g, ' ');
  const [waited, speed] = [told.waited?.text ?? '', told.speed?.text ?? ''];
  const said: Record<string, Said> = {
    json: {
      waited,
      speed,
      compiled: told.compiled ? `${told.compiled}/${told.operations}` : '',
      retraces: told.retraces ? String(told.retraces) : ''
    },
    text: {
      waited: plain.includes(waited) ? waited : plain,
      speed: plain.includes(speed) ? speed : plain,
      ...countsIn(plain)
    },
    badge: {
      waited: await text(shown.locator('.jl-badge-time')),
      speed: await text(shown.locator('.jl-badge-numpy')),
      ...countsIn(badgeText.replaceAll('\n', ' '))
    },
    panel: {
      waited: await text(verdict.locator('.jl-lead > span')),
      speed: (await text(verdict.locator('.jl-times'))).replace(
        await text(verdict.locator('.jl-times > .jl-note')),
        ''
      ),
      ...countsIn((await verdict.innerText()).replaceAll('\n', ' '))
    }
  };
  const line = lab.cell(cell).locator('.jl-mime details > summary');
  if (await line.count()) {
    const folded = await line.innerText();
    const isStopped = folded.includes('stopped by'); // the error stands in the place of the times
    said.output = {
      waited: isStopped || folded.includes(waited) ? waited : folded,
      speed: isStopped || folded.includes(speed) ? speed : folded,
      compiled: countsIn(folded).compiled,
      retraces: said.json?.retraces ?? ''
    };
  }
  return said;
}

test('one run is shown everywhere: badge, output, panel, text and JSON say the same', async ({ lab }) => {
  const { page } = lab;
  await ready(lab);
  const factor = String(1 + (Date.now() % 1e8) / 1e8);
  await lab.setSource('planned', '%jitlab export one-run.json\n%jitlab export one-run.txt');
  const read = async (file: string): Promise<string> =>
    ((await (await page.request.get(`api/contents/${file}?type=file&format=text`)).json()) as { content: string })
      .content;
  /** All places say the same, sooner or later, of the run that was last. */
  const agree = async (cell: string): Promise<Said> => {
    await lab.run('planned');
    await lab.select(cell);
    await expect(lab.panel).toHaveAttribute('data-running', 'false');
    let said: Record<string, Said> = {};
    await expect
      .poll(async () => {
        said = await saidOf(lab, cell, read);
        return Object.values(said).every(one => JSON.stringify(one) === JSON.stringify(said.json)) || said;
      })
      .toBe(true);
    return said.json as Said;
  };
  await lab.edit(
    'compiled',
    source => `${source.replace(/%%jit.*/, '%%jit --compare').replace(/p \* [\d.]+/, `p * ${factor}`)}\n`
  );
  for (let run = 0; run < 3; run++) {
    await lab.run('compiled');
    const { waited, speed } = await agree('compiled');
    expect([waited, speed].every(Boolean)).toBe(true);
    await expect(lab.cell('compiled').locator('.jl-mime details > summary')).toContainText(
      `jitlab: ${waited} · ${speed}`
    );
    await expect(lab.cell('compiled').locator('.jl-mime .jl-lead > span').first()).toBeHidden(); // one line
  }
  await lab.cell('compiled').locator('.jl-mime details > summary').click();
  await lab.command('application:toggle-right-area');
  await expect(lab.cell('compiled').locator('.jl-mime .jl-lead').first()).toBeVisible();
  await expect(lab.cell('compiled').locator('.jl-mime details > summary')).toHaveCount(0);
  await lab.showPanel();

  const runs = {
    'a run that retraces': [
      '@jl.function',
      'def f(a, k):',
      '    return np.exp(a * k)',
      'for k in range(4):',
      `    f(X, k + ${factor})`
    ],
    'with a statement of Python, measured': [
      '%%jit --compare -q',
      `y = np.exp(X) * ${factor}`,
      "label = f'{y.sum():.3f}'",
      'z = y + 1'
    ],
    'the same without a comparison': ['%%jit', `y = np.exp(X) * ${factor}`, "label = f'{y.sum():.3f}'", 'z = y + 1'],
    'a cell with several kernels': [
      '%%jit -q',
      `y = np.sort(np.exp(X) * ${factor}, axis=1)`,
      'z = np.cumsum(y, axis=1)',
      'm = z @ z[:100].T'
    ],
    'two expressions': [`a = %jit np.exp(X * ${factor}).sum()`, `b = %jit np.tanh(X * ${factor}).mean()`]
  };
  for (const [what, lines] of Object.entries(runs)) {
    await lab.setSource('plain', lines.join('\n'));
    await lab.run('plain');
    const said = await agree('plain');
    expect(said.waited, what).toMatch(/this run/);
    expect(said.retraces, what).toBe(what === 'a run that retraces' ? '3' : '');
  }
  // What %jit on compiles, and calls that were settled on Python.
  await lab.setSource('planned', '%jit on');
  await lab.run('planned');
  await lab.setSource('planned', '%jitlab export one-run.json\n%jitlab export one-run.txt');
  await lab.setSource('plain', `y = np.exp(X) * ${factor}\nz = y.sum(axis=0) + 1`);
  await lab.run('plain');
  expect((await agree('plain')).waited, '%jit on').toMatch(/this run/);
  await lab.setSource('planned', '%jit off');
  await lab.run('planned');
  await lab.setSource('planned', '%jitlab export one-run.json\n%jitlab export one-run.txt');
  await lab.setSource(
    'plain',
    `@jl.jit\ndef tiny(a):\n    return a + ${factor}\nfor n in range(400):\n    tiny(X[0, :2])`
  );
  await lab.run('plain');
  await lab.run('plain');
  await agree('plain');
  // What falls back, and what raises: nothing of it is of the run before.
  const many = [
    '%%jit',
    `s = np.cumsum(np.exp(X * ${factor}))`,
    'part = s[s > least]',
    'm = part.mean()',
    'u = np.unique(np.round(s))'
  ];
  await lab.setSource('plain', many.join('\n'));
  for (const least of ['1000', '2000', '3000']) {
    await lab.setSource('planned', `least = ${least}`);
    await lab.run('planned');
    await lab.run('plain');
    await lab.setSource('planned', '%jitlab export one-run.json\n%jitlab export one-run.txt');
    await agree('plain');
  }
  await lab.setSource('plain', '%%jit\ny = np.exp(X) * 3.0\nassert y.sum() < 0');
  await lab.start('plain');
  await expect(lab.cell('plain').locator('.jl-mime details > summary')).toContainText('stopped by AssertionError');
  await agree('plain');
  await lab.setSource('plain', '1 + 1');
  await lab.setSource('planned', 'from tests.planned_times import plan_times\n\nplan_times()');
});

test('lines have the mark of their cluster, their cost, and light up with the panel', async ({ lab }) => {
  await ready(lab);
  const editor = lab.cell('compiled').locator('.cm-editor');
  await expect(editor).toHaveClass(/jl-marked/);
  await expect(editor.locator('.jl-selvage [data-mark=c0]').first()).toBeVisible();
  await expect(editor.locator('.jl-selvage [data-mark=host]')).toHaveCount(1);
  await expect(editor.locator('.jl-cost', { hasText: /^k\d+ [\d.]+ [mµ]s/ }).first()).toBeVisible();
  await editor.locator('.cm-line', { hasText: 'np.exp(z)' }).hover();
  await expect(editor.locator('.jl-lit-line', { hasText: 'np.exp(z)' })).toHaveCount(1);
  await lab.section('Clusters').locator('[data-kind=cluster]').first().hover();
  await expect(editor.locator('.jl-lit-line')).not.toHaveCount(1);
  await lab.page.mouse.move(2, 2);
  await expect(editor.locator('.jl-lit-line')).toHaveCount(0);
});

/** Of a line of code, how many letters stand left of what it cost, or of the editor's edge where no column has its cost. */
function lettersShown(editor: Element): { letters: number; hasCosts: boolean } {
  const content = editor.querySelector('.cm-content');
  const column = editor.querySelector('.cm-gutters-after');
  const probe = document.createElement('span');
  probe.textContent = '0'.repeat(100);
  content?.append(probe);
  const letter = probe.getBoundingClientRect().width / 100;
  probe.remove();
  const { left = 0 } = content?.firstElementChild?.getBoundingClientRect() ?? {};
  const box = column?.getBoundingClientRect();
  const hasCosts = (box?.width ?? 0) > 0;
  const right = hasCosts ? box?.left : editor.querySelector('.cm-scroller')?.getBoundingClientRect().right;
  return { letters: Math.floor(((right ?? 0) - left) / letter), hasCosts };
}

test('code comes before costs in the editor, and times before the rest of the code in a narrow panel; lists are aligned', async ({
  lab
}) => {
  const { page } = lab;
  await ready(lab);
  const editor = lab.cell('compiled').locator('.cm-editor');
  const files = page.locator('#filebrowser');
  if (!(await files.isVisible())) {
    await lab.command('filebrowser:activate');
  }
  await expect.poll(() => editor.evaluate(lettersShown)).toMatchObject({ hasCosts: true });
  expect((await editor.evaluate(lettersShown)).letters).toBeGreaterThanOrEqual(45);
  await page.setViewportSize({ width: 1000, height: 900 });
  await expect.poll(() => editor.evaluate(lettersShown)).toMatchObject({ hasCosts: false });
  expect((await editor.evaluate(lettersShown)).letters, 'of about 25 that an editor of this width has').toBeGreaterThan(
    18
  );
  await page.setViewportSize({ width: 1400, height: 900 });

  const code = await lab.unfold('Code');
  await lab.setSource(
    'plain',
    '%%jit -q\na = np.cumsum(np.exp(X), axis=1)\nb = np.sort(X * 2.0, axis=1)[:, ::-1] + a\nc = (b @ X.T).sum(axis=0)'
  );
  await lab.run('plain');
  await expect(lab.panel).toHaveAttribute('data-cell', 'plain');
  const stored = (await lab.unfold('Clusters')).locator('.jl-details');
  await stored.locator('summary').click();
  for (const width of [364, 380]) {
    await lab.panel.evaluate((element, pixels) => {
      element.style.width = `${pixels}px`;
    }, width);
    const rows = code.getByRole('list', { name: 'Source' }).locator('.jl-ln');
    await expect(rows.first()).toBeVisible();
    await expect(rows.locator('.jl-cost-time').nth(1), 'the report of the run that has ended').toBeAttached();
    // Found and measured in one step: a report that comes between two makes them anew.
    const seen = await lab.panel.evaluate(panel =>
      [...panel.querySelectorAll('[aria-label="Source"] .jl-ln')].map(row => {
        const text = row.querySelector('.jl-tx');
        const time = row.querySelector('.jl-cost-time');
        const [line, shown] = [row.getBoundingClientRect(), time?.getBoundingClientRect()];
        const cost = row.querySelector('.jl-cost')?.getBoundingClientRect();
        return {
          letters: ((text?.clientWidth ?? 0) - 4 - 14) / 7.2247,
          time: time?.textContent ?? '',
          isSeen: !shown || (shown.top < line.bottom - 4 && shown.left >= (cost?.left ?? 0) - 1)
        };
      })
    );
    expect(seen.filter(({ isSeen }) => !isSeen)).toEqual([]);
    expect(seen.filter(({ time }) => time).length).toBeGreaterThan(1);
    expect(Math.min(...seen.map(({ letters }) => letters))).toBeGreaterThanOrEqual(20);
    const { heads, edge } = await lab.panel.evaluate(panel => {
      const list = panel.querySelector('.jl-details:has(.jl-stored-head)');
      const heads = [...panel.querySelectorAll('.jl-stored-head')].map(head => {
        const first = (element: Element | null): DOMRect | undefined => {
          const range = document.createRange();
          range.selectNodeContents(element ?? head);
          return range.getClientRects()[0];
        };
        const [name, size] = [first(head.querySelector('button')), first(head.lastElementChild)];
        return {
          text: head.querySelector('button')?.textContent ?? '',
          name: name?.bottom,
          size: size?.bottom,
          right: size?.right
        };
      });
      return { heads, edge: list?.getBoundingClientRect().right ?? 0 };
    });
    expect(heads.length).toBeGreaterThan(2);
    for (const { text, name, size, right } of heads) {
      expect(Math.abs((name ?? 0) - (size ?? 9)), `${text}: one baseline`).toBeLessThan(2);
      expect(Math.abs((right ?? 0) - edge), `${text}: one right edge`).toBeLessThan(1);
      expect(text, 'a name of the user’s').not.toMatch(/\b[a-z]+_\d+\b/);
    }
  }
  await lab.panel.evaluate(element => {
    element.style.width = '';
  });
  await lab.setSource('plain', '1 + 1');
});

test('lines of a function that another cell calls are marked where they stand', async ({ lab }) => {
  await ready(lab);
  await lab.has(NOTEBOOK, 'load', 'compiled', 'defined', 'called');
  const editor = lab.cell('defined').locator('.cm-editor');
  await expect(editor.locator('.jl-selvage').first()).toBeVisible();
  await expect(editor.locator('.jl-cost', { hasText: /k0/ }).first()).toBeVisible();
  await expect(badge(lab, 'called')).toContainText('2 retraces');
  await expect(editor.locator('.jl-changed').first()).toHaveText('rate');
});

test('an edited cell keeps the marks of the lines that did not change, and says which differ', async ({ lab }) => {
  await ready(lab);
  const editor = lab.cell('compiled').locator('.cm-editor');
  const marks = await editor.locator('.jl-selvage').count();
  await lab.edit('compiled', source => source.replace('p = np.exp(z)', '# a note\np = np.exp2(z)'));
  await expect(lab.panel).toContainText('Compiled from an older version of this cell; lines 3–4 differ.');
  await expect(editor.locator('.jl-selvage')).toHaveCount(marks - 1);
  await expect(badge(lab, 'compiled')).toContainText('of an older version of this cell');
  await lab.panel.getByRole('button', { name: 'Show that version' }).click();
  await expect(lab.section('Code')).toContainText('p = np.exp(z)');
  await lab.edit('compiled', source => source.replace('# a note\np = np.exp2(z)', 'p = np.exp(z)'));
  await expect(lab.panel).not.toContainText('older version');
  await expect(editor.locator('.jl-selvage')).toHaveCount(marks);
});

test('badges and marks go with a cell that is moved, and a copy has what its output says', async ({ lab }) => {
  await ready(lab);
  await lab.select('compiled');
  await lab.command('notebook:move-cell-down');
  await expect(badge(lab, 'compiled')).toHaveCount(1);
  await expect(lab.cell('compiled').locator('.jl-selvage').first()).toBeVisible();
  await lab.command('notebook:move-cell-up');
  await lab.command('notebook:delete-cell');
  await expect(badge(lab, 'compiled')).toHaveCount(0);
  await lab.command('notebook:undo-cell-action');
  await expect(badge(lab, 'compiled')).toHaveCount(1);
  await lab.select('compiled');
  await lab.command('notebook:copy-cell');
  await lab.command('notebook:paste-cell-below');
  await expect(lab.page.locator('.jp-Notebook .jp-mod-active .jl-badge')).toHaveText(/compiled/);
  await lab.command('notebook:delete-cell');
});

test('the panel opens in the main area: columns where there is room, tabs where there is not', async ({ lab }) => {
  await ready(lab);
  await lab.command('jitlab:open-in-main-area');
  const main = lab.page.locator('.jl-main');
  await expect(main).toHaveAttribute('data-cell', 'compiled');
  const tabs = main.getByRole('tablist', { name: 'Sections' });
  await expect(tabs).toBeVisible();
  await tabs.getByRole('tab', { name: 'Timeline' }).click();
  await expect(main.getByRole('region', { name: 'Timeline' })).toBeVisible();
  await expect(main.getByRole('region', { name: 'Clusters' })).toBeHidden();
  await lab.page.setViewportSize({ width: 2000, height: 1000 });
  await expect(tabs).toBeHidden();
  for (const name of ['Clusters', 'Code', 'Timeline']) {
    await expect(main.getByRole('region', { name, exact: true })).toBeVisible();
  }
  expect(await main.evaluate(element => element.scrollWidth - element.clientWidth)).toBeLessThan(1);
  await lab.page.setViewportSize({ width: 1400, height: 900 });
  await lab.command('application:close');
  await lab.command('jitlab:open-in-main-area', { section: 'Timeline' });
  await expect(main.getByRole('region', { name: 'Timeline' })).toBeVisible();
  await expect(main.getByRole('region', { name: 'Verdict' })).toHaveCount(0);
  await lab.command('application:close');
  await lab.showPanel();
  await lab.command('jitlab:open-in-main-area');
  await expect(main, 'closed once, it opens again').toHaveAttribute('data-cell', 'compiled');
  expect(await lab.page.evaluate(() => window.jupyterapp.shell.rightCollapsed), 'the same stands in one place').toBe(
    true
  );
  await lab.command('application:close');
  await lab.showPanel();
});

test('every key is a command: the list shows them, and one that was changed works', async ({ lab }) => {
  await ready(lab);
  await lab.section('Clusters').getByRole('button').first().focus();
  await lab.page.keyboard.press('Shift+?');
  const keys = lab.panel.getByRole('dialog', { name: 'Keys' });
  await expect(keys).toContainText('Pin or unpin the cell');
  await lab.page.keyboard.press('Escape');
  await expect(keys).toBeHidden();
  // On a German keyboard the sign stands on another key: the sign counts.
  const german = { key: '?', code: 'Minus', keyCode: 219, shiftKey: true, bubbles: true, cancelable: true };
  await lab.section('Clusters').getByRole('button').first().dispatchEvent('keydown', german);
  await expect(keys).toContainText('Pin or unpin the cell');
  await lab.page.keyboard.press('Escape');
  await expect(keys).toBeHidden();
  await expect(lab.section('Clusters').getByRole('button').first()).toBeFocused();
  const pin = lab.panel.getByRole('button', { name: /pin this cell/i });
  await lab.page.keyboard.press('p');
  await expect(pin).toHaveAttribute('aria-pressed', 'true');
  await lab.page.keyboard.press('p');
  await expect(pin).toHaveAttribute('aria-pressed', 'false');
  await lab.page.keyboard.press('Shift+S');
  await expect(lab.page.getByRole('alert').filter({ hasText: 'Saved In [' })).toContainText(/as shell-In-\d+\.html\./);
  await expect.poll(() => savedPage(lab, 'shell')).toContain('<!doctype html>');
  await lab.page.keyboard.press('Alt+3');
  await expect(lab.section('Code').getByRole('button').first()).toBeFocused();
  await expect(lab.section('Code').getByRole('button').first()).toHaveAttribute('aria-expanded', 'true');
  await lab.page.keyboard.press('/'); // with the focus on the heading of another section
  await expect(lab.section('Clusters').locator('input[type=search]')).toBeFocused();
  await lab.page.keyboard.press('Escape');
  await lab.section('Code').getByRole('button').first().focus();
  await lab.panel.getByRole('button', { name: 'More' }).click();
  const begins = await lab.panel.locator('.jl-menu > button').evaluateAll(all =>
    all.map(button => {
      const range = document.createRange();
      range.selectNodeContents(button);
      return range.getBoundingClientRect().left;
    })
  );
  expect(new Set(begins.map(Math.round)).size, 'names stand below one another, with a tick or without').toBe(1);
  await lab.page.keyboard.press('Escape');
  await lab.section('Code').getByRole('button').first().focus();
  const shortcuts = '@jupyterlab/shortcuts-extension:shortcuts';
  await lab.setting(shortcuts, {
    shortcuts: [
      { command: 'jitlab:pin-cell', keys: ['P'], selector: '.jl-keyed', disabled: true },
      { command: 'jitlab:pin-cell', keys: ['Y'], selector: '.jl-keyed' }
    ]
  });
  await lab.page.keyboard.press('y');
  await expect(pin).toHaveAttribute('aria-pressed', 'true');
  await lab.page.keyboard.press('p');
  await expect(pin).toHaveAttribute('aria-pressed', 'true');
  await lab.page.keyboard.press('y');
  await expect(pin).toHaveAttribute('aria-pressed', 'false');
  await lab.setting(shortcuts, {});
  await lab.page.keyboard.press('Escape');
  await expect(lab.page.locator('.jp-Notebook:focus-within, .jp-Notebook:focus')).toHaveCount(1);
});

test('roles, names and contrast hold in every theme', async ({ lab }) => {
  await ready(lab);
  for (const theme of ['JupyterLab Light', 'JupyterLab Dark', 'JupyterLab Dark High Contrast']) {
    await lab.theme(theme);
    expect(await findings(lab.page, '#jitlab-panel'), theme).toEqual([]);
    expect(await findings(lab.page, '.jl-badge-line'), theme).toEqual([]);
  }
  await lab.theme('JupyterLab Light');
});

test('%jit on is a button of the toolbar, which follows its kernel, and %%jit an action of each cell', async ({
  lab
}) => {
  const { page } = lab;
  await ready(lab);
  const button = page.locator('.jl-switch').getByRole('button');
  await expect(button).toHaveText('jit off');
  await button.click();
  await expect(button).toHaveText('jit on');
  await expect(button).toHaveAttribute('aria-pressed', 'true');
  await lab.setSource('plain', 'plain = np.tanh(p).sum()');
  await lab.run('plain');
  await expect(badge(lab, 'plain')).toHaveText(/compiled/);
  await lab.setSource('plain', '%jit on --level O0 --strict');
  await lab.run('plain');
  await expect(button).toHaveText('jit on O0 strict');
  await lab.setSource('plain', '%jit off');
  await lab.run('plain');
  await expect(button).toHaveText('jit off');

  await lab.select('compiled');
  const source = (): Promise<string> =>
    page.evaluate(() => {
      const { content } = window.jupyterapp.shell.currentWidget;
      return content.widgets[content.activeCellIndex]?.model.sharedModel.getSource() ?? '';
    });
  const before = await source();
  const action = lab.cell('compiled').getByRole('button', { name: /%%jit/ });
  await expect(action).toHaveAttribute('aria-pressed', 'true');
  await action.click();
  expect(await source()).toBe(before.replace(/^%%jit.*\n/, ''));
  await expect(action).toHaveAttribute('aria-pressed', 'false');
  await action.click();
  expect(await source()).toBe(before.replace(/^%%jit.*\n/, '%%jit\n'));

  await button.click();
  await expect(button).toHaveText('jit on');
  await lab.restartKernel();
  await expect(button).toHaveText('jit off');
  await button.click(); // loads jitlab
  await expect(button).toHaveText('jit on');
  await lab.run('load');
  await expect(button).toHaveText('jit on');
});

test('a comparison that lacks runs runs the cell as often as it takes, where it stands', async ({ lab }) => {
  await ready(lab);
  await lab.setSource('plain', '%%jit --strict -q\nq = np.tanh(p) + 1.0'); // so no run of it is tried as Python
  await lab.run('plain');
  const compare = await lab.unfold('Compare');
  await compare.getByRole('button', { name: 'Run once more' }).click();
  const more = compare.getByRole('button', { name: 'Run 8 more times' });
  await expect(compare).toContainText('1 before and 1 now');
  await lab.select('plain');
  await lab.command('notebook:enter-edit-mode');
  await more.click();
  await expect(lab.panel).toContainText('run 10');
  await expect(compare).not.toContainText('Too few');
  await expect(compare.getByRole('button', { name: /^Run \d/ })).toHaveCount(0);
  await expect(compare).toContainText('5 timed calls each');
  // What was chosen is what is compared: that run and those before it are one side, all after it the other.
  const against = compare.getByRole('combobox', { name: 'Compare with' });
  await lab.panel.getByRole('button', { name: 'Run 10. Compare with an earlier run' }).click();
  await lab.panel.getByRole('menuitem', { name: /^Compare with run 5/ }).click();
  await expect(against).toHaveValue('run 5');
  await expect(compare).toContainText(/Runs 1–5 \(before\).* Runs 6–10 \(now\)/);
  await against.selectOption('run 6');
  await expect(compare).toContainText(/Runs 2–6 \(before\).* Runs 7–10 \(now\)/);
  await lab.setSource('plain', '1 + 1');
});

test('whoever asks the kernel for something hears what became of it, at the first click, on each kind of cell', async ({
  lab
}) => {
  await ready(lab);
  await lab.run('defined');
  const factor = String(1 + (Date.now() % 1e8) / 1e8);
  const cells = {
    'one kernel': `V = X[:100].copy()\nq = %jit np.exp(X) * ${factor}`,
    'a loop that retraces': `%%jit -q\nfor rate in (0.3, 0.4, 0.5):\n    step(X, rate * ${factor})`,
    'a matrix product': `%%jit -q\nm = np.maximum(X @ V, ${factor})`,
    'inputs that are gone': `large = np.ones(4_000_000)\nlarge = %jit np.sqrt(large * ${factor})`
  };
  const verdict = lab.section('Verdict');
  for (const [what, source] of Object.entries(cells)) {
    await lab.setSource('plain', source);
    await lab.run('plain');
    await expect(lab.panel).toHaveAttribute('data-cell', 'plain');
    await expect(lab.panel).toHaveAttribute('data-running', 'false');
    const again = 'Run the cell again: jitlab keeps copies this time.';
    const [checked, measured] = what.startsWith('inputs')
      ? [again, again]
      : what.startsWith('a loop')
        ? [/\d outputs? (checked:|within )/, again]
        : [/\d outputs? (checked:|within )/, /× (faster|slower)|no measurable difference|too much other load to tell/];
    await verdict.getByRole('button', { name: 'Check', exact: true }).click();
    await expect(verdict, what).toContainText(checked);
    await verdict.getByRole('button', { name: 'Measure', exact: true }).click();
    await expect(verdict, what).toContainText(measured);
    const whatif = await lab.unfold('What-if');
    const sweep = whatif.getByRole('button', { name: /^Sweep/ });
    if (what === 'a matrix product') {
      await expect(sweep, 'none of its pairs is fused').toHaveCount(0);
    } else {
      await sweep.click();
      await expect(whatif, what).toContainText(/\d+ splits?, |no longer exist/);
    }
  }
  await lab.setSource('plain', '1 + 1');
});

test('a first run says how far the compiler is, and Cancel leaves the rest of it to Python', async ({ lab }) => {
  await ready(lab);
  const hold = [
    'import time',
    'from jitlab.notebook.magics import waiting',
    'waiting.SAID_AFTER, waiting.SAID_EACH, told = 0, 0, waiting.Waiting.told',
    'def hold(self, what, done, of):',
    '    told(self, what, done, of)',
    "    while what == 'kernels' and not self.is_stopped:",
    '        time.sleep(0.01)',
    'waiting.Waiting.told = hold'
  ];
  await lab.setSource('plain', hold.join('\n'));
  await lab.run('plain');
  await lab.setSource(
    'called',
    `%%jit\nr = np.cumsum(np.cosh(X) * ${String(1 + (Date.now() % 1e8) / 1e8)}, axis=1) @ X.T`
  );
  await lab.start('called');
  const said = /ompiling In \[\d+\]: 0 of \d+ kernels/;
  await expect(lab.panel.locator('.jl-work')).toContainText(said);
  await expect(lab.page.locator('.jl-status-item')).toContainText(said);
  await expect(badge(lab, 'called')).toHaveText(said);
  await lab.panel.getByRole('button', { name: 'Cancel' }).click();
  await expect(badge(lab, 'called')).toContainText('compiled');
  await expect(lab.panel.locator('.jl-work')).toBeHidden();
  await expect(lab.panel).toContainText('you stopped the compiler in this run');
  await lab.setSource(
    'plain',
    'waiting.Waiting.told = told\nwaiting.SAID_AFTER, waiting.SAID_EACH = 1, 0.25\nprint(r.shape)'
  );
  await lab.run('plain');
  await expect(lab.cell('plain')).toContainText('(2000, 2000)');
  await lab.setSource('plain', '1 + 1');
});

test('a tour of four steps is in the View menu, and when it was seen it does not come by itself', async ({ lab }) => {
  const { page } = lab;
  await ready(lab);
  await expect(page.locator('.jl-tour')).toHaveCount(0);
  await lab.command('jitlab:show-tour');
  const card = page.getByRole('dialog', { name: 'A tour of jitlab' });
  for (const [step, target] of ['jl-switch', 'jl-verdict', 'jl-clusters', 'jl-head'].entries()) {
    await expect(card).toContainText(`${step + 1} of 4`);
    await expect(page.locator('.jl-tour-target')).toHaveClass(new RegExp(target));
    await page.keyboard.press('Enter');
  }
  await expect(card).toHaveCount(0);
  await expect(page.locator('.jl-tour-target')).toHaveCount(0);
  await lab.command('jitlab:show-tour');
  await page.keyboard.press('Escape');
  await expect(card).toHaveCount(0);
  const kept = (await (await page.request.get('lab/api/settings/jitlab:panel')).json()) as { settings: object };
  expect(kept.settings).toMatchObject({ tour: false });
});

test('two notebooks and their kernels do not mix', async ({ lab }) => {
  await ready(lab);
  await lab.openBeside('live.ipynb');
  await lab.run('load', 'line');
  await expect(lab.panel).toContainText('All 2 operations compiled');
  await lab.activate(NOTEBOOK);
  await lab.select('compiled');
  await expect(lab.panel).toHaveAttribute('data-cell', 'compiled');
  await lab.activate('live.ipynb');
  await expect(lab.panel).toContainText('All 2 operations compiled');
});

test('Notebook 7 has badges and marks, and a panel that can be widened', async ({ lab }) => {
  await lab.setting('jitlab:panel', {}); // as of somebody who has never seen jitlab
  const first = await lab.inNotebook7('shell7.ipynb', true);
  await first.run('load', 'compiled');
  const card = first.page.getByRole('dialog', { name: 'A tour of jitlab' });
  await expect(card, 'the first report brings a tour').toContainText('1 of 4');
  await card.getByRole('button', { name: 'Next' }).click();
  await card.getByRole('button', { name: 'Close the tour' }).click();
  await expect(card).toHaveCount(0);
  await expect
    .poll(async () => (await (await lab.page.request.get('lab/api/settings/jitlab:panel')).json()) as object)
    .toMatchObject({ settings: { tour: false } });
  await expect(first.panel).toBeVisible();
  await first.page.close();
  const seven = await lab.inNotebook7('shell7.ipynb', true);
  const tour = seven.page.getByRole('dialog', { name: 'A tour of jitlab' });
  await seven.run('load', 'compiled');
  await expect(seven.cell('compiled').locator('.jl-badge')).toHaveText(/compiled/);
  await expect(seven.cell('compiled').locator('.jl-selvage').first()).toBeVisible();
  await seven.showPanel(); // by itself it is shown when jitlab is loaded
  await expect(seven.panel).toHaveAttribute('data-cell', 'compiled');
  const before = (await seven.panel.boundingBox())?.width ?? 0;
  await seven.panel.getByRole('button', { name: 'Widen the panel' }).first().click();
  await expect.poll(async () => (await seven.panel.boundingBox())?.width ?? 0).toBeGreaterThan(before + 100);
  const box = await seven.panel.boundingBox();
  expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(1400); // all of it is to be seen
  await seven.panel.getByRole('button', { name: 'More' }).click();
  await seven.panel.getByRole('menuitem', { name: 'Save as HTML' }).click();
  await expect(seven.page.getByRole('alert').filter({ hasText: 'Saved In [' })).toContainText(
    /as shell7-In-\d+\.html\./
  );
  await expect.poll(() => savedPage(seven, 'shell7')).toContain('<!doctype html>');
  await expect(tour, 'who has seen it does not see it again').toHaveCount(0);
  await seven.page.close();
});

for (const mode of ['full', 'defer', 'none', 'contentVisibility']) {
  test(`badges and marks are there when a cell comes back into view, windowing mode ${mode} @long`, async ({ lab }) => {
    const plugin = '@jupyterlab/notebook-extension:tracker';
    await lab.setting(plugin, { windowingMode: mode });
    await lab.openNew(NOTEBOOK);
    await lab.run('load', 'compiled');
    await lab.addCells(300);
    await lab.select('compiled');
    await lab.scrollTo('compiled');
    await expect(badge(lab, 'compiled')).toBeVisible();
    await lab.command('notebook:move-cursor-down');
    await expect(async () => {
      await lab.selectLast(); // JupyterLab scrolls no further than to what it has attached
      await expect(badge(lab, 'compiled')).not.toBeInViewport({ timeout: 1000 });
    }).toPass();
    await lab.select('compiled');
    await lab.scrollTo('compiled');
    await expect(badge(lab, 'compiled')).toBeInViewport();
    await expect(badge(lab, 'compiled')).toHaveCount(1);
    await expect(lab.cell('compiled').locator('.jl-selvage').first()).toBeVisible();
    await lab.setting(plugin, {});
  });
}
