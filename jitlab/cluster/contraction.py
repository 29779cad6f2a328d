"""A directed graph without cycles whose edges are contracted one by one, without ever making a cycle.

Groups stand in a list that respects every edge (`_label` grows along it). An edge a -> b can be contracted when no other path
leads from a to b; the search for one goes from both ends at once and sees only what stands between a and b. What a finished
search has passed moves out from between them, and a path once found is remembered with each group on it, so that neither is
walked again: with the small-into-large merging of edges, 50 000 nodes take about a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

SPACE = 1 << 256  # between neighbours of a fresh list
SHARE = 1 << 16  # a move takes this part of a gap: 16 moves nested into each other before the list is spaced again


class Contraction:
    """Groups of the nodes 0..n-1; the nodes are given in an order that respects every edge, so an edge goes upwards."""

    def __init__(self, count: int, edges: Iterable[tuple[int, int]]) -> None:
        self._parent = list(range(count))
        self._after: list[dict[int, None]] = [{} for _ in range(count)]  # dicts keep the order edges were met in
        self._before: list[dict[int, None]] = [{} for _ in range(count)]
        for a, b in edges:
            assert a < b, "nodes come in an order that respects every edge"
            self._after[a][b] = None
            self._before[b][a] = None
        self._next = [*range(1, count + 1), 0]  # the last entry is the list's head and tail
        self._previous = [count, *range(count)]
        self._label = [(i + 1) * SPACE for i in range(count)] + [0]
        self._leads_to: list[dict[int, int]] = [{} for _ in range(count)]  # target -> {a group on a path to it: the next one}

    def group(self, node: int) -> int:
        """The node that stands for the node's group."""
        parent = self._parent
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    def from_last(self) -> list[int]:
        """The groups now, consumers before their producers."""
        result = []
        group = self._previous[-1]
        while group != len(self._parent):
            result.append(group)
            group = self._previous[group]
        return result

    def consumers(self, group: int) -> Sequence[int]:
        return tuple(self._after[group])

    def producers(self, group: int) -> Sequence[int]:
        return tuple(self._before[group])

    def contract(self, a: int, b: int) -> bool:
        """Make a and b one group, unless another path leads from a to b."""
        found = self._search(a, b)
        if found is None:
            return False
        downstream, passed = found
        place = b if downstream else a
        self._move(passed, place, downstream)
        self._merge(a, b, place)
        return True

    def other_path(self, a: int, b: int, most: int) -> list[int] | None:
        """The groups between a and b on a path other than their edge, at most `most` of them; None if there is no such path."""
        if self._search(a, b) is not None:
            return None
        known = self._leads_to[b]
        here = next(group for group in self._after[a] if group in known and group != b)
        path = [here]
        while len(path) < most:
            here = known[here]  # perhaps in a larger group by now, but the path leads on from it
            group = self.group(here)
            if group == b:
                break
            if group != path[-1]:
                path.append(group)
        return path

    def _search(self, a: int, b: int) -> tuple[bool, list[int]] | None:
        """None: another path leads from a to b, and its groups are in `_leads_to[b]`. Else what the search from one end passed:
        (True, what follows a and stands before b) or (False, what leads to b and stands after a)."""
        after, before, known = self._after, self._before, self._leads_to[b]
        if len(after[a]) == 1:
            return True, []
        if len(before[b]) == 1:
            return False, []
        down: dict[int, int] = {}  # reached from a: group -> the one it was reached from
        up: dict[int, int] = {}  # reached from b: group -> the one it leads to
        low, high = self._label[a], self._label[b]
        forwards, backwards = self._walk(a, after, down, low, high), self._walk(b, before, up, low, high)
        while True:
            group = next(forwards, None)
            if group is None:
                return True, list(down)
            if group >= 0 and (group in up or group in known or b in after[group]):
                break
            group = next(backwards, None)
            if group is None:
                return False, list(up)
            if group >= 0 and (group in down or a in before[group]):
                break
        here = group  # where the two searches met
        while here not in known:
            there = up.get(here, b)
            known[here] = there
            if there == b:
                break
            here = there
        here = group
        while here in down and down[here] != a:
            known.setdefault(down[here], here)
            here = down[here]
        return None

    def _walk(self, start: int, edges: list[dict[int, None]], seen: dict[int, int], low: int, high: int) -> Iterator[int]:
        """One edge a step: the group it is the first to reach, or -1. Only what stands between the two ends is entered."""
        label = self._label
        stack = [start]
        while stack:
            here = stack.pop()
            for there in edges[here]:
                if there not in seen and low < label[there] < high:
                    seen[there] = here
                    stack.append(there)
                    yield there
                else:
                    yield -1

    def _move(self, groups: list[int], place: int, after: bool) -> None:
        """Put groups, in the order they have, right after (or right before) `place`."""
        if not groups:
            return
        label, following, previous = self._label, self._next, self._previous
        groups.sort(key=label.__getitem__)
        for group in groups:
            p, n = previous[group], following[group]
            following[p], previous[n] = n, p
        left, right = (place, following[place]) if after else (previous[place], place)
        low = label[left]
        high = label[right] if right != len(self._parent) else low + SPACE
        step = max((high - low) // (SHARE * (len(groups) + 1)), 1)
        if (len(groups) + 1) * step >= high - low:
            step = 0
        for k, group in enumerate(groups):
            following[left], previous[group] = group, left
            left = group
            label[group] = high - step * (len(groups) - k) if after else low + step * (k + 1)
        following[left], previous[right] = right, left
        if not step:
            self._space_again()

    def _space_again(self) -> None:
        group, position = self._next[-1], SPACE
        while group != len(self._parent):
            self._label[group] = position
            group, position = self._next[group], position + SPACE

    def _merge(self, a: int, b: int, place: int) -> None:
        after, before = self._after, self._before
        del after[a][b], before[b][a]
        size_a, size_b = (len(after[g]) + len(before[g]) for g in (a, b))
        kept, gone = (a, b) if size_a > size_b else (b, a)
        for other in after[gone]:
            del before[other][gone]
            before[other][kept] = None
            after[kept][other] = None
        for other in before[gone]:
            del after[other][gone]
            after[other][kept] = None
            before[kept][other] = None
        after[gone], before[gone] = {}, {}
        more, fewer = self._leads_to[kept], self._leads_to[gone]
        if len(more) < len(fewer):
            more, fewer = fewer, more
        more.update(fewer)
        self._leads_to[kept], self._leads_to[gone] = more, {}
        self._parent[gone] = kept
        self._unlink(a if place == b else b)
        if place != kept:
            self._replace(place, kept)

    def _unlink(self, group: int) -> None:
        p, n = self._previous[group], self._next[group]
        self._next[p], self._previous[n] = n, p

    def _replace(self, old: int, new: int) -> None:
        """Put `new`, which is not in the list, where `old` was."""
        p, n = self._previous[old], self._next[old]
        self._next[p], self._previous[n] = new, new
        self._previous[new], self._next[new] = p, n
        self._label[new] = self._label[old]
