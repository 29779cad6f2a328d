import { expect, type Locator } from '@playwright/test';
import { test, unfold, type Lab } from './lab';
import { codeCell, notebookOf } from './notebooks';

/** Scrolls the panel, not the list, with the pointer elsewhere: how far down a list stands depends on what is above it, and what
 * comes under the pointer is lit in the place of what is pinned. */
async function intoSight(list: Locator): Promise<void> {
  await list.page().mouse.move(0, 0);
  await list.evaluate(element => element.scrollIntoView({ block: 'center' }));
}

/** What of a section's tables stands beyond its right edge, or is cut by its cell though it is a number. */
function outside(section: Element): string[] {
  const edge = section.getBoundingClientRect().right;
  return [...section.querySelectorAll<HTMLElement>('th, td, .jl-row > :not(.jl-about)')]
    .filter(cell => cell.getClientRects().length > 0)
    .filter(
      cell =>
        cell.getBoundingClientRect().right > edge + 1 ||
        (cell.classList.contains('jl-number') && cell.scrollWidth > cell.clientWidth + 1)
    )
    .map(cell => cell.textContent);
}

const exp = (lab: Lab): Locator => lab.section('Clusters').getByRole('treeitem', { name: /^p = np\.exp\(z\), line 4/ });

/** One cell walked through, as somebody does who wants to know why, to change it, and to keep the change. */
test('from a line to its machine code, from a value to what its fusion is worth, from a run to the one before', async ({
  lab
}) => {
  await lab.has('explained.ipynb', 'load', 'setup', 'step', 'use');
  const { page } = lab;

  await test.step('a retrace says where its time went, what did not change, and goes to its line', async () => {
    await page.keyboard.press('Escape');
    const section = lab.section('Retraces');
    await unfold(section);
    await expect(section).toContainText('rate changed twice');
    await expect(section).toContainText('2 other arguments are equal');
    await expect(section.getByRole('img', { name: /^Where the time went: capture / })).toBeVisible();
    await expect(section.getByRole('button', { name: /^Copy rate = / })).toBeVisible();
    await section.getByRole('button', { name: /line \d$/ }).click();
    await expect(page.locator('.jp-Cell.jp-mod-active')).toContainText('def smooth');
    await lab.select('use');
  });

  await test.step('a line pinned in the source is lit and in sight in its code, and the other way round', async () => {
    const section = lab.section('Code');
    await unfold(section);
    const source = section.getByRole('list', { name: 'Source' });
    await source.getByRole('listitem').filter({ hasText: 'np.exp(z)' }).click();
    await expect(section.getByRole('status').first()).toContainText('Pinned: line 4');
    const program = section.getByRole('list', { name: /^Program of / });
    await intoSight(program);
    await expect(program.locator('[aria-current]').first()).toBeInViewport();
    await expect(program.locator('[aria-current]').filter({ hasText: 'exp(' })).toBeVisible();
    await section.getByRole('tab', { name: 'Assembly' }).first().click();
    const assembly = section.getByRole('list', { name: /^Assembly of / });
    await intoSight(assembly);
    await expect(assembly.locator('[aria-current]').first()).toBeInViewport();
    await assembly.getByRole('listitem').first().focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await expect(source.locator('[aria-current]').first()).toBeVisible();
    await page.keyboard.press('Escape');
    await expect(section.locator('[aria-current]')).toHaveCount(0);
  });

  await test.step('the keyboard asks what if; both plans are measured, and the answer advises', async () => {
    await lab.unfold('Clusters');
    await exp(lab).focus();
    await page.keyboard.press('x');
    const card = lab.panel.getByRole('dialog', { name: /^np\.exp\(z\), p · line 4/ });
    await expect(card).toContainText('f64[4000,32] → f64[4000,32]');
    await page.waitForTimeout(400); // what the pointer had left is closed by now; this card the keyboard asked for
    await expect(card).toBeVisible();
    const [inner, outer] = [await card.boundingBox(), await lab.panel.evaluate(panel => panel.clientWidth)];
    const { x = 0 } = (await lab.panel.boundingBox()) ?? {};
    expect((inner?.x ?? 1e9) + (inner?.width ?? 0), 'nothing of it is cut off').toBeLessThanOrEqual(x + outer + 1);
    await page
      .locator('.jp-NotebookPanel-toolbar')
      .first()
      .click({ position: { x: 2, y: 2 } });
    await expect(card, 'a click elsewhere closes it').toBeHidden();
    await exp(lab).focus();
    await page.keyboard.press('x');
    await expect(card).toContainText('Enter starts the one that is framed');
    await card.getByRole('button', { name: /^Split (p|np\.exp\(z\)) from / }).click();
    const section = lab.section('What-if');
    const answer = section.locator('.jl-card[data-state=done]').first();
    await expect(answer).toContainText(/faster|slower|no measurable change/);
    await expect(answer).toContainText('of each, alternating');
    await answer.getByText(/^Code to make this permanent/).click();
    await expect(answer.getByRole('group', { name: 'Code to make this permanent' })).toContainText(
      'with jl.jit_scope(cut=[("exp", "sum"), '
    );
    await expect(answer.getByRole('img', { name: /^Split (p|np\.exp\(z\)) from / })).toBeVisible();
    await expect(answer.getByRole('table', { name: 'What moved' })).toContainText('kernels');
    await section.getByRole('button', { name: 'Show as a table' }).click();
    await expect(answer.getByRole('table', { name: 'What moved' })).toContainText('time');
    await expect(answer.getByRole('img')).toHaveCount(0);
  });

  await test.step('what a fact speaks of comes into sight, and nothing that comes under the pointer opens', async () => {
    const verdict = lab.section('Verdict');
    await expect(verdict.getByRole('button', { name: 'none run by NumPy' })).toHaveCount(0); // there is nothing to show
    await verdict.getByRole('button', { name: /^\d+ kernels?$/ }).click();
    await expect(lab.section('Clusters').locator('[data-kind=kernel]').first()).toBeInViewport();
    await page.waitForTimeout(700);
    await expect(lab.panel.locator('.jl-hover-card')).toBeHidden();
    await exp(lab).hover();
    await expect(lab.panel.locator('.jl-hover-card')).toBeVisible();
    await page.keyboard.press('Escape');
    await expect(lab.panel.locator('.jl-hover-card')).toBeHidden();
  });

  await test.step('a run is named, the cell runs again, and the two are compared', async () => {
    const section = lab.section('Compare');
    await unfold(section);
    await expect(section).toContainText('One run so far');
    await section.getByRole('button', { name: 'Pin as baseline' }).click();
    await expect(section.getByRole('textbox', { name: 'Name of the baseline' })).toBeFocused();
    await page.keyboard.type('first <b>'); // over the name that stood there
    await page.keyboard.press('Enter');
    await expect(section.getByRole('combobox', { name: 'Compare with' })).toContainText('baseline “first <b>”');
    await lab.run('step', 'use'); // retraces, with somebody who watches
    await expect(section.getByRole('img', { name: /^run 2 against baseline “first <b>”: whole cell/ })).toBeVisible();
    await section.getByRole('button', { name: 'Show as a table' }).click();
    await expect(section.getByRole('table', { name: 'Change of each part' })).toContainText('whole cell');
  });

  await test.step('in the narrowest panel no table is cut off, and no number is parted from its unit', async () => {
    await lab.panel.evaluate(panel => (panel.style.width = '240px'));
    for (const title of ['Clusters', 'Timeline', 'Roofline', 'What-if', 'Compare']) {
      const section = await lab.unfold(title);
      const asTable = section.getByRole('button', { name: 'Show as a table' });
      const wasPicture = (await asTable.getAttribute('aria-pressed')) !== 'true';
      if (wasPicture) {
        await asTable.click();
      }
      await expect.poll(() => section.evaluate(outside), title).toEqual([]);
      if (wasPicture) {
        await asTable.click();
      }
    }
    await lab.panel.evaluate(panel => (panel.style.width = ''));
  });

  await test.step('without its kernel everything that was answered stays', async () => {
    await lab.restartKernel();
    await expect(lab.panel).toHaveAttribute('data-origin', 'previous');
    await expect(lab.section('What-if')).toContainText('Measuring needs the kernel');
    await expect(lab.section('What-if').locator('.jl-card[data-state=done]')).toHaveCount(1);
    await expect(lab.section('Compare')).toContainText('whole cell');
  });
});

