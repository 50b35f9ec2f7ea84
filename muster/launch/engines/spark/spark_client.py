"""Starts jobs of Spark for the command `muster`, which has this program in itself; a job's driver has it beside it.

    spark_client.py check ADDRESS             {"spark": "4.0.1", "java": "/usr/bin/java"}
    spark_client.py submit ADDRESS SCRIPT [AFTER]  {"id": "h1-4711-81234"}; AFTER: jobs, "A:B", in place of the script's

ADDRESS is a master of Spark, or - for the one of spark-defaults.conf. It prints one JSON object. An error is {"error":
KIND, "text": ...} and exit code 1; KIND is no_spark, no_java, unreachable or refused (docs/spark_engine.md).
"""

import glob
import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading

LEAST_VERSION = (3, 4)  # of Spark: older ones are never tried
PATIENCE = 5.0  # seconds for a master to take a connection, and for its name to be known
SUBMIT = "bin/spark-submit"
FORMS = "spark://HOST:PORT, yarn, k8s://https://HOST:PORT, local-cluster[N,CORES,MB] or local[N]"


class Failure(Exception):
    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind
        self.text = text


def find_pyspark():
    """Sees to it that pyspark can be imported: this python's own, or the one below SPARK_HOME. Returns its folder."""
    home = os.environ.get("SPARK_HOME", "")
    if home:  # a distribution of Spark, whose jars fit none but its own pyspark
        folder = os.path.join(home, "python")
        archives = glob.glob(os.path.join(folder, "lib", "py4j-*-src.zip"))
        if os.path.isdir(os.path.join(folder, "pyspark")) and archives:
            sys.path[:0] = [folder, *archives]
    else:
        os.environ.pop("SPARK_HOME", None)  # pyspark would take an empty one for a folder
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise Failure("no_spark", f"{sys.executable} has no pyspark" + (f", nor has SPARK_HOME ({home})" if home else ""))
    return spec.submodule_search_locations[0]


def find_home(folder):
    """Returns where Spark's own programs are: SPARK_HOME, or what belongs to the pyspark in this folder."""
    stated = os.environ.get("SPARK_HOME", "")
    above = os.path.dirname(os.path.dirname(folder))  # a distribution whose python/ is in PYTHONPATH
    for home in [stated] if stated else [os.path.join(folder, "spark-distribution"), folder, above]:
        if os.access(os.path.join(home, SUBMIT), os.X_OK):
            return home
    if stated:
        raise Failure("refused", f"SPARK_HOME ({stated}) is no installation of Spark, as it has no {SUBMIT}; accepted: the folder "
                                 "of one, or without SPARK_HOME that of pip's pyspark")
    raise Failure("no_spark", f"the pyspark of {sys.executable} in {folder} has no {SUBMIT}")


def version_of(folder):
    try:
        with open(os.path.join(folder, "version.py"), encoding="utf-8") as file:
            found = re.search(r"__version__[^\"']*[\"']([^\"']+)", file.read())
    except OSError:
        found = None
    return found[1] if found else "?"


def check_version(text):
    numbers = tuple(int(one) for one in re.findall(r"\d+", text)[:2])
    if numbers and numbers < LEAST_VERSION:
        least = ".".join(str(number) for number in LEAST_VERSION)
        raise Failure("refused", f"{sys.executable} has Spark {text}; accepted: Spark {least} or newer")


def find_java():
    home = os.environ.get("JAVA_HOME", "")
    found = shutil.which(os.path.join(home, "bin", "java")) if home else shutil.which("java")
    if not found:
        raise Failure("no_java", f"JAVA_HOME is {home}, and has no bin/java" if home else "there is no java in PATH")
    return found


def check_address(address):
    """Refuses what Spark would, and what doesn't answer."""
    if address == "-" or re.match(r"(local$|local\[|local-cluster\[|k8s://)", address):
        return
    if address == "yarn":
        if not os.environ.get("HADOOP_CONF_DIR") and not os.environ.get("YARN_CONF_DIR"):
            raise Failure("refused", "for yarn, HADOOP_CONF_DIR or YARN_CONF_DIR must name the folder with the cluster's files")
        return
    if not address.startswith("spark://"):
        raise Failure("refused", f"'{address}' is no address of Spark; accepted: {FORMS}")
    masters = [one.rpartition(":") for one in address[len("spark://"):].split(",")]
    for host, _, port in masters:
        if not host or not re.fullmatch(r"\d{1,5}", port) or not 0 < int(port) < 1 << 16:
            raise Failure("refused", f"'{address}' names a master without a host or a port; accepted: {FORMS}")
    why = []
    for host, _, port in masters:
        silent = why_silent(host.strip("[]"), int(port))
        if not silent:
            return
        why.append(f"{host}:{port}: {silent}")
    raise Failure("unreachable", "; ".join(why))


def why_silent(host, port):
    """Returns why nobody takes a connection there; "" if somebody does. A name server that doesn't answer has a patience of
    its own, so this waits for it in another thread, which ends with the process."""
    said = []

    def connect():
        try:
            socket.create_connection((host, port), timeout=PATIENCE).close()
            said.append("")
        except (OSError, ValueError) as error:  # ValueError: no name can be like this
            said.append(str(error))

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return said[0] if said else f"no answer within {PATIENCE:g} s"


def check(address):
    folder = find_pyspark()
    version = version_of(folder)
    check_version(version)
    find_home(folder)
    java = find_java()
    check_address(address)
    return {"spark": version, "java": java}


def start_of(pid):
    """Returns when a process began, in ticks since the boot; None: there is none, or it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            words = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if words[0] in "ZX" else int(words[19])


def job_of(pid):
    """Returns the id of the job whose driver is that process."""
    return f"{socket.gethostname()}-{pid}-{start_of(pid) or 0}"


def lives(job):
    """Returns whether that job's driver runs, on this machine."""
    host, _, rest = job.rpartition("-")[0].rpartition("-")
    return host == socket.gethostname() and rest.isdigit() and str(start_of(rest)) == job.rpartition("-")[2]


def submit(address, script, after):
    check(address)
    folder = os.path.dirname(script)
    log = os.open(os.path.join(folder, "spark.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    program = subprocess.Popen(
        ["/bin/sh", script, *([after] if after else [])],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        cwd=folder,
        start_new_session=True,
    )
    return {"id": job_of(program.pid)}


def main(words):
    try:
        if words[0] == "check":
            answer = check(words[1])
        else:
            answer = submit(words[1], words[2], words[3] if len(words) > 3 else "")
        print(json.dumps(answer))
        sys.stdout.flush()
        return 0
    except Failure as failure:
        print(json.dumps({"error": failure.kind, "text": failure.text}))
    except OSError as error:
        print(json.dumps({"error": "refused", "text": str(error)}))
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
