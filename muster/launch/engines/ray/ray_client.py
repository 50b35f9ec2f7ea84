"""Asks Ray's Jobs API for the command `muster`, which has this program in itself.

    ray_client.py version ADDRESS          {"version": "2.60.0"}
    ray_client.py submit ADDRESS SCRIPT [AFTER]  {"id": "muster-1-0a1b2c3d"}; AFTER: jobs, "A:B", in place of the script's
    ray_client.py look ADDRESS ID...       {"jobs": {ID: {"status": "RUNNING", "message": "...", "exit_code": null}}}; unknown
                                           ones are left out; exit_code is that of the job's process, -9: killed
    ray_client.py stop ADDRESS ID          {"stopped": true}; also of a job that has ended, or that Ray doesn't know
    ray_client.py free ADDRESS ID          {"freed": true}: it waits no longer for the ends of other jobs

It prints one JSON object. An error is {"error": KIND, "text": ...} and exit code 1; KIND is no_ray, unreachable (then
nothing was submitted), refused or failed (docs/ray_engine.md). The job's driver imports it, too. An address http://HOST:PORT needs nothing but Python; any other one is for Ray's own
client, which takes a second to load.
"""

import http.client
import json
import logging
import os
import secrets
import shlex
import sys
import urllib.error
import urllib.request

LEAST_VERSION = (2, 9)  # of Ray, on both sides: older ones are never tried
FEW_JOBS = 4  # are asked for one by one; more come in one answer
LINES_OF_MESSAGE = 5
MOST_MESSAGE = 2000  # characters of them
MOST_ANSWER = 128 << 20  # bytes: more than all jobs of a busy cluster
PATIENCE = 25  # seconds for one answer
MOST_ERROR = 65536  # bytes of an answer that is an error
FORBIDDEN = ("status code 401", "status code 403")


class Failure(Exception):
    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind
        self.text = text


def version_of(text):
    """Returns (2, 60) for "2.60.0"."""
    numbers = []
    for part in text.split(".")[:2]:
        digits = "".join(c for c in part if c.isdigit())
        numbers.append(int(digits or 0))
    return tuple(numbers)


def check_version(text, whose):
    if version_of(text) < LEAST_VERSION:
        least = ".".join(str(number) for number in LEAST_VERSION)
        raise Failure("refused", f"{whose} is Ray {text}; accepted: Ray {least} or newer")


def asked_of(script_text):
    """Returns what the script's line "#RAY {...}" says."""
    for line in script_text.splitlines():
        if line.startswith("#RAY "):
            return json.loads(line[5:])
    raise Failure("refused", "the script has no line '#RAY {...}'")


def entrypoint(asked, job, after):
    """Returns the command line of Ray's job. A node that doesn't see the folder says so."""
    folder = asked["folder"]
    script = shlex.quote(os.path.join(folder, "job.sh"))
    blind = shlex.quote(
        f"doesn't see {folder}, the experiment's folder: MUSTER_HOME must be a folder that the node of the job's driver "
        "(Ray's head) sees, too"
    )
    # Ray shows the last lines of what a job prints.
    found = f'[ -r {script} ] || {{ echo "muster: $(hostname)" {blind} >&2; exit 2; }}'
    return f"{found}; exec sh {script} {job} {after}".rstrip()


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""


def own_token():
    """Returns the token that Ray's settings name, as its own commands read it: for RAY_AUTH_MODE=token."""
    if token := os.environ.get("RAY_AUTH_TOKEN", "").strip():
        return token
    path = os.environ.get("RAY_AUTH_TOKEN_PATH") or os.path.expanduser("~/.ray/auth_token")
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except OSError as error:
        raise Failure(
            "refused", f"RAY_AUTH_MODE is token, and there is none: neither RAY_AUTH_TOKEN nor a file ({error})"
        ) from error


