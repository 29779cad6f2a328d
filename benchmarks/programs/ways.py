"""Graphs: shortest ways, components, orders, ranks."""

import heapq
from collections import deque

import numpy as np

from .record import Program, given


def dijkstra(graph, source):
    distances = {node: float("inf") for node in graph}
    distances[source] = 0
    queue = [(0, source)]
    while queue:
        d, node = heapq.heappop(queue)
        if d > distances[node]:
            continue
        for neighbour, weight in graph[node].items():
            candidate = d + weight
            if candidate < distances[neighbour]:
                distances[neighbour] = candidate
                heapq.heappush(queue, (candidate, neighbour))
    return distances


def floyd_warshall(dist):
    n = len(dist)
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if dist[i, k] + dist[k, j] < dist[i, j]:
                    dist[i, j] = dist[i, k] + dist[k, j]
    return dist


def pagerank(links, d=0.85, tol=1e-8, max_iter=100):
    """Ranks of pages, {page: [pages it links to]}."""
    pages = sorted(links)
    index = {p: i for i, p in enumerate(pages)}
    n = len(pages)
    M = np.zeros((n, n))
    for p, targets in links.items():
        for t in targets:
            M[index[t], index[p]] = 1 / len(targets)
    r = np.ones(n) / n
    for iteration in range(max_iter):  # noqa: B007
        new = (1 - d) / n + d * M @ r
        if np.abs(new - r).sum() < tol:
            break
        r = new
    return dict(zip(pages, new.round(6).tolist())), iteration  # noqa: B905


def bfs_levels(adjacency, start=0):
    seen = {start: 0}
    queue = deque([start])
    while queue:
        u = queue.popleft()
        for v in adjacency[u]:
            if v not in seen:
                seen[v] = seen[u] + 1
                queue.append(v)
    return seen


def components(n, edges):
    """Sets that belong together, by union and find."""
    parent = list(range(n))

    def find(i):
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    merged = 0
    for a, b in edges:
        ra, rb = find(a), find(b)
        if ra != rb:
            parent[ra] = rb
            merged += 1
    return n - merged, [find(i) for i in range(n)]


def topological(deps):
    order, state = [], {}

    def visit(node):
        if state.get(node) == "done":
            return
        if state.get(node) == "open":
            raise ValueError(f"cycle at {node}")
        state[node] = "open"
        for before in deps.get(node, ()):
            visit(before)
        state[node] = "done"
        order.append(node)

    for node in deps:
        visit(node)
    return order


def triangles(A):
    A = A.astype(int)
    np.fill_diagonal(A, 0)
    return np.trace(A @ A @ A) // 6


def ways_of(draw, n):
    return {i: {int(j): int(draw.integers(1, 20)) for j in draw.integers(0, n, 4)} for i in range(n)}


def symmetric(a):
    return a | a.T


PROGRAMS = [
    Program(dijkstra, (6, 500, 10_000), lambda n, draw: given(ways_of(draw, n), source=0)),
    Program(floyd_warshall, (4, 16, 60), lambda n, draw: given(draw.random((n, n)) * 10)),
    Program(
        pagerank, (5, 60, 400), lambda n, draw: given({f"p{i}": [f"p{j}" for j in draw.integers(0, n, 3)] for i in range(n)})
    ),
    Program(bfs_levels, (6, 1000, 30_000), lambda n, draw: given(draw.integers(0, n, (n, 3)).tolist())),
    Program(components, (8, 1000, 50_000), lambda n, draw: given(n, draw.integers(0, n, (n, 2)).tolist())),
    Program(
        topological,
        (6, 300, 20_000),
        lambda n, draw: given({i: draw.integers(0, max(i, 1), min(i, 2)).tolist() for i in range(n)}),
    ),
    Program(triangles, (5, 60, 300), lambda n, draw: given(symmetric(draw.random((n, n)) > 0.5))),
]
