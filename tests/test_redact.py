"""Redaction: no word of the answer is left, and no reader can tell from its own behaviour."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import RECORDINGS
from glmsse import ChatStream, MisuseError, Verdict
from glmsse.__main__ import main
from glmsse.capture import Reading, Recorder, Recording, Sidecar, Terminal
from glmsse.capture import protocol_words as protocol
from glmsse.capture.redact import CannotRedact, redact
from glmsse.scenarios import SCENARIOS, body, finish, reasoning, text, tool_piece
from wire import each_byte

CASES = json.loads((Path(__file__).parent / "data" / "stream_cases.json").read_text())
READINGS = ("zai", "gateway")
WORD = re.compile(r"[^\W\d_]{4,}")


def _bodies() -> Iterator[tuple[str, bytes]]:
    for name, scenario in SCENARIOS.items():
        yield name, scenario.body
    for case in CASES:
        sent = case["body"]
        yield case["id"], sent["text"].encode() if "text" in sent else sent["latin1"].encode("latin-1")
    if RECORDINGS.is_dir():
        for path in sorted(RECORDINGS.glob("*.sse")):
            yield path.name, path.read_bytes()


BODIES = dict(_bodies())
REDACTED = {name: redact(Recording(data), seed=1).body for name, data in BODIES.items()}
each_body = pytest.mark.parametrize("name", BODIES)


def behaviour(glmsse: Any, data: bytes, profile: str, **options: Any) -> dict[str, Any]:
    """What a reader makes of a body, but for texts and ids."""
    stream = glmsse.ChatStream(profile, **options)
    events = stream.feed(data)
    verdict = stream.close()
    fields = verdict.to_dict()
    fields["request_id"] = fields["request_id"] and len(fields["request_id"])
    reason = fields["finish_reason"]
    fields["finish_reason"] = reason if re.fullmatch("[a-z_]+", reason or "") else reason and len(reason)
    if fields["error"]:
        fields["error"] = {name: fields["error"][name] for name in ("code", "parent_code", "stage", "offset")}
    return {
        **fields,
        "counts": (stream.bytes_seen, stream.events_seen, stream.pieces_seen),
        "lane": stream._lane.hits,
        "events": [happened.type for happened in events],
        "sizes": [_size(happened) for happened in events],
        "calls": [(call.index, len(call.id or ""), len(call.name or "")) for call in verdict.tool_calls],
    }


def _size(happened: Any) -> int | None:
    for name in ("text", "arguments"):
        if hasattr(happened, name):
            return len(getattr(happened, name).encode(errors="surrogatepass"))
    return None


def said(glmsse: Any, data: bytes) -> str:
    """The texts that a body brings, each in one."""
    stream = glmsse.ChatStream("gateway", allow=["multi_choice"])
    stream.feed(data)
    stream.close()
    texts = [
        text
        for choice in stream.snapshot.choices
        for text in (choice.content, choice.reasoning_content, *(call.arguments for call in choice.tool_calls))
    ]
    return " ".join(texts)


def words_of(data: bytes) -> set[str]:
    """Its words; the letters of an escape, and of what was to become one, are none."""
    spoken = re.sub(rb"\\u[0-9a-fA-F]{0,3}", b" ", data)
    return {found.casefold() for found in WORD.findall(spoken.decode(errors="replace"))}


def protocol_words(data: bytes) -> set[str]:
    """What may stay: words of the protocols, the model's name, codes and reasons."""
    known = " ".join((*protocol.KEYS, *protocol.VALUES, "data event retry DONE true false null Infinity length"))
    tags = b" ".join(re.findall(rb"</?[a-z_]+>", data))
    kept = re.findall(rb'"(?:model|finish_reason|native_finish_reason|code|type)":\s*"([^"]*)"', data)
    return words_of(known.encode()) | words_of(b" ".join(kept)) | words_of(tags)


@each_body
@pytest.mark.parametrize("profile", READINGS)
def test_every_reader_behaves_as_before(glmsse: Any, name: str, profile: str) -> None:
    assert behaviour(glmsse, REDACTED[name], profile) == behaviour(glmsse, BODIES[name], profile)


@each_body
def test_no_word_of_four_letters_survives(glmsse: Any, name: str) -> None:
    before, after = BODIES[name], REDACTED[name]

    spoken_before = words_of(before) | words_of(said(glmsse, before).encode(errors="replace"))
    spoken_after = words_of(after) | words_of(said(glmsse, after).encode(errors="replace"))

    assert spoken_before & spoken_after <= protocol_words(before)


