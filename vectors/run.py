"""Runs the vectors against a package: `python vectors/run.py [--package glmsse] [--build compiled|pure] [FILE …]`.

One file, standard library only, Python 3.9 and later. `--package` takes any importable name, a vendored one too. Each
vector is read whole, one byte at a time and, if it is short, at every single cut; all must give what the vector
expects. Exit 1 on any difference. README.md beside this file says what the members of a vector mean.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import sys
from base64 import b64decode
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MOST_FOR_ALL_CUTS = 256
TEXT_MEMBERS = {"tool_call.arguments.delta": "arguments", "content.delta": "text", "reasoning.delta": "text"}
USAGE_MEMBERS = ("prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens")
VERDICT_MEMBERS = ("outcome", "stage", "code", "missing", "tolerated", "finish_reason", "done", "replay")
REPORT_MEMBERS = ("category", "provider_code", "request_id", "retry_after", "digest")
AS_ARGUMENTS = {"bad_json": "arguments_not_json", "invalid_utf8": None}


def load(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """The vectors of these files, one JSON object a line."""
    return [json.loads(line) for path in paths for line in path.read_text("ascii").split("\n") if line]


def body_of(vector: dict[str, Any]) -> bytes:
    if "body_base64" in vector:
        return b64decode(vector["body_base64"])
    text: str = vector["body"]
    return text.encode("utf-8")


def cuttings(body: Any, *, all_cuts: bool) -> Iterator[tuple[str, list[Any]]]:
    """The body in one piece, in pieces of one byte (or character), and at every single cut."""
    yield "whole", [body]
    yield "in single pieces", [body[at : at + 1] for at in range(len(body))]
    if all_cuts or len(body) <= MOST_FOR_ALL_CUTS:
        for at in range(1, len(body)):
            yield f"cut at {at}", [body[:at], body[at:]]


def lean(record: dict[str, Any]) -> dict[str, Any]:
    """Without what is null, false or an empty list, and without choice 0: a vector leaves these out."""
    kept = {key: list(value) if isinstance(value, tuple) else value for key, value in record.items()}
    return {
        key: value
        for key, value in kept.items()
        if value is not None and value is not False and value != [] and (key, value) != ("choice", 0)
    }


def error_record(error: Any) -> dict[str, Any]:
    record = error.to_dict()
    del record["stage"]
    return lean(record)


def event_record(event: Any) -> dict[str, Any]:
    record = event.to_dict()
    if record["type"] == "failed":
        return {"type": "failed", "code": record["error"]["code"]}
    record.pop("raw", None)
    return lean(record)


def call_record(call: Any) -> dict[str, Any]:
    return lean({key: getattr(call, key) for key in ("choice", "index", "id", "name", "arguments", "complete")})


def choice_record(choice: Any) -> dict[str, Any]:
    record = {key: getattr(choice, key) for key in ("index", "content", "reasoning_content", "finish_reason")}
    record["tool_calls"] = [call_record(call) for call in choice.tool_calls]
    return lean({key: value for key, value in record.items() if value != ""})


def verdict_record(verdict: Any) -> dict[str, Any]:
    record = {key: getattr(verdict, key) for key in (*VERDICT_MEMBERS, *REPORT_MEMBERS)}
    if verdict.error is not None:
        record["error"] = error_record(verdict.error)
    if verdict.usage is not None:
        record["usage"] = lean({key: getattr(verdict.usage, key) for key in USAGE_MEMBERS})
    record["tool_calls"] = [call_record(call) for call in verdict.tool_calls]
    return lean(record)


class Reader:
    """Reads vectors with one package."""

    def __init__(self, package: Any) -> None:
        self._package = package

    def read(self, vector: dict[str, Any], pieces: list[Any]) -> dict[str, Any]:
        """What the package makes of these pieces, in the shape of `expect`."""
        read: dict[str, Any] = getattr(self, "_read_" + vector["layer"])(vector, pieces)
        return read

    def differences(self, vector: dict[str, Any], *, all_cuts: bool) -> Iterator[tuple[str, dict[str, Any]]]:
        """The cuttings whose outcome is not the expected one, each with that outcome."""
        body: Any = body_of(vector)
        if vector["layer"] == "glm_text":
            body = body.decode("utf-8")
        for how, pieces in cuttings(body, all_cuts=all_cuts):
            got = self.read(vector, pieces)
            # As JSON text, so that 1, 1.0 and true are told apart.
            if json.dumps(got, sort_keys=True) != json.dumps(vector["expect"], sort_keys=True):
                yield how, got

    def _limits(self, vector: dict[str, Any]) -> Any:
        return self._package.Limits(**vector["limits"]) if "limits" in vector else None

    def _read_framing(self, vector: dict[str, Any], pieces: list[bytes]) -> dict[str, Any]:
        framer = self._package.SSEFramer(self._limits(vector), errors=vector.get("errors", "strict"))
        events: list[Any] = []
        error = None
        try:
            for piece in pieces:
                events += framer.feed(piece)
            events += framer.close()
        except self._package.GlmsseError as fault:
            events += fault.events
            error = error_record(fault)
        records = [event.to_dict() for event in events]
        for record in records:
            for key, usual in (("event", "message"), ("id", ""), ("retry", None)):
                if record[key] == usual:
                    del record[key]
        return {"events": records} if error is None else {"events": records, "error": error}

    def _read_chat(self, vector: dict[str, Any], pieces: list[bytes]) -> dict[str, Any]:
        options = dict(vector.get("options", {}))
        if "content_parser" in options:
            options["content_parser"] = self._package.ToolCallParser(**options["content_parser"])
        stream = self._package.ChatStream(
            vector.get("profile", "zai"),
            allow=vector.get("allow", ()),
            deny=vector.get("deny", ()),
            limits=self._limits(vector),
            **options,
        )
        events = []
        if "start" in vector:
            events += stream.start(vector["start"]["status"], vector["start"]["headers"])
        for piece in pieces:
            events += stream.feed(piece)
        verdict = stream.close(vector.get("close"))
        events += stream.closing_events
        return {
            "events": [event_record(event) for event in events],
            "choices": [choice_record(choice) for choice in stream.snapshot.choices],
            "verdict": verdict_record(verdict),
        }

    def _read_json(self, vector: dict[str, Any], pieces: list[bytes]) -> dict[str, Any]:
        """As the data of one event; where that can be, also as the arguments of a tool call, which must agree."""
        text = b"".join(pieces)
        wire = b"data: " + re.sub(rb"\r\n|\r|\n", b"\ndata: ", text) + b"\n\n"
        value = code = None
        try:
            value = self._package.SSEFramer().feed(wire)[0].json()
        except self._package.GlmsseError as fault:
            code = fault.code
        if code != "invalid_utf8":
            wanted = AS_ARGUMENTS.get(code, code) if code else None if type(value) is dict else "arguments_not_object"
            if not text.strip(b" \t\n\r"):
                wanted = "arguments_empty"
            if self._code_as_arguments(text.decode("utf-8")) != wanted:
                return {"code": code, "as_arguments": self._code_as_arguments(text.decode("utf-8"))}
        return {"value": value} if code is None else {"code": code}

    def _code_as_arguments(self, arguments: str) -> Any:
        call = {"id": "c", "function": {"name": "f", "arguments": arguments}}
        chunk = {
            "choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}],
            "usage": dict.fromkeys(USAGE_MEMBERS[:3], 1),
        }
        stream = self._package.ChatStream()
        stream.feed(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode())
        return stream.close().code

    def _read_glm_text(self, vector: dict[str, Any], pieces: list[str]) -> dict[str, Any]:
        parser = self._package.ToolCallParser(limits=self._limits(vector), **vector.get("options", {}))
        events = [event for piece in pieces for event in parser.feed(piece)]
        events += parser.close(vector.get("close", "stop"))
        return {"events": joined(events), "flags": [list(flag) for flag in parser.flags]}


def joined(events: Iterable[Any]) -> list[dict[str, Any]]:
    """Event records with adjacent pieces of the same text as one: where raw text is cut only changes the pieces."""
    made: list[dict[str, Any]] = []
    for record in map(event_record, events):
        member = TEXT_MEMBERS.get(record["type"])
        last = made[-1] if made else {}
        if member and last.get("type") == record["type"] and last.get("index") == record.get("index"):
            last[member] += record[member]
        else:
            made.append(record)
    return made


def import_package(name: str, build: str | None) -> Any:
    """The package, in the build asked for; SystemExit if that is not there."""
    if build is not None:
        os.environ["GLMSSE_PURE_PYTHON"] = "1" if build == "pure" else "0"
    package = importlib.import_module(name)
    if build is not None and build != package.IMPLEMENTATION:
        raise SystemExit(f"the {build} build of {name} was asked for, but it is the {package.IMPLEMENTATION} one")
    return package


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, help="vector files (default: all beside this script)")
    parser.add_argument("--package", default="glmsse", help="importable name of the package (default: glmsse)")
    parser.add_argument("--build", choices=("compiled", "pure"), help="build that must be used (default: any)")
    parser.add_argument("--all-cuts", action="store_true", help="every single cut of long vectors too (default: not)")
    args = parser.parse_args(argv)
    vectors = load(args.files or sorted(HERE.glob("*.jsonl")))
    package = import_package(args.package, args.build)
    reader = Reader(package)
    counts: Counter[tuple[str, str]] = Counter()
    failed = 0
    for vector in vectors:
        counts[vector["layer"], vector["name"][0]] += 1
        found = list(reader.differences(vector, all_cuts=args.all_cuts))
        if found:
            failed += 1
            how, got = found[0]
            print(f"DIFFERENT {vector['name']} ({len(found)} cuttings, first: {how})")
            print(f"  expected {json.dumps(vector['expect'])}")
            print(f"  got      {json.dumps(got)}")
    for layer in sorted({layer for layer, _ in counts}):
        kinds = ", ".join(f"{counts[layer, kind]} {kind}_" for kind in "yni")
        print(f"{layer:10} {kinds}")
    version = ".".join(map(str, sys.version_info[:3]))
    print(f"{len(vectors)} vectors, {failed} different: {args.package} ({package.IMPLEMENTATION}) on ", end="")
    print(f"{sys.implementation.name} {version}")
    return 1 if failed or not vectors else 0


if __name__ == "__main__":
    sys.exit(main())
