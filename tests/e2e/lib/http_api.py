"""A client of the HTTP API, and the form of its refusals."""

import json

from lib.client import request


class HttpApi:
    def __init__(self, port):
        self.port = port

    def __call__(self, method, path, body=b"", kind="application/json", accept="application/json"):
        body = json.dumps(body) if isinstance(body, dict) else body
        return request(self.port, method, path, body, {"Content-Type": kind, "Accept": accept}, seconds=30)

    def open(self, *entities, **more):
        answer = self("POST", "/execute", {"entry_id": "demo", "entities": list(entities), **more})
        assert answer.status == 303, f"{answer.status} {answer.body[:300]}"
        return answer.headers["location"], json.loads(answer.body)

    def run(self, path, program, query="", **more):
        return self("POST", f"{path}{query}", program, kind="text/plain", **more)


def problem_of(answer, status, code):
    assert answer.status == status, f"{answer.status} {answer.body[:300]}"
    assert answer.headers["content-type"] == "application/problem+json", answer.headers
    problem = json.loads(answer.body)
    assert problem["code"] == code and problem["type"] == f"urn:tokamak:problem:{code}", problem
    assert problem["status"] == status and problem["detail"], problem
    return problem