@each_body
def test_nothing_moves(name: str) -> None:
    before, after = BODIES[name], REDACTED[name]

    assert len(after) == len(before)
    # What is no letter and no digit of any script stays where it is, and so does what begins each line.
    fixed = re.compile(rb"[\x00-\x2f:;<=>?@\[\\\]^_`{|}~]")
    assert [(found.start(), found.group()) for found in fixed.finditer(before)] == [
        (found.start(), found.group()) for found in fixed.finditer(after)
    ]


def _redacted(*chunks: Any, **known: Any) -> Recording:
    return redact(Recording(body(chunks), Sidecar(**known)), seed=5)


def _payloads(recording: Recording) -> list[Any]:
    lines = [line[6:] for line in recording.body.decode().splitlines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


def test_equal_ids_and_names_stay_equal_and_others_different() -> None:
    first = tool_piece("{}", call_id="call_1", name="lookup")
    second = tool_piece("{}", index=1, call_id="call_2", name="lookup")

    one, two = (
        chunk["choices"][0]["delta"]["tool_calls"][0]
        for chunk in _payloads(_redacted(first, second, finish("tool_calls", 23)))[:2]
    )

    assert one["function"]["name"] == two["function"]["name"] != "lookup"
    assert one["id"] != two["id"]
    assert re.fullmatch(r"[a-z]{4}_[0-9]", one["id"])


def test_argument_keys_keep_being_the_same_or_not() -> None:
    pieces = ('{"ci', 'ty":"Hong Kong","\\u0063ity":1,', '"town":tr', "ue}")
    chunks = [tool_piece(pieces[0], call_id="c", name="n"), *map(tool_piece, pieces[1:])]

    redacted = _payloads(_redacted(*chunks, finish("tool_calls", 23)))[:-1]
    joined = "".join(chunk["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"] for chunk in redacted)
    pairs = json.loads(joined, object_pairs_hook=list)

    assert pairs[0][0] == pairs[1][0] != pairs[2][0]
    assert [type(value) for _, value in pairs] == [str, int, bool]
    assert pairs[2][1] is True
    assert "\\u00" in joined


@pytest.mark.parametrize(
    "piece", ['caf\\u00e9 \\ud83d\\ude00 \\n \\" \\\\ \\/ x', "香港 naïve Привет 🙂 mixed", "\\u004a\\u00C9\\uac00"]
)
def test_escapes_and_widths_stay(piece: str) -> None:
    data = body([text("x"), finish("stop", 23)]).replace(b'"x"', f'"{piece}"'.encode())

    redacted = redact(Recording(data), seed=2).body

    def shape(raw: bytes) -> list[Any]:
        said = raw.decode().split('"content":"')[1].split('"},')[0] if '"},' in raw.decode() else raw.decode()
        units = re.findall(r"\\u[0-9a-fA-F]{4}|\\.|.", said.split('"}}]')[0])
        return [(unit[:2] if unit[0] == "\\" else "", len(unit.encode())) for unit in units]

    assert shape(redacted) == shape(data)
    assert redacted != data


def test_a_surrogate_pair_cut_over_two_pieces_still_joins(glmsse: Any) -> None:
    data = body([text("a"), text("b"), finish("stop", 23)])
    data = data.replace(b'"a"', b'"Smile \\ud83d"').replace(b'"b"', b'"\\ude00 again"')

    redacted = redact(Recording(data), seed=2).body

    assert behaviour(glmsse, redacted, "zai") == behaviour(glmsse, data, "zai")
    assert behaviour(glmsse, redacted, "zai")["outcome"] == "accepted"


def test_markup_of_calls_stays_in_content() -> None:
    raw = "<tool_call>lookup<arg_key>city</arg_key><arg_value>Hong Kong</arg_value></tool_call>"
    known = Reading(content_markup="glm", tools=("lookup",))

    recording = _redacted(text(raw[:15]), text(raw[15:40]), text(raw[40:]), finish("stop", 23), reading=known)

    joined = "".join(chunk["choices"][0]["delta"]["content"] for chunk in _payloads(recording))
    found = re.fullmatch(
        r"<tool_call>(\w{6})<arg_key>(\w{4})</arg_key><arg_value>[A-Z]\w{3} [A-Z]\w{3}</arg_value></tool_call>", joined
    )
    assert found is not None
    assert recording.sidecar.reading.tools == (found[1],)
    assert found[1] != "lookup"


def test_comments_unknown_fields_event_names_and_ids_are_text_too(glmsse: Any) -> None:
    data = b": Hello world\nwhoever: someone\nevent: custom\nid: order-1234\nretry: 3000\n" + SCENARIOS["text"].body

    redacted = redact(Recording(data), seed=2).body

    assert behaviour(glmsse, redacted, "zai") == behaviour(glmsse, data, "zai")
    assert re.search(rb"^retry: [0-9]{4}$", redacted, re.MULTILINE)
    for word in (b"Hello", b"world", b"whoever", b"someone", b"custom", b"order", b"1234"):
        assert word not in redacted


def test_error_messages_go_and_codes_stay(glmsse: Any) -> None:
    data = b'data: {"error":{"code":"1113","message":"no balance, John","param":"secretly"},"request_id":"req-77"}\n\n'

    redacted = redact(Recording(data), seed=2).body

    assert behaviour(glmsse, redacted, "zai")["provider_code"] == "1113"
    assert b"balance" not in redacted
    assert b"John" not in redacted
    assert b"req-77" not in redacted


def test_unknown_fields_and_numbers_outside_of_usage_change() -> None:
    chunk = text("hi") | {"account": 1234567, "billing_note": {"customer": "Jane Doe", "ratio": -0.5, "zero": 0}}

    redacted = _payloads(_redacted(chunk, finish("stop", 23)))

    assert redacted[1]["usage"] == _payloads(Recording(body([finish("stop", 23)])))[0]["usage"]
    other = {name: value for name, value in redacted[0].items() if name not in text("hi")}
    assert all(name not in ("account", "billing_note") for name in other)
    assert 1234567 not in other.values()
    assert "Jane" not in json.dumps(other)


def test_a_refused_response_is_redacted_as_json_or_as_text() -> None:
    refused = Recording(
        b'{"error":{"code":"1302","message":"slow down please"},"request_id":"req-9"}',
        Sidecar(status=429, headers={"content-type": "application/json", "x-request-id": "req-9"}),
    )
    page = Recording(b"<!doctype html><title>Log in</title>")

    redacted = redact(refused, seed=1)

    assert redacted.sidecar.headers["x-request-id"] == json.loads(redacted.body)["request_id"] != "req-9"
    assert b"slow" not in redacted.body
    assert b"title" not in redact(page, seed=1).body


@pytest.mark.parametrize(
    "data",
    [
        b"data: {'content': 'single quoted words'}\n\n",
        b'data: {"choices":[{"delta":{"content":"cut in the midd',
        b'data: {"content":"bad \xff\xfe bytes caf\xe9 here"}\n\n',
        b"data: plain words, no json at all\n\n",
        b'data: {"content":"wrong \\x escape \\ushare"}\n\n',
        b'data: {"a":nope,"b":12abc,"c":1e5}\n\n',
        b"data\n\ndata:\n\n\xef\xbb\xbfdata: late mark\r\rid\n",
        b"",
        b"\n\n\n",
        b'data: {"content":"first line\ndata: second line"}\n\n',
    ],
)
def test_broken_bodies_are_redacted_too(glmsse: Any, data: bytes) -> None:
    redacted = redact(Recording(data), seed=3).body

    assert len(redacted) == len(data)
    for profile in READINGS:
        assert behaviour(glmsse, redacted, profile) == behaviour(glmsse, data, profile)
    assert words_of(redacted) & words_of(data) <= protocol_words(data)


def test_fields_can_be_kept_but_reasoning_cannot() -> None:
    recording = Recording(body([reasoning("Thinking hard"), text("Visible words"), finish("stop", 23)]))

    redacted = redact(recording, keep=["content"], seed=1).body

    assert b"Visible words" in redacted
    assert b"Thinking" not in redacted
    with pytest.raises(MisuseError, match="reasoning is always redacted"):
        redact(recording, keep=["reasoning_content"])


def test_kept_names_are_kept_in_the_sidecar_too() -> None:
    recording = Recording(SCENARIOS["tool"].body, Sidecar(reading=Reading(tools=("lookup_timezone",))))

    redacted = redact(recording, keep=["name"], seed=1)

    assert b'"lookup_timezone"' in redacted.body
    assert redacted.sidecar.reading.tools == ("lookup_timezone",)


def test_text_is_no_cipher() -> None:
    data = body([*map(text, ("letter by letter, ", "letter by letter, better")), finish("stop", 23)])

    said = "".join(chunk["choices"][0]["delta"]["content"] for chunk in _payloads(redact(Recording(data), seed=4))[:-1])

    words = said.split()
    assert words[0] != words[2].rstrip(",")
    stand_ins = set(zip("letter by letter, letter by letter, better", said, strict=True))
    assert len(stand_ins) > len(set("letter by letter, better"))


def test_two_redactions_differ() -> None:
    recording = Recording(SCENARIOS["text"].body)

    assert redact(recording).body != redact(recording).body


def test_the_sidecar_is_redacted_with_its_body(tmp_path: Path) -> None:
    sidecar = Sidecar(
        model="glm-5.2",
        route="/api/paas/v4/accounts/john-smith/chat/completions",
        status=200,
        headers={"content-type": "text/event-stream", "x-request-id": "20261201093000a1b2c3d4e5f60718"},
        chunks=((0.5, 100), (1.5, len(SCENARIOS["text"].body) - 100)),
        terminal=Terminal("done", "stop"),
        verdict={"outcome": "accepted", "request_id": "20261201093000a1b2c3d4e5f60718", "error": None},
    )
    Recording(SCENARIOS["text"].body, sidecar).write(tmp_path / "answer.sse")

    assert main(["redact", str(tmp_path / "answer.sse"), "-o", str(tmp_path / "shared.sse")]) == 0

    redacted = Recording.load(tmp_path / "shared.sse")
    kept = redacted.sidecar
    assert kept.redacted
    assert kept.chunks == sidecar.chunks
    assert (kept.model, kept.terminal) == (sidecar.model, sidecar.terminal)
    assert kept.route is not None
    assert "john" not in kept.route
    assert kept.route.startswith("/api/paas/v4/")
    response_id = _payloads(redacted)[0]["id"]
    assert kept.headers["x-request-id"] == response_id != "20261201093000a1b2c3d4e5f60718"
    assert kept.verdict is not None
    assert kept.verdict["request_id"] == response_id


def test_a_finish_reason_that_could_be_text_is_redacted_in_the_sidecar_too() -> None:
    told = "because Rosalind said so"
    verdict = {"outcome": "not_accepted", "request_id": None, "error": None, "finish_reason": told}
    recording = Recording(
        body([text("Hello"), finish(told, 9)]), Sidecar(terminal=Terminal("done", told), verdict=verdict)
    )

    redacted = redact(recording, seed=1)

    assert redacted.sidecar.verdict is not None
    assert redacted.sidecar.verdict["finish_reason"] == redacted.sidecar.terminal.finish_reason != told
    assert len(redacted.sidecar.terminal.finish_reason or "") == len(told)
    assert b"Rosalind" not in redacted.body


@pytest.mark.parametrize("value", ["4111111111111111", "hello world", "0", "", "12 hello"])
def test_a_retry_line_keeps_only_its_shape(glmsse: Any, value: str) -> None:
    data = f"retry:{value}\n".encode() + SCENARIOS["text"].body

    redacted = redact(Recording(data), seed=2).body

    line = redacted.splitlines()[0].decode()
    assert behaviour(glmsse, redacted, "zai") == behaviour(glmsse, data, "zai")
    assert re.sub("[a-z]", "a", re.sub("[0-9]", "1", line[6:])) == re.sub("[a-z]", "a", re.sub("[0-9]", "1", value))
    if len(value) > 3:
        assert value not in line


def test_of_the_sidecar_only_known_fields_with_numbers_and_known_words_stay() -> None:
    known = SCENARIOS["provider_error"].body
    stream = ChatStream()
    stream.feed(known)
    told = {
        "Rosalind": 1,
        "error": {"parent_code": "Rosalind", "Rosalind": "x"},
        "outcome": "rosalind",
        "tolerated": ["rosalind"],
    }
    sidecar = Sidecar(
        recorded_at="Rosalind's birthday",
        recorded_by="glmsse by Rosalind",
        request_template="rosalind-prompt-7",
        headers={"content-type": "text/event-stream; who=Rosalind", "x-rosalind": "Rosalind", "date": "Rosalind"},
        terminal=Terminal("done", "stop", "rosalind", "for Rosalind"),
        usage={"total_tokens": 7, "Rosalind": 9, "cached_tokens": "Rosalind"},
        verdict=told,
    )

    redacted = redact(Recording(known, sidecar), seed=1).sidecar

    assert "rosalind" not in json.dumps(redacted.to_dict()).casefold()
    assert re.fullmatch(r"[a-z]{8}-[a-z]{6}-\d", redacted.request_template or "")
    assert redacted.usage == {"total_tokens": 7, "cached_tokens": None}
    assert redacted.verdict == {"error": {"parent_code": None}, "outcome": None, "tolerated": [None]}
    assert redacted.terminal == Terminal("done", "stop")


@each_body
def test_a_recorded_sidecar_stays_but_for_its_ids_and_template(name: str) -> None:
    data = BODIES[name]
    recorder = Recorder(model="glm-5.2", recorded_at="2026-12-01T09:30:00+00:00", request_template="greeting-3")
    stream = ChatStream()
    head = {"Content-Type": "text/event-stream; charset=utf-8", "Date": "Tue, 01 Dec 2026 09:30:00 GMT"}
    recorder.start(200, head)
    stream.start(200, head)
    recorder.piece(data, 0.5)
    stream.feed(data)
    recording = recorder.finish(stream.close(), error_class="httpx.ReadError")
    assert recording is not None

    before, after = recording.sidecar.to_dict(), redact(recording, seed=1).sidecar.to_dict()

    changing = {"sha256", "request_template", "verdict", "terminal", "redacted"}
    assert [name for name in before if before[name] != after[name] and name not in changing] == []
    for part in ("verdict", "terminal"):
        told = {name for name in before[part] if before[part][name] != after[part][name]}
        assert told <= {"request_id", "finish_reason", "error"}


def test_words_that_stay_are_told_apart_from_a_changed_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glmsse.capture.redact._Redaction.surviving_words", lambda *_: {"hello"})
    with pytest.raises(CannotRedact, match="words of the original stay"):
        redact(Recording(SCENARIOS["text"].body))


@pytest.mark.parametrize("end", ["error", "end", "deadline_idle"])
def test_the_body_is_judged_by_the_end_it_had(monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    closed: list[object] = []
    close = ChatStream.close

    def noted(self: ChatStream, error: BaseException | str | None = None) -> Verdict:
        closed.append(error)
        return close(self, error)

    monkeypatch.setattr(ChatStream, "close", noted)

    redact(Recording(SCENARIOS["truncated"].body, Sidecar(terminal=Terminal(end))), seed=1)

    assert {type(error) for error in closed} == {type(Terminal(end).ending())}


def test_a_directory_is_redacted_into_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    (source / "deep").mkdir(parents=True)
    (source / "a.sse").write_bytes(SCENARIOS["text"].body)
    (source / "deep" / "b.sse").write_bytes(SCENARIOS["tool"].body)
    (source / "bad.sse").write_bytes(b"data: 1\n\n")
    (source / "bad.json").write_text("{}")

    assert main(["redact", str(source), "-o", str(out)]) == 2

    assert sorted(str(path.relative_to(out)) for path in out.rglob("*.sse")) == ["a.sse", "deep/b.sse"]
    assert "bad.json: it is no sidecar" in capsys.readouterr().err


@pytest.mark.parametrize("reading", [{"profile": "later"}, {"limits": {"max_later": 1}}])
def test_a_reading_that_is_not_known_costs_one_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], reading: dict[str, Any]
) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    Recording(SCENARIOS["text"].body, Sidecar(reading=Reading(**reading))).write(source / "a.sse")
    (source / "b.sse").write_bytes(SCENARIOS["text"].body)

    assert main(["redact", str(source), "-o", str(out)]) == 2

    assert [path.name for path in out.glob("*.sse")] == ["b.sse"]
    assert "a.sse: " in capsys.readouterr().err


