// How the panel behaves at 50 000 operations, 100 000 spans and 10 000 events a second, in headless Chromium.
// node performance.mjs [report.json …]: reports that jitlab made, as files, beside the synthetic one.
// A machine that is busy with other things makes frames late; what the code itself needs is beside it: the processor's time of the
// page's main thread (script, style, layout, painting), and within it that of the panel's own code.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from '@playwright/test';

const page = fileURLToPath(new URL('../../extension/test/page.html', import.meta.url));
const script = fileURLToPath(new URL('../../extension/lib/page/bench.js', import.meta.url));
const SECONDS = Number(process.env.JITLAB_BENCH_SECONDS ?? 3);

const browser = await chromium.launch({
  executablePath: process.env.JITLAB_CHROMIUM ?? '/usr/bin/chromium',
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-dev-shm-usage',
    '--no-first-run',
    '--disable-background-networking'
  ]
});

let failed = false;
function row(what, value, unit, bound, below, more = '') {
  const good = below ? value <= bound : value >= bound;
  failed ||= !good;
  const shown = value.toFixed(value < 10 ? 2 : 0);
  const told = `${below ? '≤' : '≥'} ${bound}${good ? '' : ' missed'}`;
  console.log(`  ${what.padEnd(58)}${shown.padStart(9)} ${unit.padEnd(4)} ${told.padEnd(11)} ${more}`.trimEnd());
}

/** A page with the panel's benchmark in it, and what of the processor its main thread takes. */
async function open() {
  const tab = await browser.newPage({ viewport: { width: 960, height: 1080 } });
  tab.on('pageerror', error => {
    failed = true;
    console.log(`  error in the page: ${error.message}`);
  });
  await tab.goto(`file://${page}#fixture=absent`);
  await tab.addScriptTag({ content: "document.getElementById('panels').replaceChildren()" });
  await tab.addScriptTag({ path: script });
  const session = await tab.context().newCDPSession(tab);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  const used = async () => {
    const { metrics } = await session.send('Performance.getMetrics');
    return 1000 * metrics.find(({ name }) => name === 'TaskDuration').value;
  };
  /** What a task of the benchmark says, and the processor's milliseconds meanwhile. */
  const run = async (task, ...args) => {
    const before = await used();
    const result = await tab.evaluate(([task, args]) => window.bench[task](...args), [task, args]);
    return { result, cpu: (await used()) - before };
  };
  return { tab, run };
}

/** Milliseconds a frame: of the main thread's processor time, and of the panel's own code by the clock. */
function each({ count, script, worst }, cpu) {
  return `${(cpu / count).toFixed(1)} ms CPU a frame, ${script.toFixed(1)} in our code, worst gap ${worst.toFixed(0)} ms`;
}

/** What the kernel sends of a report that is too big for the wire; null where there is no Python with jitlab. */
function summaryOf(json) {
  const code =
    'import json, sys; from jitlab.report.store.summary import on_wire; print(json.dumps(on_wire(json.load(sys.stdin)), separators=(",", ":")))';
  const root = fileURLToPath(new URL('../..', import.meta.url));
  try {
    return execFileSync(process.env.JITLAB_PYTHON ?? 'python3', ['-c', code], {
      input: json,
      cwd: root,
      encoding: 'utf8',
      maxBuffer: 1 << 28,
      stdio: ['pipe', 'pipe', 'ignore']
    });
  } catch {
    return null;
  }
}

