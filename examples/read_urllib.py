"""Read one answer with the standard library alone."""

import json
import os
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from glmsse import ChatStream, ContentDelta, iter_events

BASE_URL = os.environ.get("GLMSSE_BASE_URL", "https://api.z.ai/api/paas/v4")
MODEL = os.environ.get("GLMSSE_MODEL", "glm-5.2")
HEADERS = {"Authorization": f"Bearer {os.environ['ZAI_API_KEY']}", "Content-Type": "application/json"}
BODY = {"model": MODEL, "stream": True, "messages": [{"role": "user", "content": "Say: Ready when you are."}]}

stream = ChatStream()
request = Request(f"{BASE_URL}/chat/completions", json.dumps(BODY).encode(), HEADERS)
try:
    response = urlopen(request, timeout=120)
except HTTPError as error:  # a response too, and its body says why
    response = error
with response:
    stream.start(response.status, response.headers)
    for event in iter_events(response, stream):
        if isinstance(event, ContentDelta):
            print(event.text, end="", flush=True)
verdict = stream.close()
print("\n--", verdict.outcome, verdict.code or "", verdict.category or "")
raise SystemExit(0 if verdict.accepted else 1)
