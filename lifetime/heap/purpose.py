"""What a training keeps on purpose: its modules and parameters, the optimizer's state, and what each step replaces in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lifetime.heap.graph import EdgeKind, NodeKind
from lifetime.heap.growth import FEWEST_BIRTHS
from lifetime.heap.model import Leaking
from lifetime.heap.references import is_namespace
from lifetime.heap.status import REGISTERED, SCRIPTED, Status, inspect, is_optimizer, is_parameter
from lifetime.heap.trunk import Trunk

_LIMITING = "torch.optim.lbfgs."
"""Its `history_size` limits the lists that it keeps for a parameter, as a rule to more than the steps of a trace."""
_STATE: Status = (Leaking.NO, "an optimizer's state lives as long as its parameters")


class Purpose:
    """Asked for the nodes of a trunk from the roots down. `born`: the step of birth of each storage that is a candidate."""

    def __init__(self, trunk: Trunk, born: Mapping[int, int]) -> None:
        self._trunk = trunk
        self._born = born
        self._fresh = self._made_in_one_step()
        self._states: set[int] = set()
        self._limited_states: set[int] = set()

    def status(self, node: int) -> Status:
        """What the inspectors say, and what only the place in the chain shows: a class that is no root goes by no name in its
        module, so something made it and keeps it."""
        trunk = self._trunk
        above = trunk.above(node)
        if above is not None and self._is_state(node, above):
            return _STATE
        root = trunk.root_of(node).kind if above is None else None
        is_unnamed = above is not None and trunk.node(node).kind is NodeKind.CLASS
        return inspect(trunk.node(node), root, is_unnamed or node in self._fresh)

    def replaces(self, node: int) -> bool:
        """Whether the reference to `node` is one that is set anew on purpose: an old leaf's `.grad`, an optimizer's state, an item
        of a container with a limit."""
        above = self._trunk.above(node)
        if above is None:
            return False
        return self.is_limited(above) or above in self._states or self._is_old_gradient(node, above)

    def is_limited(self, container: int) -> bool:
        """Whether it has a limit of its own, or one that its optimizer gives it."""
        entry = self._trunk.above(container)
        state = self._trunk.above(entry) if entry is not None else None
        return self._trunk.node(container).bound is not None or state in self._limited_states

    def _is_state(self, node: int, above: int) -> bool:
        """An optimizer's state, and what it holds for each parameter: made when a parameter is stepped first, which for an expert
        of a mixture may be late."""
        if above in self._states:
            return self._trunk.node(node).kind is NodeKind.OBJECT
        name = self._trunk.edge[node].name.strip("[].'")
        holder = self._owner(above)
        if name != "state" or holder is None or holder in self._fresh or not is_optimizer(self._trunk.node(holder)):
            return False
        self._states.add(node)
        if self._trunk.node(holder).type_name.startswith(_LIMITING):
            self._limited_states.add(node)
        return True

    def _owner(self, node: int) -> int | None:
        """The object whose dictionary of attributes the node is, else the node."""
        edge = self._trunk.edge.get(node)
        return self._trunk.above(node) if edge is not None and is_namespace(edge) else node

    def _is_old_gradient(self, node: int, leaf: int) -> bool:
        if self._trunk.edge[node].kind is not EdgeKind.GRAD:
            return False
        graph = self._trunk.graph
        return not any(graph.target[number] in self._born for number in graph.leaving(leaf))

    def is_registered(self, tensor: int) -> bool:
        """Whether a module's own dictionary of parameters or buffers, or its C++ half, is what holds it."""
        table = self._trunk.above(tensor)
        if table is not None and self._trunk.node(table).type_name == SCRIPTED:
            return True
        edge = self._trunk.edge.get(table) if table is not None else None
        return edge is not None and any(name in edge.name for name in REGISTERED)

    def _made_in_one_step(self) -> set[int]:
        """Modules, parameters and optimizers whose own storages all come from one watched step: made in it, not by the program's
        set-up."""
        own = [storage for storage in self._born if self._is_own(storage)]
        steps = self._steps_above(self._born)
        optimizers = {node: seen for node, seen in steps.items() if is_optimizer(self._trunk.node(node))}
        hollow = {node for node in _single(steps) if self._is_hollow(node)}
        return _single(self._steps_above(own)) | _fresh_optimizers(optimizers) | hollow

    def _is_hollow(self, node: int) -> bool:
        """A module that has nothing of its own, and that is no part of another: all that hangs on it tells when it was made."""
        table = self._trunk.above(node)
        edge = self._trunk.edge.get(table) if table is not None else None
        return self._trunk.node(node).is_hollow and (edge is None or "_modules" not in edge.name)

    def _is_own(self, storage: int) -> bool:
        """Whether it is a parameter's, or one that a module registered."""
        tensor = self._trunk.above(storage)
        return tensor is not None and (is_parameter(self._trunk.node(tensor)) or self.is_registered(tensor))

    def _steps_above(self, storages: Iterable[int]) -> dict[int, set[int]]:
        """For each node the steps of birth of those storages that lie below it."""
        steps: dict[int, set[int]] = {}
        for storage in storages:
            step = self._born[storage]
            for node in self._holders(storage):
                if step in steps.setdefault(node, set()):
                    break
                steps[node].add(step)
        return steps

    def _holders(self, node: int) -> Iterable[int]:
        above = self._trunk.above(node)
        while above is not None:
            yield above
            above = self._trunk.above(above)


def _single(steps: Mapping[int, set[int]]) -> set[int]:
    return {node for node, seen in steps.items() if len(seen) == 1}


def _fresh_optimizers(steps: Mapping[int, set[int]]) -> set[int]:
    """Optimizers whose state was all made in one step, where so many steps made one that an expert's late first step is not it."""
    fresh = _single(steps)
    return fresh if len({step for node in fresh for step in steps[node]}) >= FEWEST_BIRTHS else set()
