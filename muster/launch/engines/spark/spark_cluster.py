"""What the driver asks of Spark: an application, as many slots as there are parts, and a barrier stage whose tasks stay
connected to the driver."""

import os
import secrets
import sys
import threading
import time

import spark_texts
from driver_server import NoHosts, different_names
from host_process import digest_of
from spark_client import Failure, find_home, find_pyspark
from spark_jvm import Jvm
from spark_links import Host, Links
from spark_task import Part

SHIPPED = ("host_process.py", "spark_wire.py", "spark_task.py")  # to the executors
LOOK = 0.5  # seconds between two looks at what Spark has
PATIENCE_OF_ALL = 10.0  # seconds that a job waits for all slots while there is the least number of them
LIVES = 4  # of the stage in a row, of which all but the last may end
STEADY = 600.0  # seconds after which the end of a life is none in a row
MOST_LOG = 1 << 20  # characters of Spark's log that are looked at
END_PATIENCE = 15.0  # seconds for the stage to end by itself, for the application, and for the JVM
ANSWER_PATIENCE = 30.0  # seconds that Spark has for an answer at least: less is no sign that its JVM hangs
DEATH_PATIENCE = 1.0  # seconds between the last word of a JVM that dies and the end of its process


class TooLate(Exception):
    """Something takes longer than the start may."""