class Redirected(Failure):
    """What was asked has come to nothing."""


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A POST that is redirected would become a GET, which submits nothing, and the token would go to another server."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):  # noqa: ARG002
        fp.close()
        raise Redirected("unreachable", f"it redirects to {newurl}: give the address that answers itself")


class Dashboard:
    """Ray's dashboard over HTTP, without anything of Ray."""

    def __init__(self, address):
        self.address = address.rstrip("/")
        self.opener = urllib.request.build_opener(NoRedirect)
        self.headers = {"Content-Type": "application/json"}
        try:
            self.headers.update(json.loads(os.environ.get("RAY_JOB_HEADERS") or "{}"))
        except (ValueError, TypeError) as error:
            raise Failure("refused", f"RAY_JOB_HEADERS isn't a JSON object: {error}") from error
        has_own = any(name.lower() == "authorization" for name in self.headers)
        if os.environ.get("RAY_AUTH_MODE", "").lower() == "token" and not has_own:
            self.headers["Authorization"] = f"Bearer {own_token()}"

    @staticmethod
    def takes(address):
        mode = os.environ.get("RAY_AUTH_MODE", "").lower()
        return address.startswith("http://") and mode in ("", "disabled", "token")

    def ask(self, method, path, body=None):
        """Returns the answer; None if there is no such thing."""
        request = urllib.request.Request(
            self.address + path,
            method=method,
            headers=self.headers,
            data=json.dumps(body).encode() if body is not None else None,
        )
        try:
            with self.opener.open(request, timeout=PATIENCE) as answer:
                text = answer.read(MOST_ANSWER + 1)
            if len(text) > MOST_ANSWER:
                raise Failure("unreachable", f"it answers more than {MOST_ANSWER >> 20} MiB")
            return json.loads(text)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            text = error.read(MOST_ERROR).decode("utf-8", "replace")
            kind = "refused" if error.code in (401, 403) else "failed"
            raise Failure(kind, f"status code {error.code}: {last_line(text)}") from error
        except ValueError as error:
            raise Failure("unreachable", f"what answers there isn't a dashboard of Ray: {error}") from error
        except urllib.error.URLError as error:
            raise Failure("unreachable", str(error.reason)) from error
        except (OSError, http.client.HTTPException) as error:
            raise Failure("unreachable", f"{type(error).__name__}: {error}") from error

    def version(self):
        answer = self.ask("GET", "/api/version")
        if not isinstance(answer, dict) or "ray_version" not in answer:
            raise Failure("unreachable", "what answers there isn't a dashboard of Ray: it has no /api/version")
        return answer["ray_version"]

    def submit(self, job, command, metadata):
        body = {"entrypoint": command, "submission_id": job, "metadata": metadata}
        if self.ask("POST", "/api/jobs/", body) is None:
            raise Failure("failed", "status code 404: it takes no jobs")

    def job(self, job):
        return self.ask("GET", f"/api/jobs/{job}")

    def jobs(self):
        return self.ask("GET", "/api/jobs/") or []

    def stop(self, job):
        self.ask("POST", f"/api/jobs/{job}/stop")


class RaysClient:
    """The same by Ray's own client: for addresses of a cluster ("auto"), of other schemes, and its other ways to log
    in."""

    def __init__(self, address):
        try:
            import ray
            from ray.job_submission import JobSubmissionClient
        except ImportError as error:
            raise Failure("no_ray", str(error)) from error
        check_version(ray.__version__, sys.executable)
        try:
            self.client = JobSubmissionClient(address)
        except RuntimeError as error:
            if "parsed from address" not in str(error):
                raise
            raise Failure("unreachable", " ".join(str(error).split())) from error  # a scheme that Ray doesn't know
        self.own_version = ray.__version__

    def version(self):
        return str(getattr(self.client, "_server_ray_version", None) or self.own_version)

    def submit(self, job, command, metadata):
        self.client.submit_job(entrypoint=command, submission_id=job, metadata=metadata)

    @staticmethod
    def as_answer(job):
        return {
            "submission_id": job.submission_id,
            "status": str(job.status.value),
            "message": job.message,
            "metadata": job.metadata,
            "driver_exit_code": job.driver_exit_code,
        }

    def job(self, job):
        try:
            return self.as_answer(self.client.get_job_info(job))
        except RuntimeError as error:
            if is_unknown(error):
                return None
            raise

    def jobs(self):
        return [self.as_answer(job) for job in self.client.list_jobs()]

    def stop(self, job):
        try:
            self.client.stop_job(job)
        except RuntimeError as error:
            if not is_unknown(error):
                raise


