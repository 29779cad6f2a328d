"""Images: loops over pixels, convolutions, thresholds, fractals."""

import numpy as np

from .record import Program, given


def convolve2d(image, kernel):
    kh, kw = kernel.shape
    ph, pw = kh // 2, kw // 2
    padded = np.pad(image, ((ph, ph), (pw, pw)))
    out = np.zeros_like(image)
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            out[y, x] = np.sum(padded[y : y + kh, x : x + kw] * kernel)
    return out


def sobel_edges(img):
    gx = np.zeros(img.shape)
    gy = np.zeros(img.shape)
    gx[1:-1, 1:-1] = img[1:-1, 2:] - img[1:-1, :-2]
    gy[1:-1, 1:-1] = img[2:, 1:-1] - img[:-2, 1:-1]
    magnitude = np.hypot(gx, gy)
    return (magnitude / magnitude.max() * 255).astype(np.uint8)


def otsu_threshold(image):
    histogram = np.bincount(image.ravel(), minlength=256)
    total = image.size
    sum_all = np.dot(np.arange(256), histogram)
    sum_back, weight_back = 0.0, 0
    best, threshold = 0.0, 0
    for t in range(256):
        weight_back += histogram[t]
        if weight_back == 0:
            continue
        weight_fore = total - weight_back
        if weight_fore == 0:
            break
        sum_back += t * histogram[t]
        between = weight_back * weight_fore * (sum_back / weight_back - (sum_all - sum_back) / weight_fore) ** 2
        if between > best:
            best, threshold = between, t
    return threshold


def flood_fill(grid, start, new_color):
    """Four neighbours, in place; how many cells were filled."""
    h, w = len(grid), len(grid[0])
    old = grid[start[0]][start[1]]
    if old == new_color:
        return 0
    stack, filled = [start], 0
    while stack:
        y, x = stack.pop()
        if not (0 <= y < h and 0 <= x < w) or grid[y][x] != old:
            continue
        grid[y][x] = new_color
        filled += 1
        stack.extend([(y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)])
    return filled


def mandelbrot(width, height, max_iter=20):
    counts = np.zeros((height, width), dtype=int)
    for row in range(height):
        for col in range(width):
            c = complex(-2 + 3 * col / width, -1 + 2 * row / height)
            z = 0
            for n in range(max_iter):  # noqa: B007
                if abs(z) > 2:
                    break
                z = z * z + c
            counts[row, col] = n
    return counts


def bilinear_resize(image, height, width):
    out = np.empty((height, width), dtype=image.dtype)
    sy = (image.shape[0] - 1) / max(height - 1, 1)
    sx = (image.shape[1] - 1) / max(width - 1, 1)
    for i in range(height):
        for j in range(width):
            y, x = i * sy, j * sx
            y0, x0 = int(y), int(x)
            y1, x1 = min(y0 + 1, image.shape[0] - 1), min(x0 + 1, image.shape[1] - 1)
            dy, dx = y - y0, x - x0
            top = image[y0, x0] * (1 - dx) + image[y0, x1] * dx
            bottom = image[y1, x0] * (1 - dx) + image[y1, x1] * dx
            out[i, j] = top * (1 - dy) + bottom * dy
    return out


def rgb_to_gray(pixels, weights=(0.299, 0.587, 0.114)):
    gray = np.dot(pixels[..., :3], weights)
    return np.clip(np.rint(gray), 0, 255).astype(np.uint8)


def floyd_steinberg(img):
    """Black and white by handing errors on, in place."""
    h, w = img.shape
    for y in range(h):
        for x in range(w):
            old = img[y, x]
            new = 255.0 if old > 127 else 0.0
            img[y, x] = new
            err = old - new
            if x + 1 < w:
                img[y, x + 1] += err * 7 / 16
            if y + 1 < h:
                if x > 0:
                    img[y + 1, x - 1] += err * 3 / 16
                img[y + 1, x] += err * 5 / 16
                if x + 1 < w:
                    img[y + 1, x + 1] += err / 16


def game_of_life(cells, generations=2):
    """Alive cells as a set."""
    alive = set(cells)
    for _ in range(generations):
        counts = {}
        for x, y in alive:
            for dx in (-1, 0, 1):
                for dy in (-1, 0, 1):
                    if dx or dy:
                        key = (x + dx, y + dy)
                        counts[key] = counts.get(key, 0) + 1
        alive = {cell for cell, n in counts.items() if n == 3 or (n == 2 and cell in alive)}
    return sorted(alive)


PROGRAMS = [
    Program(convolve2d, (4, 24, 120), lambda n, draw: given(draw.random((n, n)), draw.random((3, 3)))),
    Program(sobel_edges, (5, 64, 800), lambda n, draw: given(draw.random((n, n)))),
    Program(otsu_threshold, (4, 64, 1000), lambda n, draw: given(draw.integers(0, 256, (n, n), dtype=np.uint8))),
    Program(
        flood_fill, (4, 40, 250), lambda n, draw: given((draw.random((n, n)) < 0.2).astype(int).tolist(), (n // 2, n // 2), 7)
    ),
    Program(mandelbrot, (4, 40, 140), lambda n, draw: given(n, n)),
    Program(bilinear_resize, (3, 30, 150), lambda n, draw: given(draw.random((n, n)), n + 2, width=n + 1)),
    Program(rgb_to_gray, (3, 64, 500), lambda n, draw: given(draw.integers(0, 256, (n, n, 3)), weights=(0.25, 0.5, 0.25))),
    Program(floyd_steinberg, (4, 40, 200), lambda n, draw: given(draw.random((n, n)) * 255)),
    Program(
        game_of_life, (8, 100, 5000), lambda n, draw: given([tuple(p) for p in draw.integers(0, n, (3 * n, 2)).tolist()])
    ),
]
