"""The tool gate: what is reviewed, what an approval binds, and what a refusal says."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from glmsse.scenarios import SCENARIOS, body, finish, tool_piece

STREAM_ID = "request-1"
ARGUMENTS = '{"city": "Hong Kong"}'


class Clock:
    now = 5000.0

    def __call__(self) -> float:
        return self.now


def verdict_of(glmsse: ModuleType, *calls: tuple[str, str, str], **options: Any) -> Any:
    """The verdict over a stream with these calls, each (id, name, arguments)."""
    pieces = [
        tool_piece(arguments, index=index, call_id=call_id, name=name)
        for index, (call_id, name, arguments) in enumerate(calls)
    ]
    stream = glmsse.ChatStream(**options)
    stream.feed(body([*pieces, finish("tool_calls", 99)]))
    return stream.close()


def lookup(glmsse: ModuleType, arguments: str = ARGUMENTS, **options: Any) -> Any:
    return verdict_of(glmsse, ("call_1", "lookup", arguments), **options)


def gate_for(glmsse: ModuleType, *, clock: Clock | None = None, **rule: Any) -> Any:
    return glmsse.ToolGate([glmsse.ToolRule("lookup", **rule)], clock=clock or Clock())


def review_one(glmsse: ModuleType, arguments: str = ARGUMENTS, context: object = None, **rule: Any) -> Any:
    verdict = lookup(glmsse, arguments)
    (reviewed,) = gate_for(glmsse, **rule).review(verdict, stream_id=STREAM_ID, context=context)
    return reviewed


def content_of(refusal: Any) -> dict[str, str]:
    error: dict[str, str] = json.loads(refusal.message()["content"])["error"]
    return error


# From verdict to result


def test_a_call_goes_from_verdict_to_result(glmsse: ModuleType) -> None:
    gate = gate_for(glmsse)
    (reviewed,) = gate.review(lookup(glmsse), stream_id=STREAM_ID)

    ready = gate.permit(reviewed, reviewed.approve(by="ada"))

    assert (ready.name, ready.arguments, ready.approved_by) == ("lookup", {"city": "Hong Kong"}, "ada")
    assert ready.result_message("UTC+8") == {"role": "tool", "tool_call_id": "call_1", "content": "UTC+8"}
    assert ready.result_message({"zone": "Zürich"})["content"] == '{"zone": "Zürich"}'


def test_calls_keep_their_order_and_are_judged_one_by_one(glmsse: ModuleType) -> None:
    verdict = verdict_of(glmsse, ("a", "lookup", "{}"), ("b", "rm", "{}"), ("c", "lookup", "{}"))

    reviewed = gate_for(glmsse).review(verdict, stream_id=STREAM_ID)

    assert [type(item).__name__ for item in reviewed] == ["ReviewedCall", "Refusal", "ReviewedCall"]
    assert reviewed[1].call_id == "b"


@pytest.mark.parametrize("result", [{1, 2}, float("nan"), object()])
def test_a_result_that_is_no_json_is_misuse(glmsse: ModuleType, result: object) -> None:
    gate = gate_for(glmsse, needs_approval=False)
    (reviewed,) = gate.review(lookup(glmsse), stream_id=STREAM_ID)

    with pytest.raises(glmsse.MisuseError, match="result takes"):
        gate.permit(reviewed).result_message(result)


def test_an_answer_without_calls_has_nothing_to_review(glmsse: ModuleType) -> None:
    stream = glmsse.ChatStream()
    stream.feed(SCENARIOS["text"].body)

    assert gate_for(glmsse).review(stream.close(), stream_id=STREAM_ID) == ()


# Only an accepted verdict


def test_an_answer_that_is_not_accepted_raises_its_own_error(glmsse: ModuleType) -> None:
    stream = glmsse.ChatStream()
    stream.feed(SCENARIOS["conflict"].body)
    verdict = stream.close()

    with pytest.raises(glmsse.ProtocolError, match="stable_conflict"):
        gate_for(glmsse).review(verdict, stream_id=STREAM_ID)


def test_no_cut_of_a_stream_gives_a_call(glmsse: ModuleType) -> None:
    whole = SCENARIOS["tool_stream"].body
    gate = glmsse.ToolGate([glmsse.ToolRule("lookup_timezone", needs_approval=False)])
    for length in range(len(whole) - 1):
        stream = glmsse.ChatStream()
        stream.feed(whole[:length])
        with pytest.raises(glmsse.GlmsseError):
            gate.review(stream.close(), stream_id=STREAM_ID)


@pytest.mark.parametrize("what", ["calls", "snapshot", "none"])
def test_anything_but_a_verdict_is_misuse(glmsse: ModuleType, what: str) -> None:
    verdict = lookup(glmsse)
    value = {"calls": verdict.tool_calls, "snapshot": glmsse.ChatStream().snapshot, "none": None}[what]

    with pytest.raises(glmsse.MisuseError, match="review takes a Verdict"):
        gate_for(glmsse).review(value, stream_id=STREAM_ID)


def test_a_made_up_verdict_that_is_not_accepted_offers_nothing(glmsse: ModuleType) -> None:
    forged = glmsse.Verdict("incomplete", tool_calls=lookup(glmsse).tool_calls)

    with pytest.raises(glmsse.MisuseError, match="accepted"):
        gate_for(glmsse).review(forged, stream_id=STREAM_ID)


@pytest.mark.parametrize("stream_id", ["", None, 7])
def test_a_stream_id_is_needed(glmsse: ModuleType, stream_id: object) -> None:
    with pytest.raises(glmsse.MisuseError, match="stream_id takes"):
        gate_for(glmsse).review(lookup(glmsse), stream_id=stream_id)


# Names, ids, JSON, schema


def test_an_unknown_tool_is_refused_in_words_for_the_model(glmsse: ModuleType) -> None:
    (refusal,) = gate_for(glmsse).review(verdict_of(glmsse, ("call_9", "rm", "{}")), stream_id=STREAM_ID)

    assert refusal.message() == {
        "role": "tool",
        "tool_call_id": "call_9",
        "content": '{"error": {"code": "unknown_tool", "message": "there is no tool of this name"}}',
    }


def test_the_second_call_with_an_id_is_refused(glmsse: ModuleType) -> None:
    verdict = verdict_of(glmsse, ("a", "lookup", "{}"), ("a", "lookup", "{}"))

    reviewed, refusal = gate_for(glmsse).review(verdict, stream_id=STREAM_ID)

    assert refusal.code == "duplicate_call_id"
    assert reviewed.call.index == 0


@pytest.mark.parametrize(
    ("arguments", "tolerance", "code"),
    [
        ('{"q": 1, "\\u0071": 2}', "dup_keys_last", "duplicate_key"),
        ('{"q": 1e999}', "nonfinite_ok", "json_nonfinite"),
        ('{"q": "\\ud800"}', "surrogate_replace", "lone_surrogate"),
        ("[1]", "args_any_json", "arguments_not_object"),
    ],
)
def test_what_the_stream_tolerated_the_gate_does_not(
    glmsse: ModuleType, arguments: str, tolerance: str, code: str
) -> None:
    verdict = lookup(glmsse, arguments, allow=[tolerance])
    assert verdict.accepted

    (refusal,) = gate_for(glmsse).review(verdict, stream_id=STREAM_ID)

    assert refusal.code == code
    assert content_of(refusal)["code"] == code


def test_the_gate_has_its_own_json_caps(glmsse: ModuleType) -> None:
    verdict = lookup(glmsse, '{"a": {"b": 12345}}')
    rules = [glmsse.ToolRule("lookup")]

    (deep,) = glmsse.ToolGate(rules, limits=glmsse.Limits(max_json_depth=1)).review(verdict, stream_id=STREAM_ID)
    (long,) = glmsse.ToolGate(rules, limits=glmsse.Limits(max_number_chars=4)).review(verdict, stream_id=STREAM_ID)

    assert (deep.code, long.code) == ("json_too_deep", "json_number_too_long")


@pytest.mark.parametrize("arguments", ["", " ", "{"])
def test_a_call_made_elsewhere_is_judged_as_strictly(glmsse: ModuleType, arguments: str) -> None:
    call = glmsse.ToolCall(0, "call_1", "lookup", arguments, complete=True)
    forged = glmsse.Verdict("accepted", tool_calls=(call,))

    (refusal,) = gate_for(glmsse).review(forged, stream_id=STREAM_ID)

    assert refusal.code == ("arguments_not_json" if arguments == "{" else "arguments_empty")


def raising(arguments: dict[str, Any]) -> None:
    raise KeyError(arguments["city"])


@pytest.mark.parametrize("answer", [None, True, 0, {"parsed": 1}])
def test_a_schema_passes_unless_it_says_no(glmsse: ModuleType, answer: object) -> None:
    assert type(review_one(glmsse, schema=lambda arguments: answer)).__name__ == "ReviewedCall"


@pytest.mark.parametrize(
    ("schema", "hint", "cause"),
    [
        (lambda arguments: False, None, None),
        (lambda arguments: "city: unknown", "city: unknown", None),
        (raising, None, "KeyError"),
    ],
)
def test_a_schema_refuses(glmsse: ModuleType, schema: Any, hint: str | None, cause: str | None) -> None:
    refusal = review_one(glmsse, schema=schema)

    assert (refusal.code, refusal.hint, refusal.cause) == ("schema", hint, cause)
    assert content_of(refusal).get("hint") == hint
    assert "Hong Kong" not in repr(refusal) + str(refusal.message())


# Policies


def test_a_policy_sees_the_call_and_the_context(glmsse: ModuleType) -> None:
    seen: list[Any] = []

    def policy(call: Any) -> bool:
        seen.append((call.name, call.arguments, call.context, call.call_id, call.choice, call.index))
        return True

    review_one(glmsse, policies=[policy], context="ada")

    assert seen == [("lookup", {"city": "Hong Kong"}, "ada", "call_1", 0, 0)]


@pytest.mark.parametrize("answer", [False, None, 0, 1, "no", {}, "user may not"])
def test_a_policy_refuses_unless_it_says_true(glmsse: ModuleType, answer: object) -> None:
    refusal = review_one(glmsse, policies=[lambda call: True, lambda call: answer])

    assert refusal.code == "policy"
    assert refusal.hint == (answer if isinstance(answer, str) else None)


def test_a_policy_that_fails_refuses(glmsse: ModuleType) -> None:
    refusal = review_one(glmsse, policies=[lambda call: call.arguments["missing"]])

    assert (refusal.code, refusal.cause, refusal.hint) == ("policy", "KeyError", None)


def test_policies_are_asked_again_when_the_call_is_to_be_run(glmsse: ModuleType) -> None:
    allowed = {"ada"}
    gate = gate_for(glmsse, needs_approval=False, policies=[lambda call: call.context in allowed])
    (reviewed,) = gate.review(lookup(glmsse), stream_id=STREAM_ID, context="ada")
    assert type(gate.permit(reviewed, context="ada")).__name__ == "PermittedCall"

    allowed.clear()

    assert gate.permit(reviewed, context="ada").code == "policy"
    assert gate.permit(reviewed).code == "policy"


def test_a_check_cannot_change_what_is_run(glmsse: ModuleType) -> None:
    def changing(value: Any) -> bool:
        arguments = getattr(value, "arguments", value)
        arguments["city"] = "Elsewhere"
        return True

    gate = gate_for(glmsse, needs_approval=False, schema=changing, policies=[changing])
    (reviewed,) = gate.review(lookup(glmsse), stream_id=STREAM_ID)

    assert gate.permit(reviewed).arguments == {"city": "Hong Kong"}


# Approval


def test_a_call_needs_approval_unless_its_rule_says_no(glmsse: ModuleType) -> None:
    gate = gate_for(glmsse)
    (reviewed,) = gate.review(lookup(glmsse), stream_id=STREAM_ID)

    assert reviewed.needs_approval
    assert gate.permit(reviewed).code == "unapproved"


@pytest.mark.parametrize(
    "change",
    [
        {"arguments": '{"city": "Hong Kon9"}'},
        {"arguments": '{"city":"Hong Kong"}'},
        {"arguments": ARGUMENTS + " "},
        {"id": "call_2"},
        {"name": "delete"},
        {"index": 1},
        {"choice": 1},
    ],
)
def test_one_changed_byte_after_approval_is_refused(glmsse: ModuleType, change: dict[str, Any]) -> None:
    gate = glmsse.ToolGate([glmsse.ToolRule("lookup"), glmsse.ToolRule("delete")], clock=Clock())
    (reviewed,) = gate.review(lookup(glmsse), stream_id=STREAM_ID)
    approval = reviewed.approve(by="ada")

    changed = dataclasses.replace(reviewed, call=dataclasses.replace(reviewed.call, **change))
    with_new_digest = dataclasses.replace(changed, digest=changed.approve(by="mallory").digest)

    assert gate.permit(changed, approval).code == "changed"
    assert gate.permit(with_new_digest, approval).code == "changed"
    assert gate.permit(reviewed, approval).approved_by == "ada"


def test_every_bit_of_the_arguments_is_bound(glmsse: ModuleType) -> None:
    gate = gate_for(glmsse)
    (reviewed,) = gate.review(lookup(glmsse), stream_id=STREAM_ID)
    approval = reviewed.approve(by="ada")
    raw = ARGUMENTS.encode()

    for position in range(len(raw)):
        for bit in range(7):
            flipped = bytearray(raw)
            flipped[position] ^= 1 << bit
            call = dataclasses.replace(reviewed.call, arguments=flipped.decode())
            assert gate.permit(dataclasses.replace(reviewed, call=call), approval).code == "changed"


def test_an_approval_is_for_one_stream(glmsse: ModuleType) -> None:
    gate = gate_for(glmsse)
    (first,) = gate.review(lookup(glmsse), stream_id="a")
    (second,) = gate.review(lookup(glmsse), stream_id="b")

    assert gate.permit(second, first.approve(by="ada")).code == "changed"


def test_fields_do_not_run_into_each_other(glmsse: ModuleType) -> None:
    (one,) = gate_for(glmsse).review(lookup(glmsse), stream_id="a")
    call = one.call
    shifted = dataclasses.replace(one, stream_id="a6:call_1", call=dataclasses.replace(call, id=""))

    assert shifted.approve(by="x").digest != one.approve(by="x").digest


@pytest.mark.parametrize("digest", ["", "0" * 64, "é", None, 7])
def test_a_made_up_approval_is_refused(glmsse: ModuleType, digest: Any) -> None:
    gate = gate_for(glmsse, needs_approval=False)
    (reviewed,) = gate.review(lookup(glmsse), stream_id=STREAM_ID)

    assert gate.permit(reviewed, glmsse.Approval(digest, "mallory")).code == "changed"


def test_the_digest_and_the_key_are_the_same_for_the_same_call(glmsse: ModuleType) -> None:
    (first,) = gate_for(glmsse).review(lookup(glmsse), stream_id=STREAM_ID)
    (again,) = gate_for(glmsse).review(lookup(glmsse), stream_id=STREAM_ID)
    (other,) = gate_for(glmsse).review(lookup(glmsse, '{"city": "Paris"}'), stream_id=STREAM_ID)

    framed = "9:request-11:01:06:call_16:lookup21:" + ARGUMENTS
    assert first.digest == sha256(framed.encode()).hexdigest()
    assert first.idempotency_key == again.idempotency_key != other.idempotency_key


def test_a_call_expires(glmsse: ModuleType) -> None:
    clock = Clock()
    gate = gate_for(glmsse, clock=clock, valid_seconds=60, needs_approval=False)
    (reviewed,) = gate.review(lookup(glmsse), stream_id=STREAM_ID)
    assert reviewed.expires_at == 5060

    clock.now = 5059.9
    assert gate.permit(reviewed).expires_at == 5060
    clock.now = 5060

    assert gate.permit(reviewed).code == "expired"


def test_a_tool_withdrawn_after_the_review_is_unknown(glmsse: ModuleType) -> None:
    (reviewed,) = gate_for(glmsse, needs_approval=False).review(lookup(glmsse), stream_id=STREAM_ID)

    assert glmsse.ToolGate([]).permit(reviewed).code == "unknown_tool"


@pytest.mark.parametrize(("reviewed", "approval"), [(None, None), ("call", None), (True, "yes")])
def test_permit_takes_what_review_and_approve_gave(glmsse: ModuleType, reviewed: Any, approval: Any) -> None:
    gate = gate_for(glmsse)
    if reviewed is True:
        (reviewed,) = gate.review(lookup(glmsse), stream_id=STREAM_ID)
    with pytest.raises(glmsse.MisuseError, match="takes a"):
        gate.permit(reviewed, approval)


def test_an_approval_names_a_person(glmsse: ModuleType) -> None:
    with pytest.raises(glmsse.MisuseError, match="by takes"):
        review_one(glmsse).approve(by="")


# What is shown


def test_no_repr_shows_text(glmsse: ModuleType) -> None:
    gate = gate_for(glmsse, needs_approval=False)
    (reviewed,) = gate.review(lookup(glmsse, '{"city": "CANARY"}'), stream_id="CANARY-id")
    shown = [repr(reviewed), repr(gate.permit(reviewed)), repr(glmsse.ProposedCall("CANARY", {"CANARY": "CANARY"}))]

    assert not any("CANARY" in text for text in shown)


def test_each_refusal_has_words(glmsse: ModuleType) -> None:
    from glmsse.tools import REFUSALS

    for code in REFUSALS:
        assert content_of(glmsse.Refusal(code, "call_1")) == {"code": code, "message": REFUSALS[code]}


# Rules


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("", {}, "name takes"),
        (None, {}, "name takes"),
        ("a", {"schema": {"type": "object"}}, "wrap a dict in json_schema"),
        ("a", {"policies": len}, "policies takes"),
        ("a", {"policies": [1]}, "policies takes"),
        ("a", {"policies": 1}, "policies takes"),
        ("a", {"needs_approval": None}, "needs_approval takes"),
        ("a", {"valid_seconds": 0}, "valid_seconds takes"),
        ("a", {"valid_seconds": None}, "valid_seconds takes"),
    ],
)
def test_a_wrong_rule_is_misuse(glmsse: ModuleType, name: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(glmsse.MisuseError, match=message):
        glmsse.ToolRule(name, **options)


def test_a_gate_takes_one_rule_a_tool(glmsse: ModuleType) -> None:
    rule = glmsse.ToolRule("a")
    with pytest.raises(glmsse.MisuseError, match="two rules"):
        glmsse.ToolGate([rule, rule])
    with pytest.raises(glmsse.MisuseError, match="rules takes ToolRule"):
        glmsse.ToolGate(["a"])
    with pytest.raises(glmsse.MisuseError, match="clock takes"):
        glmsse.ToolGate([rule], clock=1)


# Policies for paths


def judged(glmsse: ModuleType, policy: Any, **arguments: Any) -> bool:
    answer = policy(glmsse.ProposedCall("tool", arguments))
    assert answer is True or isinstance(answer, str)
    return answer is True


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work" / "sub").mkdir(parents=True)
    (tmp_path / "work" / "file").write_text("x")
    (tmp_path / "secret").mkdir()
    (tmp_path / "work2").mkdir()
    (tmp_path / "work" / "out").symlink_to(tmp_path / "secret")
    (tmp_path / "work" / "in").symlink_to(tmp_path / "work" / "sub")
    (tmp_path / "work" / "loop").symlink_to(tmp_path / "work" / "loop")
    return tmp_path


@pytest.mark.parametrize("path", ["file", "sub/new", "./file", "in/new", ".", "a..b", ["file", "sub"]])
def test_paths_within_the_folder_pass(glmsse: ModuleType, folder: Path, path: object) -> None:
    assert judged(glmsse, glmsse.path_within("path", folder / "work"), path=path)


@pytest.mark.parametrize(
    "path",
    [
        "../secret", "sub/../../secret", "sub/../file", "..", "..\\secret", "sub\\..\\..\\secret",
        "out", "out/key", "loop/x", "/etc/passwd", "~/x", "~root", "", "a\0b", "a\nb", 7, [], ["file", "out"],
        [7], None,
    ],
)  # fmt: skip
def test_paths_that_lead_elsewhere_are_refused(glmsse: ModuleType, folder: Path, path: object) -> None:
    assert not judged(glmsse, glmsse.path_within("path", folder / "work"), path=path)


def test_an_absolute_path_may_lie_within(glmsse: ModuleType, folder: Path) -> None:
    policy = glmsse.path_within("path", folder / "work", folder / "secret")

    assert judged(glmsse, policy, path=str(folder / "secret" / "key"))
    assert not judged(glmsse, policy, path=str(folder / "work2"))


def test_a_folder_that_is_a_link_is_resolved_too(glmsse: ModuleType, folder: Path) -> None:
    assert judged(glmsse, glmsse.path_within("path", folder / "work" / "in"), path="new")


def test_an_absent_argument_passes_only_where_it_may(glmsse: ModuleType, folder: Path) -> None:
    for make in (
        lambda **options: glmsse.path_within("x", folder, **options),
        lambda **options: glmsse.url_within("x", hosts=["a.example"], **options),
        lambda **options: glmsse.amount_within("x", maximum=5, **options),
    ):
        assert not judged(glmsse, make())
        assert judged(glmsse, make(optional=True))
        assert not judged(glmsse, make(optional=True), x={})


# Policies for URLs


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.com/v1?q=a@b#c", "HTTPS://API.example.COM", "https://api.example.com:443/",
        "https://a.b.example.org/", "https://alt.example.com:8443/x", "https://192.0.2.7/", "https://[2001:db8::7]/x",
        "https://[2001:DB8:0:0::7]:443", "https://[::ffff:192.0.2.7]/",
    ],
)  # fmt: skip
def test_allowed_places_pass(glmsse: ModuleType, url: str) -> None:
    hosts = ["api.example.com", "*.example.org", "alt.example.com:8443", "192.0.2.7", "[2001:db8::7]"]

    assert judged(glmsse, glmsse.url_within("url", hosts=hosts), url=url)


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/", "https://api.example.com.evil.example/", "https://evilapi.example.com/",
        "https://api.example.com@evil.example/", "https://user:pw@api.example.com/", "https://@api.example.com/",
        "https://api.example.com./", "https://api.example.com:8443/", "https://api.example.com:/",
        "https://api.example.com:+443/", "https://api.example.com:99999/", "https://api.example.com:0/",
        "http://api.example.com/", "file:///etc/passwd", "//api.example.com/", "api.example.com",
        "https:api.example.com",
        "https:/api.example.com", "https:///api.example.com", "https://api.example.com\\@evil.example/",
        "https://evil.example\\.api.example.com/", "https://evil.example#@api.example.com/",
        "https://evil.example?@api.example.com/", "https://api.example.com%2eevil.example/", "https://api.example.com%00/",
        "https://api.example.com\n.evil.example/", " https://api.example.com/", "https://api.example.com\t/",
        "https://аpi.example.com/", "https://api。example.com/", "https://example.org/", "https://.example.org/",
        "https://x..example.org/", "https://127.0.0.1/", "https://[::ffff:127.0.0.1]/", "https://2130706433/",
        "https://0x7f.1/", "https://0300.0.2.7/", "https://192.0.519/", "https://192.0.2.7./", "https://[2001:db8::7/",
        "https://[2001:db8::7]x/", "https://[fe80::1%25eth0]/", "https://[192.0.2.7]/", "https://", "", 7, ["x"], None,
    ],
)  # fmt: skip
def test_other_places_are_refused(glmsse: ModuleType, url: object) -> None:
    hosts = ["api.example.com", "*.example.org", "alt.example.com:8443", "192.0.2.7", "[2001:db8::7]"]

    assert not judged(glmsse, glmsse.url_within("url", hosts=hosts), url=url)


def resolver(*addresses: str) -> Any:
    def resolve(host: str) -> Iterable[str]:
        assert host == "any.example"
        return addresses

    return resolve


@pytest.mark.parametrize("addresses", [("93.184.216.34",), ("2606:2800:220:1::1", "93.184.216.34")])
def test_public_addresses_pass(glmsse: ModuleType, addresses: tuple[str, ...]) -> None:
    assert judged(glmsse, glmsse.url_within("url", resolve=resolver(*addresses)), url="https://any.example/")


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.1.1", "100.64.0.1", "0.0.0.0", "224.0.0.1", "::1", "::",
        "fe80::1%eth0", "fc00::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::",
        "not an address",
    ],
)  # fmt: skip
def test_a_host_with_any_private_address_is_refused(glmsse: ModuleType, address: str) -> None:
    policy = glmsse.url_within("url", resolve=resolver("93.184.216.34", address))

    assert not judged(glmsse, policy, url="https://any.example/")


@pytest.mark.parametrize(("url", "passes"), [("https://93.184.216.34/", True), ("https://[::ffff:10.0.0.1]/", False)])
def test_an_address_in_the_url_is_not_looked_up(glmsse: ModuleType, url: str, passes: bool) -> None:
    assert judged(glmsse, glmsse.url_within("url", resolve=resolver()), url=url) is passes


def test_a_host_without_addresses_is_refused(glmsse: ModuleType) -> None:
    assert not judged(glmsse, glmsse.url_within("url", resolve=resolver()), url="https://any.example/")


def test_other_schemes_pass_where_they_are_allowed(glmsse: ModuleType) -> None:
    policy = glmsse.url_within("url", hosts=["a.example"], schemes=["http", "gopher"])

    assert judged(glmsse, policy, url="http://a.example:80/")
    assert judged(glmsse, policy, url="gopher://a.example/")


@pytest.mark.parametrize(
    "options",
    [
        {}, {"hosts": "a.example"}, {"hosts": ["https://a.example"]}, {"hosts": ["*.192.0.2.7"]}, {"hosts": [7]},
        {"hosts": ["a.example"], "schemes": "https"}, {"resolve": 7},
    ],
)  # fmt: skip
def test_wrong_options_of_url_within_are_misuse(glmsse: ModuleType, options: dict[str, Any]) -> None:
    with pytest.raises(glmsse.MisuseError):
        glmsse.url_within("url", **options)


# Policies for amounts


@pytest.mark.parametrize(("amount", "passes"), [(0, True), (5, True), (4.5, True), (-1, False), (5.01, False)])
def test_amounts_have_bounds(glmsse: ModuleType, amount: object, passes: bool) -> None:
    assert judged(glmsse, glmsse.amount_within("amount", maximum=5), amount=amount) is passes


@pytest.mark.parametrize("amount", ["5", True, [5], {}, float("nan")])
def test_what_is_no_number_is_no_amount(glmsse: ModuleType, amount: object) -> None:
    assert not judged(glmsse, glmsse.amount_within("amount", maximum=5), amount=amount)


def test_policies_check_their_own_arguments(glmsse: ModuleType) -> None:
    for wrong in (
        lambda: glmsse.path_within(""),
        lambda: glmsse.path_within("path"),
        lambda: glmsse.url_within(7, hosts=[]),
        lambda: glmsse.amount_within("amount", maximum="5"),
        lambda: glmsse.amount_within("amount", minimum=True, maximum=5),
    ):
        with pytest.raises(glmsse.MisuseError, match="takes"):
            wrong()
