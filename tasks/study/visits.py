"""Which episodes an outer update sees: those of every family in seeded permutations, with new inputs."""

from collections.abc import Sequence

from tasks.programs import Episode, Family, Group, episodes, stream


class Visits:
    """The order of a training, a function of its seed and the update number alone (ours).

    An update has as many episodes of one family as of the other; a family's episodes come once each before
    any comes again, and then with inputs of another draw.
    """

    def __init__(self, groups: Sequence[Group], per_update: int, seed: int) -> None:
        self._episodes = {
            family: episodes([group for group in groups if group.family is family]) for family in Family
        }
        self._each, self._seed = per_update // len(Family), seed

    def of(self, update: int) -> list[Episode]:
        """The episodes of an update, families in turn."""
        places = range(update * self._each, (update + 1) * self._each)
        return [self._at(family, place) for place in places for family in Family]

    def _at(self, family: Family, place: int) -> Episode:
        known = self._episodes[family]
        visit, within = divmod(place, len(known))
        order = stream(self._seed, "visits", family, visit).permutation(len(known))
        chosen = known[int(order[within])]
        return Episode(chosen.group, chosen.recipe, draw=visit + 1)
