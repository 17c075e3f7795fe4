"""Read one answer with httpx and asyncio, under deadlines."""

import asyncio
import os

import httpx

from glmsse import ChatStream, ContentDelta, Deadlines, Verdict, aiter_events

BASE_URL = os.environ.get("GLMSSE_BASE_URL", "https://api.z.ai/api/paas/v4")
MODEL = os.environ.get("GLMSSE_MODEL", "glm-5.2")
HEADERS = {"Authorization": f"Bearer {os.environ['ZAI_API_KEY']}", "Accept-Encoding": "identity"}
BODY = {"model": MODEL, "stream": True, "messages": [{"role": "user", "content": "Say: Ready when you are."}]}
DEADLINES = Deadlines(first_byte=120, idle=60, total=600)


async def ask() -> Verdict:
    stream = ChatStream()
    url = f"{BASE_URL}/chat/completions"
    async with (
        httpx.AsyncClient(timeout=httpx.Timeout(None, connect=10)) as client,
        client.stream("POST", url, headers=HEADERS, json=BODY) as response,
    ):
        stream.start(response.status_code, response.headers)
        async for event in aiter_events(response.aiter_bytes(), stream, DEADLINES):
            if isinstance(event, ContentDelta):
                print(event.text, end="", flush=True)
    return stream.close()


verdict = asyncio.run(ask())
print("\n--", verdict.outcome, verdict.code or "", verdict.category or "")
raise SystemExit(0 if verdict.accepted else 1)
