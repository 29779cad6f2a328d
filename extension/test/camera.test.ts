import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Camera } from '../src/core/sections/clusters/map/camera';

const screen = { width: 400, height: 300 };

function near(found: { x: number; y: number }, x: number, y: number): void {
  assert.ok(Math.hypot(found.x - x, found.y - y) < 1e-9, `${found.x}, ${found.y}`);
}

test('a small graph is in the middle at its own size, a large one is shrunk, a tall one begins at its top', () => {
  const camera = new Camera();
  camera.fit({ width: 200, height: 100 }, screen);
  assert.equal(camera.scale, 1);
  near(camera.toScreen({ x: 100, y: 50 }), 200, 150);
  camera.fit({ width: 3840, height: 100 }, screen);
  assert.equal(camera.scale, 0.1);
  near(camera.toScreen({ x: 1920, y: 50 }), 200, 150);
  camera.fit({ width: 100, height: 1e9 }, screen);
  assert.equal(camera.scale, 0.01);
  assert.equal(camera.y, 0);
});

test('a graph is first seen large enough to be read, from its corner; one that is far too large as a whole', () => {
  const camera = new Camera();
  camera.begin({ width: 200, height: 100 }, screen);
  near(camera.toScreen({ x: 100, y: 50 }), 200, 150);
  camera.begin({ width: 800, height: 200 }, screen);
  assert.equal(camera.scale, 0.75);
  near(camera.toScreen({ x: 0, y: 100 }), 8, 150);
  camera.begin({ width: 480, height: 700 }, screen);
  near(camera.toScreen({ x: 240, y: 0 }), 200, 8);
  camera.begin({ width: 3840, height: 100 }, screen);
  assert.equal(camera.scale, 0.1);
});

test('what is under the pointer stays there while the picture is zoomed, as far as that goes', () => {
  const camera = new Camera();
  camera.pan(30, -20);
  const at = { x: 120, y: 80 };
  const under = camera.toScene(at);
  for (const factor of [1.25, 0.3, 100, 1e-9]) {
    camera.zoom(factor, at);
    near(camera.toScreen(under), at.x, at.y);
    assert.ok(camera.scale >= 0.01 && camera.scale <= 2);
  }
  assert.equal(camera.fitted, false);
});

test('a box that is in sight moves nothing, another one comes to the middle', () => {
  const camera = new Camera();
  camera.fit({ width: 200, height: 100 }, screen);
  const before = camera.toScene({ x: 0, y: 0 });
  camera.reveal({ x: 10, y: 10, width: 80, height: 40 }, screen);
  assert.deepEqual([camera.toScene({ x: 0, y: 0 }), camera.fitted], [before, true]);
  camera.reveal({ x: 2000, y: 900, width: 80, height: 40 }, screen);
  near(camera.toScreen({ x: 2040, y: 920 }), 200, 150);
  camera.scale = 0.1;
  camera.locate({ x: 2000, y: 900, width: 80, height: 4000 }, screen);
  assert.equal(camera.scale, 0.8);
  near(camera.toScreen({ x: 2000, y: 900 }), 200 - 32, 0);
});
