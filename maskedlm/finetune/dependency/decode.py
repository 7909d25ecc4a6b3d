"""The best dependency tree of a sentence, by the algorithm of Chu-Liu/Edmonds.

The tree with the highest sum of its arcs' scores, among all trees with exactly
one root, crossing arcs included (Edmonds 1967; McDonald et al. 2005,
aclanthology.org/H05-1066).

From a word on, the best arc into each is followed to its head. Where that leads
to a cycle, the words of the cycle become one node, and each arc into a word of
it loses the score of the cycle's arc into that word, which it would replace. In
the end one node holds all words. The best arc from the root into it is then
taken, and each node undone: of its cycle, the arc is left out that meets the
one from outside. As the root is left for the end, it has one dependent, without
a large constant on its scores (cf. Zmigrod, Vieira and Cotterell 2020,
arXiv:2010.02550).

Each node keeps an array of its arcs, so a sentence much longer than a row, of
which only nearby words have arcs, takes little memory.
"""

import itertools

import numpy as np

# The score of an arc between neighbours that have none, such as words that no
# row of the encoder holds both of: lower than any log-probability.
_FAR = -1e6


def best_tree(dependents, heads, scores, roots) -> list[int]:
  """Returns the head of each of N words in the best tree; -1 for the root.

  Neighbouring words may always be linked; where they have no arc, only if there
  is no other tree.

  Args:
    dependents, heads: int [E], the two words of each arc, from 0.
    scores: [E], those of the arcs, above -1e6.
    roots: [N], the scores of each word as the root.
  """
  count = len(roots)
  dependents, heads, scores = _with_neighbours(count, dependents, heads, scores)
  order = np.argsort(dependents, kind="stable")
  dependents, heads, scores = dependents[order], heads[order], scores[order]
  bounds = np.searchsorted(dependents, np.arange(count + 1))
  # Of each node; the first N are the words, the others the cycles.
  arcs = [np.arange(a, b) for a, b in itertools.pairwise(bounds)]
  words = [np.array([i]) for i in range(count)]
  root = [(float(score), i) for i, score in enumerate(roots)]
  chosen: dict[int, int] = {}  # The best arc into each node.
  parent: dict[int, int] = {}  # The node that each is part of.
  cycles: dict[int, list[int]] = {}
  node_of = np.arange(count)  # The outermost node of each word.
  path, place = [0], {0: 0}
  while len(arcs[path[-1]]):  # The node doesn't hold all words.
    node = path[-1]
    best = int(arcs[node][scores[arcs[node]].argmax()])
    chosen[node] = best
    before = int(node_of[heads[best]])
    if before not in place:
      place[before] = len(path)
      path.append(before)
      continue
    begin, merged = place[before], len(arcs)
    cycle, path = path[begin:], path[:begin]
    for inner in cycle:
      parent[inner] = merged
      lost = scores[chosen[inner]]
      scores[arcs[inner]] -= lost
      root[inner] = (root[inner][0] - lost, root[inner][1])
    cycles[merged] = cycle
    words.append(np.concatenate([words[inner] for inner in cycle]))
    node_of[words[merged]] = merged
    into = np.concatenate([arcs[inner] for inner in cycle])
    arcs.append(into[node_of[heads[into]] != merged])
    root.append(max(root[inner] for inner in cycle))
    place[merged] = begin
    path.append(merged)
  _, first = root[path[-1]]
  tree = [-1] * count
  stack = [(path[-1], first, -1)]
  while stack:
    node, inner, head = stack.pop()
    tree[inner] = head
    # From the word outwards: the arc from outside meets each cycle there.
    while inner != node:
      others = (x for x in cycles[parent[inner]] if x != inner)
      arcs_kept = ((x, chosen[x]) for x in others)
      stack += [(x, int(dependents[a]), int(heads[a])) for x, a in arcs_kept]
      inner = parent[inner]
  return tree


def _with_neighbours(count: int, dependents, heads, scores):
  """Returns the arcs, and those between neighbours that lack them."""
  dependents, heads = (np.asarray(x, np.int64) for x in (dependents, heads))
  places = np.arange(count - 1)
  new_dependents = np.concatenate([places, places + 1])
  new_heads = np.concatenate([places + 1, places])
  is_new = ~np.isin(
    new_dependents * count + new_heads, dependents * count + heads
  )
  return (
    np.concatenate([dependents, new_dependents[is_new]]),
    np.concatenate([heads, new_heads[is_new]]),
    np.concatenate([np.asarray(scores, float), np.full(is_new.sum(), _FAR)]),
  )
