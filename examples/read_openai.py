"""Read one answer through the openai SDK's raw streaming response: its client, our reading."""

import os

import openai

from glmsse import ChatStream, ContentDelta, iter_events

BASE_URL = os.environ.get("GLMSSE_BASE_URL", "https://api.z.ai/api/paas/v4")
MODEL = os.environ.get("GLMSSE_MODEL", "glm-5.2")

client = openai.OpenAI(
    api_key=os.environ["ZAI_API_KEY"],
    base_url=BASE_URL,
    max_retries=0,  # a retry after a cut stream is a second generation
    default_headers={"Accept-Encoding": "identity"},
)
stream = ChatStream()
try:
    with client.chat.completions.with_streaming_response.create(
        model=MODEL, stream=True, messages=[{"role": "user", "content": "Say: Ready when you are."}]
    ) as response:
        stream.start(response.status_code, response.headers)
        for event in iter_events(response.iter_bytes(), stream):
            if isinstance(event, ContentDelta):
                print(event.text, end="", flush=True)
except openai.APIStatusError as error:  # the SDK has read the body; it says why
    stream.start(error.response.status_code, error.response.headers)
    stream.feed(error.response.content)
verdict = stream.close()
print("\n--", verdict.outcome, verdict.code or "", verdict.category or "")
raise SystemExit(0 if verdict.accepted else 1)
