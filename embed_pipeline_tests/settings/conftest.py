from __future__ import annotations

from collections.abc import Iterator

import pytest

from embed_pipeline.telemetry import redaction


@pytest.fixture(autouse=True, scope="module")
def forget_secrets_afterwards() -> Iterator[None]:
    """Registered secrets live as long as the process; other tests must not meet ours."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redaction, "_spellings", set(redaction._spellings))
        patch.setattr(redaction, "_registered", redaction._registered)
        yield
