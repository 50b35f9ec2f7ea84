"""What the driver of a job of Spark says and decides without Spark: how many slots there can be, what is set, why Spark has
failed."""

import re

from host_process import one_line

MOST_CAUSE = 600  # characters of what Spark says
# What Spark's log has where the two sides of a connection have different secrets, or one has none.
OTHER_SECRET = re.compile(r"SaslException: .*|Expected SaslMessage.*|Authentication failed.*")
# Spark's own rule for what isn't shown, and what it leaves out: fs.azure.account.key, AWS_ACCESS_KEY_ID, credentials.
SECRET = re.compile(r"secret|passw|passphrase|token|credential|(access|account|api|private)[._-]?key", re.IGNORECASE)


def cores_of_master(master):
    """Returns the executors and the cores of each that an address names; None: it names none."""
    if found := re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*\d+\s*\]", master):
        return int(found[1]), int(found[2])
    if found := re.fullmatch(r"local\[(\d+)(?:\s*,\s*\d+)?\]", master):
        return 1, int(found[1])
    return (1, 1) if master == "local" else None


def own_settings(asked, master):
    """Returns what is set unless the user has set it: one task fills an executor, and there are as many of these as parts."""
    nodes = asked["nodes"]
    stated = asked["conf"]
    named = cores_of_master(master)
    # One that is a thread of this JVM fills none.
    whole = named[1] if named and master.startswith("local-cluster") else max(1, asked["cpus"])
    cores = stated.get("spark.executor.cores") or str(whole)
    settings = {
        "spark.app.name": f"muster experiment {asked['experiment']} of {asked['project']}",
        "spark.executor.instances": str(nodes),
        "spark.executor.cores": cores,
        "spark.executor.memory": "512m",  # Spark's own heap, which computes nothing
        "spark.ui.showConsoleProgress": "false",
        "spark.speculation": "false",
    }
    task = stated.get("spark.task.cpus")
    if task is None and not master.startswith("local["):
        task = settings["spark.task.cpus"] = cores
    if cores.isdigit() and (task or "1").isdigit():
        per_executor = max(1, int(cores) // max(1, int(task or 1)))
        settings["spark.cores.max"] = str(-(-nodes // per_executor) * int(cores))
    if asked["mem_mib"]:
        settings["spark.executor.memoryOverhead"] = f"{asked['mem_mib']}m"
    if asked["gpus"]:
        settings["spark.executor.resource.gpu.amount"] = str(asked["gpus"])
        settings["spark.task.resource.gpu.amount"] = str(asked["gpus"])
    return {name: value for name, value in settings.items() if name not in stated}


def hides_gpus(asked):
    """Whether a host's devices are Spark's to give, and this job has asked for none of them."""
    return not asked["gpus"] and "spark.task.resource.gpu.amount" not in asked["conf"]


def submit_words(asked, own):
    """Returns what spark-submit is told. What may be secret isn't among it: words of a process are
    for everybody to read."""
    words = ["--deploy-mode", "client"]
    if asked["address"]:
        words += ["--master", asked["address"]]
    for name, value in sorted({**own, **asked["conf"]}.items()):
        if not SECRET.search(name):
            words += ["--conf", f"{name}={value}"]
    return [*words, "pyspark-shell"]


def secret_settings(asked):
    return {name: value for name, value in asked["conf"].items() if SECRET.search(name)}


def counted(number, what):
    return f"{number} {what}{'' if number == 1 else 's'}"


def number_of(settings, name):
    """Returns a setting that is a whole number; None: it isn't stated, or isn't one."""
    value = settings.get(name)
    return int(value) if value is not None and re.fullmatch(r"\d+", str(value)) else None


def most_slots(settings):
    """Returns how many tasks can ever run at once with these settings of Spark, and why; None: nobody can know."""
    master = settings.get("spark.master", "")
    task = max(1, number_of(settings, "spark.task.cpus") or 1)
    if named := cores_of_master(master):
        executors, cores = named
        return executors * (cores // task), f"{master} has {counted(executors, 'executor')} with {counted(cores, 'core')} each"
    cores = number_of(settings, "spark.executor.cores")
    if cores is not None and cores < task:
        return 0, f"spark.executor.cores is {cores}"
    found = []
    if master.startswith("spark:") and (most := number_of(settings, "spark.cores.max")) is not None:
        found.append((most // task, f"spark.cores.max is {most}"))
    if not master.startswith("spark:") and cores and (count := number_of(settings, "spark.executor.instances")) is not None:
        found.append((count * (cores // task), f"spark.executor.instances is {count}, spark.executor.cores {cores}"))
    return min(found) if found else None


def is_true(value):
    return str(value).strip().lower() == "true"


def why_never(settings, nodes, address, least=None):
    """Returns why a job can never begin with these settings, for which that many tasks must run at once, or the least number of
    them; "" if it may."""
    master = settings.get("spark.master", "")
    if not address and master.startswith("local"):
        return (
            "on which cluster of Spark? Neither `spark: {address: …}` (--address) nor spark.master in spark-defaults.conf says "
            "it; accepted: spark://HOST:7077, yarn, k8s://…, local-cluster[N,CORES,MB]"
        )
    if is_true(settings.get("spark.dynamicAllocation.enabled", "false")):
        return (
            f"spark.dynamicAllocation.enabled is true, and the {counted(nodes, 'task')} must run at once, for which Spark's "
            "barrier mode takes no dynamic allocation; accepted: `spark: {conf: {spark.dynamicAllocation.enabled: false}}`"
        )
    if not cause_of_never(settings, least or nodes):
        return ""
    return f"{cause_of_never(settings, nodes)}; ask for fewer (spark: nodes), or for more slots (spark: conf)"


def cause_of_never(settings, nodes):
    """Returns why there can never be slots for that many tasks at once; "" if there may be."""
    most = most_slots(settings)
    if most is None or most[0] >= nodes:
        return ""
    task = number_of(settings, "spark.task.cpus") or 1
    return (
        f"Spark can never run {counted(nodes, 'task')} at once: {most[1]} and spark.task.cpus {task}, so there "
        f"{'is' if most[0] == 1 else 'are'} {counted(most[0], 'slot')}"
    )


def begins_with(tasks, nodes, why):
    """Returns that a job begins with fewer tasks of Spark than it has asked for, and why there aren't more."""
    return f"begins with {tasks} of {counted(nodes, 'task')} of Spark, as nobody waits for that of the evaluator: {why}"


def slots_now(nodes, slots):
    return f"{slots} of {counted(nodes, 'slot')}"


def are_slots(nodes, slots):
    return f"{'is' if slots == 1 else 'are'} {slots_now(nodes, slots)}"


def why_waits(nodes, slots):
    if slots >= nodes:
        return f"waits for {counted(nodes, 'task')} of Spark to begin, for which there are slots"
    return f"waits for {counted(nodes, 'task')} of Spark at once; now there {are_slots(nodes, slots)}"


def why_late(nodes, slots, seconds):
    return (
        f"Spark has given {slots_now(nodes, slots)} within {seconds:g} s (spark: start_timeout): is the cluster full, or too "
        "small? Ask for fewer nodes, or for less on each (resources, spark: conf), or wait longer"
    )


WAITS_FOR_JVM = "waits for Spark's JVM to start"
NO_JVM = ("Spark's JVM didn't start; spark.log in the experiment's folder says why: a Java that this Spark doesn't take, an option "
          "of spark: conf")


def why_jvm_late(seconds):
    return (
        f"Spark's JVM hasn't started within {seconds:g} s (spark: start_timeout): spark.log in the experiment's folder has what "
        "spark-submit says"
    )


JVM_HANGS = ("Spark's JVM doesn't answer any more: its memory may be at its end (spark: conf: spark.driver.memory), or this machine's; "
             "spark.log in the experiment's folder may say more")


def why_lost(error, has_died):
    """Returns why Spark can't be asked any more, or refuses what every job asks. `has_died`: its JVM."""
    if has_died:
        return f"Spark's JVM has died: {why_failed(error)}; spark.log in the experiment's folder may say why"
    return f"Spark can't go on with the job: {why_failed(error)}"


def why_not_yet(address):
    return f"waits for Spark at {address or 'the address of spark-defaults.conf'} to begin the job's application"


def why_not_accepted(address, seconds):
    return (
        f"Spark at {address or 'the address of spark-defaults.conf'} hasn't begun the job's application within {seconds:g} s "
        "(spark: start_timeout); its queue may be full: spark.log in the experiment's folder has what Spark says"
    )


def why_other_secret(log, master):
    """Returns that a standalone cluster has another secret than the job, where Spark's log says so; "" otherwise. On YARN and
    Kubernetes Spark makes a secret itself, and such words are about the user's own rights."""
    said = OTHER_SECRET.search(log)
    if said is None or not master.startswith("spark:"):
        return ""
    return (
        f"Spark at {master} doesn't have the secret of this job: spark.authenticate and "
        f"spark.authenticate.secret (spark: conf) must be those of the cluster ({one_line(said[0], MOST_CAUSE)})"
    )


def why_failed(error):
    """Returns the cause among what an exception of PySpark says: what Java's exception says, without the stack."""
    text = str(error)
    lines = text.splitlines()
    for i, line in enumerate(lines):
        cause = re.sub(r"^(Caused by: |: )", "", line.strip())
        if re.match(r"[\w.$]+(Exception|Error)\b", cause):
            stack = [j for j in range(i, len(lines)) if re.match(r"\s+at |Driver stacktrace", lines[j])]
            said = [re.sub(r"^(?:[a-z]\w*\.)+(?=[A-Z])", "", cause), *lines[i + 1:stack[0] if stack else len(lines)]]
            # Python's own stack, which stands before what has happened, is indented.
            told = " ".join(one for one in said if not one.startswith("  "))
            told = re.sub(r"\S*PythonException: .*?Traceback \(most recent call last\):", "", told)
            return one_line(re.sub(r"^.*Most recent failure reason: ", "", told), MOST_CAUSE)
    return one_line(text, MOST_CAUSE) or type(error).__name__
