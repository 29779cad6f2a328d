import type { KernelAccess, Request } from '../src/core/report/kernel';
import { NotebookModel } from '../src/core/report/model';
import { PanelView } from '../src/core/panel/panel';
import type { PanelActions, PanelState } from '../src/core/panel/panel-state';
import { readReport } from '../src/core/report/read-report';
import explained from './fixtures/explained.json';
import { hugeReport } from './huge';
import { recordedKernel } from './kernel';

const CODE_COPIES = 200;
/** What the two panes show at first. */
const STAGES_SHOWN = ['program', 'asm'];

/** What tests/browser/performance.mjs measures; everything is done through the page's elements, as a person would. */

interface Frames {
  fps: number;
  worst: number;
  count: number;
  /** Milliseconds a frame in the page's own code, as the clock has it; the processor's time is what the browser says. */
  script: number;
}

/** Milliseconds that callbacks of frames have taken. */
let inFrames = 0;
const nextFrame = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = callback =>
  nextFrame(time => {
    const start = performance.now();
    callback(time);
    inFrames += performance.now() - start;
  });

const host = document.getElementById('panels') ?? document.body;
host.style.cssText = 'width: 900px; height: 1000px; display: block';
const base: PanelState = {
  notebook: 'bench.ipynb',
  cell: undefined,
  loaded: true,
  source: null,
  other: null,
  pinned: false
};
const actions = {
  goTo: () => undefined,
  togglePin: () => undefined,
  leave: () => undefined,
  kernel: null
} as unknown as PanelActions;

let view: PanelView | null = null;

const frame = (): Promise<number> => new Promise(resolve => requestAnimationFrame(resolve));

/** A kernel that answers with the recorded texts, each as long as that of a big cluster. */
function longCode(): KernelAccess {
  const kernel = recordedKernel(explained.report.cell.id);
  const request = async (body: Request): Promise<unknown> => {
    const reply = (await kernel.request(body)) as { code?: { lines: unknown[] } };
    const { code } = reply;
    return code ? { code: { ...code, lines: Array.from({ length: CODE_COPIES }, () => code.lines).flat() } } : reply;
  };
  return { ...kernel, request };
}

/** Clicks every line of the source in turn: the longest until each pane shows what became of it, and the lines that were read. */
async function selectLines(): Promise<{ ms: number; lines: number; clicked: number; missed: number }> {
  view?.dispose();
  const report = readReport(explained.report);
  if (typeof report === 'string') {
    throw new Error(report);
  }
  view = new PanelView(host, { ...actions, kernel: longCode() });
  view.show({ ...base, cell: { report, refusal: null, origin: 'live', running: false, events: 0 } });
  const fold = find('.jl-code .jl-fold');
  if (fold.getAttribute('aria-expanded') === 'false') {
    fold.click();
  }
  await painted();
  await painted();
  const panes = [...host.querySelectorAll<HTMLElement>('.jl-code .jl-pane .jl-code-list')];
  const lines = Math.max(
    ...panes.map(pane => Number(pane.querySelector('[aria-setsize]')?.getAttribute('aria-setsize')))
  );
  const result = { ms: 0, lines, clicked: 0, missed: 0 };
  for (const row of [...host.querySelectorAll<HTMLElement>('.jl-source .jl-ln')].filter(row =>
    row.querySelector('.jl-cost')
  )) {
    panes.forEach(pane => {
      pane.scrollTop = pane.scrollHeight;
    });
    await painted();
    const start = performance.now();
    find(`.jl-source [data-id="${row.dataset.id ?? ''}"]`).click();
    await painted();
    result.ms = Math.max(result.ms, performance.now() - start);
    result.clicked++;
    const line = Number(row.querySelector('.jl-no')?.textContent);
    result.missed += panes.filter((pane, index) => speaksOf(STAGES_SHOWN[index] ?? '', line) && !inSight(pane)).length;
  }
  return result;
}

/** Of the recorded assembly only the beginning was kept. */
function speaksOf(stage: string, line: number): boolean {
  const code = explained.code.find(recorded => recorded.stage === stage);
  return code?.lines.some(({ at, noise }) => !noise && at.some(position => position[1] === line)) ?? false;
}