test('what a GPU ran has its launch, lanes and PTX, and what one would take is a prediction', async ({ lab }) => {
  const cells = { load: 'import stand_in', gpu: "stand_in.show('gpu', part='report')" };
  const other = { other: "stand_in.show('gpu', part='on_processor')" };
  await lab.write(
    'gpu.ipynb',
    notebookOf(Object.entries({ ...cells, ...other }).map(([id, text]) => codeCell(id, text)))
  );
  await lab.has('gpu.ipynb', 'load', 'gpu');
  const clusters = await lab.unfold('Clusters');
  const launched = /^Kernel k0, lines 2–3, .*, simulated.* simulated GPU, 8 blocks of 256 threads/;
  await expect(clusters.getByRole('treeitem', { name: launched })).toBeVisible();

  const timeline = await lab.unfold('Timeline');
  const lanes = /simulated GPU: 1 span, .*; to GPU: 1 span, .*; to host: 2 spans, /;
  await expect(timeline.getByRole('application')).toHaveAccessibleName(lanes);

  const code = await lab.unfold('Code');
  await code.getByRole('tab', { name: 'PTX' }).first().click();
  const source = code.getByRole('list', { name: 'Source' });
  await source.getByRole('listitem').filter({ hasText: 'p = e / e.sum' }).click();
  const ptx = code.getByRole('list', { name: /^PTX of / }).first();
  await intoSight(ptx);
  await expect(ptx.locator('[aria-current]').first()).toBeInViewport();
  await expect(code.getByRole('status').first()).toContainText(/\d+ PTX instructions/);
  await lab.page.keyboard.press('Escape');

  await lab.has('gpu.ipynb', 'other');
  await clusters
    .getByRole('treeitem', { name: /^cluster_/ })
    .first()
    .focus();
  await lab.page.keyboard.press('x');
  await lab.panel
    .getByRole('button', { name: /^Run on the GPU: all of / })
    .first()
    .click();
  const answer = lab.section('What-if').locator('.jl-card[data-state=refused]');
  await expect(answer).toContainText('No GPU can be used here');
  await expect(answer).toContainText(/A prediction for an H100: .* on the processor\./);
});
