"""Discovery and the registry over HTTP: the same answers as the tools, for programs."""

import json

import pytest

from lib.client import request


@pytest.fixture
def ask(server):
    def ask(method, path, body=None):
        sent = json.dumps(body).encode() if body is not None else b""
        headers = {"Content-Type": "application/json"} if body is not None else {}
        answer = request(server.port, method, path, sent, headers)
        return answer.status, json.loads(answer.body)

    return ask


def test_discover_answers_rows_and_a_decision_on_request(ask):
    status, found = ask("POST", "/v1/discover", {"intent": "list the Stripe invoices", "limit": 2})
    assert status == 200 and found["shown"] == 2 and found["omitted"] > 0, found
    assert (found["rows"][0]["api"], found["rows"][0]["entity"]) == ("stripe", "Invoice"), found
    status, typed = ask("POST", "/v1/discover", {"intent": "open issues", "typed": True})
    assert status == 200 and typed["decision"] == "clarify_api" and len(typed["options"]) > 1, typed


def test_a_discover_request_that_cannot_be_read_is_refused_with_a_code(ask):
    for body, code in (
        ({"intent": " "}, "bad_intent"),
        ({"intent": "x", "apis": ["dmo"]}, "unknown_seed"),
        ({"intent": "x", "more": 1}, "bad_arguments"),
        ({}, "bad_arguments"),
    ):
        status, refused = ask("POST", "/v1/discover", body)
        assert status == (404 if code == "unknown_seed" else 400) and refused["code"] == code, f"{body}: {status} {refused}"
    assert ask("GET", "/v1/discover")[0] == 405


def test_the_registry_is_listed_and_one_api_is_shown(ask):
    status, listed = ask("GET", "/v1/registry")
    by_id = {one["id"]: one for one in listed["catalogs"]}
    assert status == 200 and by_id["demo"]["auth"] == {"state": "open"}, by_id["demo"]
    assert by_id["stripe"]["auth"] == {"state": "lacking", "not_set": ["STRIPE_SECRET_KEY"]}, by_id["stripe"]
    assert [one["id"] for one in ask("GET", "/v1/registry?query=weather")[1]["catalogs"]] == ["open-meteo"]
    status, github = ask("GET", "/v1/registry/gh")
    issue = next(entity for entity in github["entities"] if entity["name"] == "Issue")
    assert status == 200 and github["id"] == "github", github
    assert any(one["name"] == "issue_open" and one["kind"] == "create" for one in issue["capabilities"]), issue
    status, refused = ask("GET", "/v1/registry/nope")
    assert status == 404 and refused["code"] == "no_catalog", refused