function inSight(pane: HTMLElement): boolean {
  const { top, bottom } = pane.getBoundingClientRect();
  return [...pane.querySelectorAll('.jl-lit')].some(row => {
    const box = row.getBoundingClientRect();
    return box.top >= top - 1 && box.bottom <= bottom + 1;
  });
}

/** Until what was drawn is on the screen: a frame, and the task after it. */
async function painted(): Promise<void> {
  await frame();
  await new Promise<void>(resolve => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => resolve();
    port2.postMessage(null);
  });
}

/** From the text of the report as it comes over the wire to the first picture. */
async function paint(text: string): Promise<{ parse: number; read: number; paint: number }> {
  view?.dispose();
  const start = performance.now();
  const json: unknown = JSON.parse(text);
  const parse = performance.now() - start;
  const report = readReport(json);
  const read = performance.now() - start - parse;
  if (typeof report === 'string') {
    throw new Error(report);
  }
  view = new PanelView(host, actions);
  view.show({
    ...base,
    cell: { report, refusal: null, origin: 'live', running: false, events: 0 }
  });
  await painted();
  await painted();
  return { parse, read, paint: performance.now() - start };
}

function find(selector: string): HTMLElement {
  const found = host.querySelector<HTMLElement>(selector);
  if (!found) {
    throw new Error(`${selector} is not there`);
  }
  return found;
}

async function settled(): Promise<void> {
  await painted();
  while (find('.jl-map').dataset.busy !== 'false') {
    await frame();
  }
  await painted();
}

async function toMap(): Promise<void> {
  find('[aria-label^="Show as a map"]').click();
  await settled();
}

function press(element: HTMLElement, key: string): void {
  element.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
}

/** Opens the box that has the keyboard, or all of its level; from the key to the picture. */
async function open(key: 'Enter' | '*', index = 0): Promise<{ ms: number; boxes: number }> {
  const item = find('.jl-map .jl-layer').children[index] as HTMLElement;
  item.focus();
  const start = performance.now();
  press(item, key);
  await settled();
  return { ms: performance.now() - start, boxes: Number(find('.jl-map').dataset.boxes) };
}

/** Everything: all levels of all boxes. */
async function openEverything(): Promise<{ ms: number; boxes: number }> {
  const start = performance.now();
  let boxes = 0;
  for (;;) {
    const item = find('.jl-map .jl-layer').children[0] as HTMLElement;
    item.focus();
    press(item, '*');
    await settled();
    const now = Number(find('.jl-map').dataset.boxes);
    if (now === boxes) {
      return { ms: performance.now() - start, boxes };
    }
    boxes = now;
  }
}

/** Does something every frame, and counts the frames. */
async function frames(seconds: number, each: (count: number) => void): Promise<Frames> {
  let count = 0;
  let worst = 0;
  const start = await frame();
  let last = start;
  const before = inFrames;
  let script = 0;
  while (last - start < seconds * 1000) {
    const began = performance.now();
    each(count);
    script += performance.now() - began;
    const now = await frame();
    worst = Math.max(worst, now - last);
    last = now;
    count++;
  }
  script += inFrames - before;
  return { fps: (count * 1000) / (last - start), worst, count, script: script / count };
}

function wheel(element: HTMLElement, deltaY: number): void {
  const { left, top, width, height } = element.getBoundingClientRect();
  const at = { clientX: left + width / 2, clientY: top + height / 2 };
  element.dispatchEvent(new WheelEvent('wheel', { deltaY, ctrlKey: true, bubbles: true, cancelable: true, ...at }));
}

/** Drags the map to and fro. */
async function panMap(seconds: number): Promise<Frames> {
  const map = find('.jl-map');
  const { left, top } = map.getBoundingClientRect();
  const send = (type: string, x: number, y: number): void => {
    const init = { clientX: left + x, clientY: top + y, button: 0, buttons: 1, pointerId: 1, bubbles: true };
    map.dispatchEvent(new PointerEvent(type, init));
  };
  map.setPointerCapture = () => undefined; // no pointer of that id is down
  send('pointerdown', 400, 200);
  const result = await frames(seconds, count =>
    send('pointermove', 400 + 250 * Math.sin(count / 15), 200 + 150 * Math.cos(count / 11))
  );
  send('pointerup', 400, 200);
  return result;
}

