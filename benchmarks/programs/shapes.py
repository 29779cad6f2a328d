"""Geometry: polygons, hulls, splines, distances on the globe."""

import math
from typing import NamedTuple

import numpy as np

from .record import Program, given


class Point(NamedTuple):
    x: float
    y: float


def polygon_area(vertices):
    """The shoelace formula; negative when they run clockwise."""
    area = 0.0
    for i in range(len(vertices)):
        x1, y1 = vertices[i]
        x2, y2 = vertices[(i + 1) % len(vertices)]
        area += x1 * y2 - x2 * y1
    return area / 2


def point_in_polygon(x, y, poly):
    inside = False
    j = len(poly) - 1
    for i in range(len(poly)):
        xi, yi = poly[i]
        xj, yj = poly[j]
        if (yi > y) != (yj > y) and x < (xj - xi) * (y - yi) / (yj - yi) + xi:
            inside = not inside
        j = i
    return inside


def convex_hull(points):
    """Andrew's monotone chain."""
    points = sorted(set(points))
    if len(points) <= 1:
        return points

    def half(ordered):
        chain = []
        for p in ordered:
            while len(chain) >= 2 and (chain[-1].x - chain[-2].x) * (p.y - chain[-2].y) <= (chain[-1].y - chain[-2].y) * (
                p.x - chain[-2].x
            ):
                chain.pop()
            chain.append(p)
        return chain[:-1]

    return half(points) + half(reversed(points))


def cubic_spline(x, y, at):
    """The natural spline through the points, with Thomas' algorithm."""
    n = len(x) - 1
    h = np.diff(x)
    alpha = np.zeros(n)
    for i in range(1, n):
        alpha[i] = 3 / h[i] * (y[i + 1] - y[i]) - 3 / h[i - 1] * (y[i] - y[i - 1])
    lower, mu, z = np.ones(n + 1), np.zeros(n + 1), np.zeros(n + 1)
    for i in range(1, n):
        lower[i] = 2 * (x[i + 1] - x[i - 1]) - h[i - 1] * mu[i - 1]
        mu[i] = h[i] / lower[i]
        z[i] = (alpha[i] - h[i - 1] * z[i - 1]) / lower[i]
    b, c, d = np.zeros(n), np.zeros(n + 1), np.zeros(n)
    for j in range(n - 1, -1, -1):
        c[j] = z[j] - mu[j] * c[j + 1]
        b[j] = (y[j + 1] - y[j]) / h[j] - h[j] * (c[j + 1] + 2 * c[j]) / 3
        d[j] = (c[j + 1] - c[j]) / (3 * h[j])
    k = np.clip(np.searchsorted(x, at) - 1, 0, n - 1)
    t = at - x[k]
    return y[k] + t * (b[k] + t * (c[k] + t * d[k]))


def haversine_total(track, radius=6371.0):
    """Kilometres along (latitude, longitude) in degrees."""
    total = 0.0
    legs = []
    for (lat1, lon1), (lat2, lon2) in zip(track, track[1:]):  # noqa: B905
        p1, p2 = math.radians(lat1), math.radians(lat2)
        dp, dl = p2 - p1, math.radians(lon2 - lon1)
        a = math.sin(dp / 2) ** 2 + math.cos(p1) * math.cos(p2) * math.sin(dl / 2) ** 2
        legs.append(2 * radius * math.asin(math.sqrt(a)))
        total += legs[-1]
    return total, max(legs)


def bezier(control, samples=5):
    curve = []
    for s in range(samples):
        t = s / (samples - 1)
        points = [np.array(p, dtype=float) for p in control]
        while len(points) > 1:
            points = [(1 - t) * a + t * b for a, b in zip(points, points[1:])]  # noqa: B905
        curve.append(points[0])
    return np.vstack(curve)


def rotate(points, angle, center=None):
    center = points.mean(axis=0) if center is None else np.asarray(center)
    c, s = math.cos(angle), math.sin(angle)
    R = np.array([[c, -s], [s, c]])
    return (points - center) @ R.T + center


def closest_pair(points):
    best = (float("inf"), None, None)
    for i in range(len(points)):
        for j in range(i + 1, len(points)):
            d = math.hypot(points[i][0] - points[j][0], points[i][1] - points[j][1])
            if d < best[0]:
                best = (d, i, j)
    return best


def simplify_line(points, epsilon):
    """Ramer, Douglas and Peucker."""
    if len(points) < 3:
        return [tuple(p) for p in points.tolist()]
    a, b = points[0], points[-1]
    d = b - a
    distances = np.abs(d[0] * (points[:, 1] - a[1]) - d[1] * (points[:, 0] - a[0])) / np.hypot(d[0], d[1])
    k = int(np.argmax(distances))
    if distances[k] <= epsilon:
        return [tuple(a.tolist()), tuple(b.tolist())]
    return simplify_line(points[: k + 1], epsilon)[:-1] + simplify_line(points[k:], epsilon)


PROGRAMS = [
    Program(polygon_area, (10, 2000, 100_000), lambda n, draw: given([tuple(p) for p in draw.random((n, 2)).tolist()])),
    Program(point_in_polygon, (10, 2000, 50_000), lambda n, draw: given(0.5, 0.4, draw.random((n, 2)))),
    Program(convex_hull, (10, 1000, 30_000), lambda n, draw: given([Point(*p) for p in draw.random((n, 2)).tolist()])),
    Program(
        cubic_spline,
        (6, 500, 20_000),
        lambda n, draw: given(np.arange(float(n)), draw.normal(size=n), np.linspace(0, n - 1, n)),
    ),
    Program(
        haversine_total,
        (8, 2000, 100_000),
        lambda n, draw: given([tuple(p) for p in (draw.random((n, 2)) * 90).tolist()], radius=6378.137),
    ),
    Program(bezier, (4, 12, 40), lambda n, draw: given(draw.random((n, 2)).tolist(), samples=n + 2)),
    Program(rotate, (5, 2000, 300_000), lambda n, draw: given(draw.random((n, 2)), 0.3)),
    Program(closest_pair, (6, 60, 400), lambda n, draw: given(draw.random((n, 2)).tolist())),
    Program(
        simplify_line,
        (8, 500, 10_000),
        lambda n, draw: given(np.column_stack([np.arange(n), draw.normal(size=n)]), epsilon=1.0),
    ),
]
