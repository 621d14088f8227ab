"""The methods of frozen classes that replace those which attrs would generate and compile."""

from __future__ import annotations

from attrs import define, frozen

from onert.ir.value import ByIdentity, Value


@frozen
class Point(Value):
    x: int
    y: tuple[int, ...] = ()


@frozen
class Other(Value):
    x: int
    y: tuple[int, ...] = ()


@frozen(eq=False)
class Place(ByIdentity):
    x: int


@define(eq=False)
class Named(ByIdentity):
    x: int

    def __repr__(self) -> str:
        return "named"


def test_values_are_compared_hashed_and_printed_by_their_fields() -> None:
    assert Point(1, (2,)) == Point(1, (2,))
    assert hash(Point(1, (2,))) == hash(Point(1, (2,)))
    assert Point(1) != Point(2)
    assert Point(1) != Other(1)
    assert repr(Point(1, (2,))) == "Point(x=1, y=(2,))"


def test_objects_compared_by_identity_are_printed_by_their_fields() -> None:
    place = Place(1)
    assert place == place  # this is the claim
    assert place != Place(1)
    assert len({place, Place(1), place}) == 2
    assert repr(place) == "Place(x=1)"
    assert repr(Named(1)) == "named"