async function zoomMap(seconds: number): Promise<Frames> {
  const map = find('.jl-map');
  return frames(seconds, count => wheel(map, count % 80 < 40 ? -9 : 9));
}

async function openTimeline(): Promise<number> {
  const fold = find('.jl-timeline .jl-fold');
  const start = performance.now();
  if (fold.getAttribute('aria-expanded') === 'false') {
    fold.click();
  }
  await painted();
  press(find('.jl-timeline canvas'), 'f');
  await painted();
  return performance.now() - start;
}

async function zoomTimeline(seconds: number): Promise<Frames> {
  const canvas = find('.jl-timeline canvas');
  return frames(seconds, count => wheel(canvas, count % 120 < 60 ? -12 : 12));
}

async function panTimeline(seconds: number): Promise<Frames> {
  const canvas = find('.jl-timeline canvas');
  press(canvas, 'w');
  press(canvas, 'w');
  return frames(seconds, count => press(canvas, count % 60 < 30 ? 'd' : 'a'));
}

/** Drags over the picture of all spans, from its left tenth to nearly all of it. */
async function selectTimeline(seconds: number): Promise<Frames> {
  const canvas = find('.jl-timeline canvas');
  for (let step = 0; step < 40; step++) {
    press(canvas, 's');
  }
  const { left, top } = canvas.getBoundingClientRect();
  const send = (type: string, x: number): void => {
    const init = { clientX: left + x, clientY: top + 40, button: 0, buttons: 1, pointerId: 1, bubbles: true };
    canvas.dispatchEvent(new PointerEvent(type, init));
  };
  canvas.setPointerCapture = () => undefined;
  send('pointerdown', 100);
  const result = await frames(seconds, count => send('pointermove', 120 + ((count * 7) % 600)));
  send('pointerup', 400);
  return result;
}

/** Batches as the kernel sends them, every 50 ms, and four reports a second of a cell that runs. */
async function stream(rate: number, seconds: number, text: string): Promise<Frames & { sent: number; shown: number }> {
  const panel = (view ??= new PanelView(host, actions));
  const model = new NotebookModel(() => undefined);
  const report = JSON.parse(text) as { cell: { id: string } };
  const cell = report.cell.id;
  model.changed.connect(() => panel.show({ ...base, cell: model.cell(cell) }));
  model.receive({ op: 'hello', epoch: 'bench', last: 0 });
  const start = performance.now();
  let sent = 0;
  let reports = 0;
  const send = (due: number): void => {
    while (sent < due) {
      const first = sent;
      const count = Math.min(2000, due - first);
      const events = Array.from({ length: count }, (_, index) => ({
        kind: first + index === 0 ? 'cell-started' : 'cluster-ran',
        seq: first + index + 1,
        function: 'f',
        trace: 1,
        cluster: 'cluster_0',
        start_ns: first * 1000,
        duration_ns: 800,
        kernels_ns: [400, 400]
      }));
      sent += count;
      model.receive({ op: 'batch', cell, first: first + 1, last: sent, events });
    }
  };
  const timer = setInterval(() => {
    const elapsed = (performance.now() - start) / 1000;
    send(Math.min(rate * seconds, Math.floor(rate * elapsed))); // what is late comes with the next batch, as from the kernel
    if (elapsed * 4 > reports + 1) {
      reports++;
      model.receive({ op: 'report', cell, report: { ...report, cell: { ...report.cell, running: true } } });
    }
  }, 50);
  const result = await frames(seconds, () => undefined);
  clearInterval(timer);
  send(rate * seconds);
  await painted();
  await painted();
  return { ...result, sent, shown: Number(find('.jl-panel').dataset.events) + 1 }; // the count begins after the first
}

Object.assign(window, {
  bench: {
    paint,
    toMap,
    open,
    openEverything,
    panMap,
    zoomMap,
    openTimeline,
    zoomTimeline,
    panTimeline,
    selectTimeline,
    selectLines,
    stream,
    huge: () => JSON.stringify(hugeReport(50_000))
  }
});