class Cluster:
    def __init__(self, asked, say, waits):
        self.asked = asked
        self.say = say
        self.waits = waits  # says why the job waits
        self.parts = asked["nodes"]  # of the stage: as many as tasks, slots and hosts
        self.least = asked.get("least_nodes", self.parts)  # with so many it can begin
        self.says = ""  # what the user is to read about them
        self.jvm = Jvm()
        self.context = None
        self.gateway = None
        self.links = None
        self.stage = None
        self.until = 0.0
        self.silent_since = None  # when the JVM was first asked in vain by a start that waits; None: it has answered since
        self.log = os.path.join(asked["folder"], "spark.log")
        self.log_begin = os.path.getsize(self.log) if os.path.exists(self.log) else 0  # behind what earlier attempts have said

    # --- the application ---

    def connect(self):
        """Starts Spark's JVM by the installation's spark-submit, checks what is set there, and begins the application."""
        self.until = time.monotonic() + self.asked["start_timeout"]
        try:
            home = find_home(find_pyspark())
        except Failure as failure:
            raise NoHosts(failure.text) from failure
        # It stands for a client of another server, and for a JVM of somebody else.
        for name in ("SPARK_REMOTE", "SPARK_API_MODE"):
            os.environ.pop(name, None)
        self.forget_gateway()
        conf = self.asked["conf"]
        os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ["PYSPARK_PYTHON"] = (conf.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
                                        or self.asked["python"])
        own = spark_texts.own_settings(self.asked, self.asked["address"])
        seconds = self.asked["start_timeout"]
        self.waits(spark_texts.WAITS_FOR_JVM)
        try:
            told = self.jvm.start(home, spark_texts.submit_words(self.asked, own), self.until, seconds)
            settings = self.in_time(lambda: self.attach(*told))
        except NoHosts:
            raise
        except TooLate as late:
            raise NoHosts(spark_texts.why_jvm_late(seconds)) from late
        except Exception as error:  # PySpark has its own kinds
            raise NoHosts(f"Spark: {spark_texts.why_failed(error)}") from error
        stated = dict(settings.getAll())
        if why := spark_texts.why_never(stated, self.parts, self.asked["address"], self.least):
            raise NoHosts(why)
        if cause := spark_texts.cause_of_never(stated, self.parts):
            self.begin_with_least(cause)
        self.waits(spark_texts.why_not_yet(self.asked["address"]))
        try:
            self.in_time(lambda: self.begin(settings), lambda: self.why_other_secret(stated))
        except NoHosts:
            raise
        except TooLate as late:
            raise NoHosts(spark_texts.why_not_accepted(self.asked["address"], seconds)) from late
        except Exception as error:  # of Java, of PySpark, of the operating system
            raise NoHosts(self.why_other_secret(stated) or f"Spark refuses it: {spark_texts.why_failed(error)}") from error

    def why_other_secret(self, settings):
        try:
            with open(self.log, encoding="utf-8", errors="replace") as file:
                file.seek(self.log_begin)
                return spark_texts.why_other_secret(file.read(MOST_LOG), settings.get("spark.master", ""))
        except OSError:
            return ""

    def in_time(self, work, why_hopeless=lambda: "", until=None):
        """Returns what it returns, or raises what it raises. TooLate: it hasn't ended at `until`, and goes on in its thread.
        NoHosts: likewise, and `why_hopeless` says why it will never end well. `until`: by time.monotonic(); None: the
        application must have begun by then."""
        ends = []

        def run():
            try:
                ends.append((work(), None))
            except Exception as error:  # for the caller
                ends.append((None, error))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        while not ends and time.monotonic() < (self.until if until is None else until):
            thread.join(LOOK)
            if not ends and (why := why_hopeless()):
                raise NoHosts(why)
        if not ends:
            raise TooLate
        result, error = ends[0]
        if error is not None:
            raise error
        return result

    def ask(self, work, until=0.0):
        """Returns what it returns: something that Spark answers soon, if its JVM lives. It may take until then, and
        ANSWER_PATIENCE in any case. NoHosts: why there is no answer."""
        try:
            answer = self.in_time(work, until=max(until, time.monotonic() + ANSWER_PATIENCE))
        except TooLate as late:
            raise NoHosts(spark_texts.JVM_HANGS) from late
        except Exception as error:  # of Java, of PySpark, of the operating system, of a JVM that has died
            raise NoHosts(spark_texts.why_lost(error, self.jvm.await_end(DEATH_PATIENCE))) from error
        self.silent_since = None
        return answer

    def attach(self, port, secret):
        """Connects to the JVM. Returns Spark's settings: those of spark-defaults.conf, and in their place the job's."""
        from pyspark import SparkConf, SparkContext
        from pyspark.java_gateway import launch_gateway

        os.environ.update(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=secret)
        try:
            self.gateway = launch_gateway()
        finally:
            self.forget_gateway()  # no process that begins here may have it
        SparkContext._ensure_initialized(gateway=self.gateway)
        return SparkConf(_jvm=self.gateway.jvm).setAll(list(spark_texts.secret_settings(self.asked).items()))

    @staticmethod
    def forget_gateway():
        for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"):
            os.environ.pop(name, None)

    def begin(self, settings):
        from pyspark import SparkContext

        self.context = SparkContext(conf=settings, gateway=self.gateway)
        self.context.setLogLevel("ERROR")

    def why_never(self):
        return ""  # connect has looked, before there was an application

    # --- the slots ---

    def slots(self):
        """Returns how many tasks may run at once now; None: Spark has ended the application. It counts for Spark's own check of
        a barrier stage, too."""
        spark = self.context._jsc.sc()
        if spark.isStopped():
            return None
        return spark.maxNumConcurrentTasks(spark.resourceProfileManager().defaultResourceProfile())

    def waits_now(self):
        """Returns what is waited for. A JVM that doesn't answer for `start_timeout` counts as dead: it would never say that its
        stage has ended, either."""
        asked_at = time.monotonic()
        try:
            slots = self.ask(self.slots)
        except NoHosts as why:
            self.silent_since = self.silent_since or asked_at
            if time.monotonic() - self.silent_since >= self.asked["start_timeout"]:
                self.links.give_up(str(why))
            return f"waits for Spark, which doesn't answer: {why}"
        return spark_texts.why_waits(self.parts, slots or 0)

    def begin_with_least(self, why):
        """From now on the job is for the least number of tasks."""
        self.says = spark_texts.begins_with(self.least, self.parts, why)
        self.parts = self.least

    def await_group(self, waits):
        """Waits for all slots, or for the least number if for some time there have been these, but not all. Then begins the
        stage."""
        nodes = self.asked["nodes"]
        least_since = None
        while True:
            slots = self.ask(self.slots, self.until)
            if slots is None:
                raise NoHosts("Spark has ended the job's application before it had its executors: spark.log in the experiment's "
                              "folder says why")
            if slots >= self.parts:
                break
            now = time.monotonic()
            least_since = None if slots < self.least else now if least_since is None else least_since
            # Half of the time that is left is for the tasks to connect.
            if least_since is not None and now - least_since >= min(PATIENCE_OF_ALL, (self.until - least_since) / 2):
                self.begin_with_least(f"there {spark_texts.are_slots(nodes, slots)} now")
                break
            if now > self.until:
                raise NoHosts(spark_texts.why_late(self.parts, slots, self.asked["start_timeout"]))
            waits(spark_texts.why_waits(self.parts, slots) + (f"; it {self.says}" if self.says else ""))
            time.sleep(LOOK)
        self.say(f"muster: Spark has {spark_texts.slots_now(nodes, slots)}; dynamic allocation is off")
        self.begin_stage()

    # --- the stage ---

    def begin_stage(self):
        key = secrets.token_bytes(32)
        self.links = Links(key, self.asked["ports"])
        part = self.ask(lambda: self.ship(key), self.until)
        self.stage = threading.Thread(target=self.run_stage, args=(part,), daemon=True)
        self.stage.start()

    def ship(self, key):
        """Gives Spark what its tasks need. Returns what each of them does."""
        address = (self.context.getConf().get("spark.driver.host"), self.links.port)
        own_folder = os.path.dirname(os.path.abspath(__file__))
        shared_folder = os.path.dirname(os.path.abspath(sys.modules["host_process"].__file__))
        for name in SHIPPED:
            folder = own_folder if os.path.exists(os.path.join(own_folder, name)) else shared_folder
            self.context.addPyFile(os.path.join(folder, name))
        path = self.asked["muster"]
        with open(path, "rb") as file:
            program = self.context.broadcast(file.read())
        cores = self.context.getConf().get("spark.executor.cores") or "1"
        return Part(address, key, path, digest_of(path), program, cores, spark_texts.hides_gpus(self.asked))

    def run_stage(self, part):
        """Runs the stage until the job ends. Spark ends all of its tasks when one dies, and doesn't begin it again itself."""
        lives = 0
        while not self.links.given_up:
            began = time.monotonic()
            why = self.run_once(part)
            if self.links.given_up:
                return
            lives = 1 if time.monotonic() - began > STEADY else lives + 1
            if lives == LIVES:
                return self.links.give_up(f"Spark's stage has ended {LIVES} times in a row: {why}")
            self.say(f"muster: Spark's stage has ended, and begins again: {why}")
            if not self.await_slots():
                return

    def run_once(self, part):
        """Returns why the stage has ended."""
        try:
            self.context.parallelize(range(self.parts), self.parts).barrier().mapPartitions(part).collect()
            return "its tasks have returned"
        except Exception as error:  # of Java, of PySpark, of a JVM that has died
            return spark_texts.why_failed(error)

    def await_slots(self):
        """Waits for as many slots as the stage needs again. Returns whether they are there."""
        until = time.monotonic() + self.asked["start_timeout"]
        try:
            while not self.links.given_up and (slots := self.ask(self.slots, until)) is not None:
                if slots >= self.parts:
                    return True
                if time.monotonic() > until:
                    self.links.give_up(spark_texts.why_late(self.parts, slots, self.asked["start_timeout"]))
                time.sleep(LOOK)
            self.links.give_up("Spark has ended the job's application: spark.log in the experiment's folder says why")
        except NoHosts as why:
            self.links.give_up(str(why))
        return False

    def hosts(self):
        """Waits until all tasks are connected. Returns the hosts and their addresses."""
        with self.links.changed:
            while len(self.links.links) < self.parts:
                if self.links.given_up:
                    raise NoHosts(self.links.given_up)
                if time.monotonic() > self.until:
                    raise NoHosts(f"{len(self.links.links)} of {self.parts} tasks of Spark have reached the job's driver within "
                                  f"{self.asked['start_timeout']:g} s (spark: start_timeout): the executors must reach this host")
                self.links.changed.wait(LOOK)
            places = [self.links.links[partition].place for partition in range(self.parts)]
        hosts = [Host(partition, name) for partition, name in enumerate(different_names(places))]
        return hosts, [place["address"] for place in places]

    def end(self):
        """Ends the stage and the application, whatever there is of them."""
        if self.links is not None:
            self.links.close()
        if self.stage is not None:
            self.stage.join(END_PATIENCE)
        if self.context is not None:
            try:
                self.in_time(self.stop, until=time.monotonic() + END_PATIENCE)
            except Exception:  # its JVM has died, or hangs
                pass
        self.jvm.end(0 if self.gateway is None else END_PATIENCE)

    def stop(self):
        if self.stage is not None and self.stage.is_alive():
            self.context.cancelAllJobs()
        self.context.stop()
