"""Sessions that pinned the catalog `demo-store`, which earlier versions shipped.

Invariant: such a session opens and plans as before, and each call says that the store is gone.
"""

import shutil
import tempfile
from pathlib import Path

from lib.answers import seeds
from lib.client import modern_call, refusal_of, text_of
from lib.server import REPOSITORY, Server

CATALOG = REPOSITORY / "tests" / "catalogs" / "demo-store.yaml"
INTENT = "look at the orders of the store"


def test_a_session_that_pinned_the_store_is_told_that_it_is_gone():
    folder = Path(tempfile.mkdtemp(prefix="catalogs-"))
    data = tempfile.mkdtemp(prefix="data-")
    shutil.copy(CATALOG, folder)
    session = {"intent": INTENT, "seeds": seeds("Order", api="demo-store")}
    with Server(data=data, arguments=["--catalogs", str(folder)]) as server:
        text_of(modern_call(server.port, "plasm_context", session))
    # The next version does not offer the catalog any more; the session still has it.
    with Server(data=data) as server:
        text_of(modern_call(server.port, "plasm_context", session))
        program = {"logical_session_ref": "s0", "program": "Order.limit(1)[id]"}
        assert "plan ok" in text_of(modern_call(server.port, "plasm", program))
        answer = refusal_of(modern_call(server.port, "plasm_run", program))
        assert "the store of the demo is no longer served; open a session with the catalog `demo`" in answer
        other = {"intent": "another task", "seeds": seeds("Order", api="demo-store")}
        assert "no API `demo-store` here" in refusal_of(modern_call(server.port, "plasm_context", other))