async function measure(name, text) {
  const { tab, run } = await open();
  const json = text ?? (await run('huge')).result;
  const report = JSON.parse(json);
  const spans = report.timeline.lanes.reduce((sum, lane) => sum + lane.spans.length, 0);
  console.log(
    `${name}: ${report.ops.length} operations, ${report.clusters.length} clusters, ${spans} spans, ${(json.length / 1e6).toFixed(1)} MB`
  );
  const paint = async (what, of) => {
    await run('paint', of); // once for the compiler of the browser: a panel is opened more than once in a session
    const tries = [];
    for (let count = 0; count < 3; count++) {
      const { result, cpu } = await run('paint', of);
      tries.push({ ...result, cpu });
    }
    const { paint, parse, read, cpu } = tries.sort((a, b) => a.paint - b.paint)[1];
    const told = `JSON ${parse.toFixed(0)} ms, read ${read.toFixed(0)}, the rest ${(paint - parse - read).toFixed(0)}; ${cpu.toFixed(0)} ms CPU`;
    row(what, paint / 1000, 's', 1, true, told);
  };
  const summary = summaryOf(json);
  if (summary === null) {
    console.log('  first paint of what the kernel sends: not measured, no Python with jitlab (JITLAB_PYTHON)');
  } else if (summary.length < json.length / 2) {
    await paint(`first paint of what the kernel sends, ${(summary.length / 1e3).toFixed(0)} kB`, summary);
  }
  await paint('first paint, from the text of the whole report', json);
  await run('toMap');
  const expand = await run('open', 'Enter');
  const boxes = `a cluster opens in place, ${expand.result.boxes} boxes then`;
  row(boxes, expand.result.ms / 1000, 's', 0.2, true, `${expand.cpu.toFixed(0)} ms CPU`);
  const frames = (what, { result, cpu }) => {
    row(what, result.fps, 'fps', 30, false, each(result, cpu));
  };
  frames('pan, one cluster open', await run('panMap', SECONDS));
  let all = (await run('open', '*')).result;
  for (let level = 0; level < 3; level++) {
    const more = (await run('open', '*', level + 1)).result;
    all = more.boxes > all.boxes ? more : all;
  }
  console.log(`  all of the first levels open: ${all.boxes} boxes`);
  frames('pan, all of them', await run('panMap', SECONDS));
  frames('zoom, all of them', await run('zoomMap', SECONDS));
  const everything = await run('openEverything');
  console.log(
    `  everything open: ${everything.result.boxes} boxes after ${(everything.result.ms / 1000).toFixed(1)} s, ${(everything.cpu / 1000).toFixed(1)} s CPU of the page`
  );
  frames('pan, everything open', await run('panMap', SECONDS));
  frames('zoom, everything open', await run('zoomMap', SECONDS));
  const opened = await run('openTimeline');
  row('the timeline opens', opened.result / 1000, 's', 1, true, `${opened.cpu.toFixed(0)} ms CPU`);
  frames(`zoom, timeline of ${spans} spans`, await run('zoomTimeline', SECONDS));
  frames(`pan, timeline of ${spans} spans`, await run('panTimeline', SECONDS));
  frames(`select, timeline of ${spans} spans`, await run('selectTimeline', SECONDS));
  await tab.close();
}

async function code() {
  const { tab, run } = await open();
  await run('selectLines');
  const { result, cpu } = await run('selectLines');
  console.log(`linked code: panes of up to ${result.lines} lines, ${result.clicked} lines of the source clicked`);
  const each = `${(cpu / Math.max(1, result.clicked)).toFixed(0)} ms CPU a line`;
  row('all panes show what became of a line, the slowest', result.ms / 1000, 's', 0.1, true, each);
  row('panes that did not show it', result.missed, '', 0, true);
  await tab.close();
}

async function stream() {
  const { tab, run } = await open();
  const text = readFileSync(new URL('../../extension/test/fixtures/softmax.json', import.meta.url), 'utf8');
  console.log('10 000 events a second for 10 s, four reports a second');
  const { result, cpu } = await run('stream', 10_000, 10, text);
  row('events that were lost', result.sent - result.shown, '', 0, true);
  row(`frames, ${result.sent} events`, result.fps, 'fps', 50, false, each(result, cpu));
  await tab.close();
}

await measure('synthetic', null);
for (const path of process.argv.slice(2)) {
  await measure(basename(path), readFileSync(path, 'utf8'));
}
await code();
await stream();
await browser.close();
process.exit(failed ? 1 : 0);