def submit(client, script, after):
    with open(script, encoding="utf-8") as file:
        asked = asked_of(file.read())
    job = f"muster-{asked['experiment']}-{secrets.token_hex(4)}"
    metadata = {
        "muster_experiment": asked["experiment"],
        "muster_project": asked["project"],
        "muster_folder": asked["folder"],
    }
    try:
        client.submit(job, entrypoint(asked, job, after), metadata)
    except (Failure, OSError) as error:
        if isinstance(error, Redirected) or getattr(error, "kind", "unreachable") != "unreachable":
            raise
        raise Failure("failed", f"it may have taken job {job}, and hasn't answered: {error}") from error
    return {"id": job}


def is_unknown(error):
    return "status code 404" in str(error) or "does not exist" in str(error)


def own_lines(message):
    """Returns the message with the job's own last lines, without what Ray has written among them."""
    lines = [line for line in message.splitlines() if not line.startswith("Running entrypoint for job ")]
    return "\n".join(lines[-LINES_OF_MESSAGE:])[-MOST_MESSAGE:]


def news_of(job):
    return {
        "status": job["status"],
        "message": own_lines(job.get("message") or ""),
        "exit_code": job.get("driver_exit_code"),
    }


def look(client, ids):
    if len(ids) > FEW_JOBS:
        found = {job["submission_id"]: job for job in client.jobs() if job.get("submission_id") in ids}
    else:
        found = {one: job for one in ids if (job := client.job(one)) is not None}
    return {"jobs": {one: news_of(job) for one, job in found.items()}}


def free(client, job):
    """Tells the job's driver by a file in the folder of its experiment, which every command sees."""
    found = client.job(job)
    folder = ((found or {}).get("metadata") or {}).get("muster_folder")
    if not folder:
        raise Failure("failed", f"job {job} isn't one of muster, or Ray doesn't know it any more")
    with open(os.path.join(folder, f"job_free.{job}"), "w", encoding="utf-8"):
        return {"freed": True}


def do(words):
    command, address = words[0], words[1]
    client = Dashboard(address) if Dashboard.takes(address) else RaysClient(address)
    if command in ("version", "submit"):
        version = client.version()
        check_version(version, address)
        if command == "version":
            return {"version": version}
        return submit(client, words[2], words[3] if len(words) > 3 else "")
    if command == "look":
        return look(client, words[2:])
    if command == "free":
        return free(client, words[2])
    client.stop(words[2])
    return {"stopped": True}


def answer(words):
    try:
        return do(words)
    except ConnectionError as error:
        raise Failure("unreachable", str(error)) from error
    except RuntimeError as error:
        forbidden = any(sign in str(error) for sign in FORBIDDEN)
        raise Failure("refused" if forbidden else "failed", str(error)) from error
    except (OSError, ValueError, KeyError, TypeError) as error:  # what requests raises is an OSError
        raise Failure("unreachable", f"{type(error).__name__}: {error}") from error
    except Exception as error:
        if type(error).__name__ != "AuthenticationError":  # of newer ones of Ray
            raise
        raise Failure("refused", str(error)) from error


def main(words):
    logging.disable(logging.CRITICAL)
    try:
        print(json.dumps(answer(words)))
        return 0
    except Failure as failure:
        print(json.dumps({"error": failure.kind, "text": failure.text}))
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
