"""Binary structural models on a graph, many at once, whose laws are enumerated exactly.

P(v | do(x)) is the product of the conditional tables of all nodes but X (truncated factorisation);
everything else is sums and quotients of it. Axis 0 of every array is the model, then one axis per
node, of length one where the node was summed over.
"""

import numpy as np


class BinaryModels:
    """`count` models on one graph, with tables drawn from (0.05, 0.95), or `tables` as given."""

    def __init__(self, graph, count=1, seed=0, tables=None):
        self.nodes = list(graph.nodes)
        generator = np.random.default_rng(seed)
        self.factors = {}
        for node in self.nodes:
            parents = list(graph.predecessors(node))
            shape = [count] + [2 if n in parents else 1 for n in self.nodes]
            one = generator.uniform(0.05, 0.95, shape)
            if tables is not None:  # P(node = 1), of the parents' values
                values = np.meshgrid(*(np.arange(s) for s in shape[1:]), indexing="ij")
                known = {n: values[self.nodes.index(n)] for n in parents}
                table = tables[node]
                one = np.broadcast_to(table(known) if known else table, shape[1:])[None]
            axis = self._axis(node)
            self.factors[node] = np.concatenate([1 - one, one], axis=axis)

    def _axis(self, node):
        return 1 + self.nodes.index(node)

    def total(self, array, over):
        return array.sum(axis=tuple(self._axis(node) for node in over), keepdims=True)

    def law(self, y, do=(), given=()):
        """P(y | do(·), given) over all values of all of them."""
        joint = np.ones([1] * (1 + len(self.nodes)))
        for node, factor in self.factors.items():
            if node not in do:
                joint = joint * factor
        kept = {*y, *do, *given}
        joint = self.total(joint, [node for node in self.nodes if node not in kept])
        return joint / self.total(joint, y)

    def gaps(self, left, right):
        """The largest difference of both sides over all values, for each model."""
        difference = np.abs(left - right)
        return np.nanmax(difference.reshape(len(difference), -1), axis=1)
