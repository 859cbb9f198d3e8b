"""The file of a proposal: YAML for EMBED_CONFIG, with what is worth knowing as comments."""

from __future__ import annotations

from embed_pipeline.ports.graph_survey import COUNTED, SAMPLE
from embed_pipeline.usecases.adopt.propose import Proposal, ProposedCollection

_NO_TEXT = ("true", "false", "yes", "no", "on", "off", "y", "n", "null")
"""Words that YAML would not read as text."""


def as_yaml(proposal: Proposal) -> str:
    lines = [
        f"# Proposed from a sample of {SAMPLE:,} nodes of each label. Read it, and change what you"
        " know better.",
        "collections:",
    ]
    for one in proposal.collections:
        lines += _yaml_lines(one)
    return "\n".join(lines) + "\n"


def _yaml_lines(one: ProposedCollection) -> list[str]:
    certain = (
        "" if one.key_is_certain else f"  # unique in the sample; above {COUNTED:,} not counted"
    )
    lines = [
        f"  # {one.entities:,} nodes, about {one.tokens:,} tokens",
        f"  - name: {_word(one.name)}",
        f"    label: {_word(one.label)}",
        f"    key: {_word(one.key)}{certain}",
        f"    key_type: {one.key_type}",
        f"    name_property: {_word(one.name_property)}",
        f"    type: {_word(one.label)}",
        "    text:",
        *(f"      - {_word(name)}" for name in one.properties),
    ]
    for part in one.neighbours:
        lines += [
            f'      - path: "{part}"',
            f"        properties: [{', '.join(map(_word, part.properties))}]",
            f"        heading: {part.heading}",
            f"        limit: {part.limit}",
        ]
    if one.html:
        lines.append(f"    format: {{{', '.join(f'{_word(name)}: html' for name in one.html)}}}")
    if one.valid_to:
        lines.append(f"    valid_to: {_word(one.valid_to)}")
    return lines


def _word(name: str) -> str:
    return f'"{name}"' if name.lower() in _NO_TEXT else name
