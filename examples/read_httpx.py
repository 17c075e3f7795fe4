"""Read one answer with httpx: show it as it comes, then trust the verdict only."""

import os

import httpx

from glmsse import ChatStream, ContentDelta, iter_events

BASE_URL = os.environ.get("GLMSSE_BASE_URL", "https://api.z.ai/api/paas/v4")
MODEL = os.environ.get("GLMSSE_MODEL", "glm-5.2")
HEADERS = {"Authorization": f"Bearer {os.environ['ZAI_API_KEY']}", "Accept-Encoding": "identity"}
BODY = {"model": MODEL, "stream": True, "messages": [{"role": "user", "content": "Say: Ready when you are."}]}

stream = ChatStream()
timeout = httpx.Timeout(10, read=120)  # a read that blocks is for the client to break off
with httpx.stream("POST", f"{BASE_URL}/chat/completions", headers=HEADERS, json=BODY, timeout=timeout) as response:
    stream.start(response.status_code, response.headers)
    for event in iter_events(response.iter_bytes(), stream):
        if isinstance(event, ContentDelta):
            print(event.text, end="", flush=True)
verdict = stream.close()
print("\n--", verdict.outcome, verdict.code or "", verdict.category or "")
raise SystemExit(0 if verdict.accepted else 1)
