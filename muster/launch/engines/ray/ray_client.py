"""Asks Ray's Jobs API for the command `muster`, which has this program in itself and runs it with a python that has Ray.

    ray_client.py version ADDRESS          {"version": "2.60.0"}
    ray_client.py submit ADDRESS SCRIPT [AFTER]  {"id": "muster-1-0a1b2c3d"}; AFTER: jobs, "A:B", in place of the script's
    ray_client.py look ADDRESS ID...       {"jobs": {ID: {"status": "RUNNING", "message": "..."}}}; unknown ones are left out
    ray_client.py stop ADDRESS ID          {"stopped": true}; also of a job that has ended, or that Ray doesn't know

It prints one JSON object. An error is {"error": KIND, "text": ...} and exit code 1; KIND is no_ray, unreachable, refused
or failed (docs/ray_engine.md).
"""

import json
import logging
import os
import secrets
import shlex
import sys

LEAST_VERSION = (2, 9)  # of Ray, on both sides: older ones are never tried
FEW_JOBS = 4  # are asked for one by one; more come in one answer
LINES_OF_MESSAGE = 5
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


def submit(client, script, after):
    with open(script, encoding="utf-8") as file:
        asked = asked_of(file.read())
    job = f"muster-{asked['experiment']}-{secrets.token_hex(4)}"
    client.submit_job(
        entrypoint=entrypoint(asked, job, after),
        submission_id=job,
        metadata={"muster_experiment": asked["experiment"], "muster_project": asked["project"]},
    )
    return {"id": job}


def is_unknown(error):
    return "status code 404" in str(error) or "does not exist" in str(error)


def own_lines(message):
    """Returns the message with the job's own last lines, without what Ray has written among them."""
    lines = [line for line in message.splitlines() if not line.startswith("Running entrypoint for job ")]
    return "\n".join(lines[-LINES_OF_MESSAGE:])


def look(client, ids):
    found = {}
    if len(ids) > FEW_JOBS:
        for job in client.list_jobs():
            if job.submission_id in ids:
                found[job.submission_id] = job
    else:
        for one in ids:
            try:
                found[one] = client.get_job_info(one)
            except RuntimeError as error:
                if not is_unknown(error):
                    raise
    jobs = {one: {"status": str(job.status.value), "message": own_lines(job.message or "")} for one, job in found.items()}
    return {"jobs": jobs}


def stop(client, job):
    try:
        client.stop_job(job)
    except RuntimeError as error:
        if not is_unknown(error):
            raise
    return {"stopped": True}


def answer(words):
    try:
        import ray
        from ray.job_submission import JobSubmissionClient
    except ImportError as error:
        raise Failure("no_ray", str(error)) from error
    check_version(ray.__version__, sys.executable)
    command, address = words[0], words[1]
    try:
        client = JobSubmissionClient(address)
        cluster = str(getattr(client, "_server_ray_version", None) or ray.__version__)
        check_version(cluster, address)
        if command == "version":
            return {"version": cluster}
        if command == "submit":
            return submit(client, words[2], words[3] if len(words) > 3 else "")
        if command == "look":
            return look(client, words[2:])
        return stop(client, words[2])
    except ConnectionError as error:
        raise Failure("unreachable", str(error)) from error
    except RuntimeError as error:
        forbidden = any(sign in str(error) for sign in FORBIDDEN)
        raise Failure("refused" if forbidden else "failed", str(error)) from error
    except (OSError, ValueError) as error:  # what requests raises is an OSError
        raise Failure("unreachable", f"{type(error).__name__}: {error}") from error


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
