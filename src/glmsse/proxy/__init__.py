"""The proxy (extra `proxy`): forwards streamed answers byte for byte, with a verdict on each, and stops bad ones.

`settings` and `tap` need nothing beyond the package; `app` needs Starlette, httpx and prometheus-client.
"""