def test_a_field_to_keep_that_nothing_has_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "answer.sse"
    path.write_bytes(SCENARIOS["tool"].body)

    assert main(["redact", str(path), "-o", str(tmp_path / "x.sse"), "--keep", "name", "--keep", "nmae"]) == 0

    assert capsys.readouterr().err == "glmsse: --keep nmae: no recording has this field\n"


def test_nothing_is_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "answer.sse"
    path.write_bytes(SCENARIOS["text"].body)

    assert main(["redact", str(path), "-o", str(path)]) == 2
    assert "nothing is replaced" in capsys.readouterr().err
    assert path.read_bytes() == SCENARIOS["text"].body
    assert main(["redact", str(tmp_path / "gone.sse"), "-o", str(tmp_path / "x.sse")]) == 2
    assert main(["redact", str(tmp_path), "-o", str(tmp_path / "y"), "--keep", "reasoning"]) == 2


def test_one_byte_at_a_time_gives_the_same_verdict(glmsse: Any) -> None:
    for name in ("thinking", "conflict", "spliced_frame"):
        stream = glmsse.ChatStream()
        for piece in each_byte(REDACTED[name]):
            stream.feed(piece)
        assert stream.close().to_dict()["code"] == behaviour(glmsse, BODIES[name], "zai")["code"]


def test_a_code_that_a_verdict_shows_stays_whatever_its_case() -> None:
    data = b'data: {"error":{"code":"InvalidParameter","type":"BadThing","message":"Jane was here"}}\n\n'

    redacted = redact(Recording(data), seed=2).body

    assert b'"InvalidParameter"' in redacted
    assert b"Jane" not in redacted
