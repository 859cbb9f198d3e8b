from __future__ import annotations

import pytest

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.entity import Entity, NewEntity, merged
from embed_pipeline.domain.recipe import TextValue

OF_VERSION_0_1 = {
    ("Ada", "Person", ("She wrote programs.", "  She met Babbage. ")): (
        "Ada\nPerson\nShe wrote programs.\nShe met Babbage.",
        "6dcad32a77c2f87de86b513089375bf4",
    ),
    ("Loom", "", ()): ("Loom", "33d0fa882c35523c6b87229e26a9de74"),
    (" Löwe ", "Tier", ("", "läuft\nweit")): (
        "Löwe\nTier\nläuft\nweit",
        "8d591ce7c9070b232def1f19e19def58",
    ),
}
"""By name, type and observations: the text and its hash, as 0.1 stored them."""


@pytest.mark.parametrize(("said", "expected"), OF_VERSION_0_1.items())
def test_an_upgrade_embeds_nothing_again(
    said: tuple[str, str, tuple[str, ...]], expected: tuple[str, str]
) -> None:
    name, entity_type, observations = said
    properties: dict[str, TextValue] = {"observations": observations}
    new = NewEntity(name=name, entity_type=entity_type, properties=properties)

    entity: Entity = merged(new, None, mapping=Collection())

    assert (entity.text, entity.version) == expected
