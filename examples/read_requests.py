"""Read one answer with requests."""

import os

import requests

from glmsse import ChatStream, ContentDelta, iter_events

BASE_URL = os.environ.get("GLMSSE_BASE_URL", "https://api.z.ai/api/paas/v4")
MODEL = os.environ.get("GLMSSE_MODEL", "glm-5.2")
HEADERS = {"Authorization": f"Bearer {os.environ['ZAI_API_KEY']}", "Accept-Encoding": "identity"}
BODY = {"model": MODEL, "stream": True, "messages": [{"role": "user", "content": "Say: Ready when you are."}]}

stream = ChatStream()
url = f"{BASE_URL}/chat/completions"
with requests.post(url, headers=HEADERS, json=BODY, stream=True, timeout=(10, 120)) as response:
    stream.start(response.status_code, response.headers)
    # For a body that is not chunked, iter_content(None) waits for its end; response.raw does not.
    for event in iter_events(response.iter_content(None), stream):
        if isinstance(event, ContentDelta):
            print(event.text, end="", flush=True)
verdict = stream.close()
print("\n--", verdict.outcome, verdict.code or "", verdict.category or "")
raise SystemExit(0 if verdict.accepted else 1)
