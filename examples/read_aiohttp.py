"""Read one answer with aiohttp, under deadlines."""

import asyncio
import os

import aiohttp

from glmsse import ChatStream, ContentDelta, Deadlines, Verdict, aiter_events

BASE_URL = os.environ.get("GLMSSE_BASE_URL", "https://api.z.ai/api/paas/v4")
MODEL = os.environ.get("GLMSSE_MODEL", "glm-5.2")
HEADERS = {"Authorization": f"Bearer {os.environ['ZAI_API_KEY']}", "Accept-Encoding": "identity"}
BODY = {"model": MODEL, "stream": True, "messages": [{"role": "user", "content": "Say: Ready when you are."}]}
DEADLINES = Deadlines(first_byte=120, idle=60, total=600)


async def ask() -> Verdict:
    stream = ChatStream()
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        session.post(f"{BASE_URL}/chat/completions", headers=HEADERS, json=BODY) as response,
    ):
        stream.start(response.status, response.headers)
        async for event in aiter_events(response.content.iter_any(), stream, DEADLINES):
            if isinstance(event, ContentDelta):
                print(event.text, end="", flush=True)
    return stream.close()


verdict = asyncio.run(ask())
print("\n--", verdict.outcome, verdict.code or "", verdict.category or "")
raise SystemExit(0 if verdict.accepted else 1)
