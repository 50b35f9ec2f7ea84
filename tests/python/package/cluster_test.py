"""muster.ClusterSpec and muster.TaskConfig."""

import json
import os
import unittest
import unittest.mock

import muster

CLUSTER = {"ps": ["a:1"], "worker": ["b:2", "c:3"]}
ROLES = ("TF_CONFIG", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT", "MUSTER_RESOLVE",
         "MUSTER_PS", "SLURM_JOB_ID", "SLURM_STEP_ID")


class ClusterSpecTest(unittest.TestCase):
    def test_lists_and_known_tasks(self) -> None:
        spec = muster.ClusterSpec({**CLUSTER, "evaluator": {3: "d:4"}})
        self.assertEqual(spec.jobs, ["evaluator", "ps", "worker"])
        self.assertEqual((spec.num_tasks("worker"), spec.num_tasks("none")), (2, 0))
        self.assertEqual((spec.tasks("evaluator"), spec.task_address("worker", 1)), ({3: "d:4"}, "c:3"))

    def test_text_there_and_back(self) -> None:
        spec = muster.ClusterSpec(CLUSTER)
        self.assertEqual(json.loads(spec.to_json()), CLUSTER)
        self.assertEqual(muster.ClusterSpec.from_json(spec.to_json()), spec)
        self.assertNotEqual(muster.ClusterSpec({}), spec)
        self.assertNotEqual(spec, 3)
        with self.assertRaises(TypeError):
            hash(spec)
        self.assertEqual((bool(spec), bool(muster.ClusterSpec({}))), (True, False))
        self.assertEqual(repr(spec), 'ClusterSpec({"ps":["a:1"],"worker":["b:2","c:3"]})')

    def test_mistakes(self) -> None:
        with self.assertRaisesRegex(ValueError, "a:x"):
            muster.ClusterSpec({"ps": ["a:x"]})
        with self.assertRaisesRegex(ValueError, r"cluster\.ps|ps"):
            muster.ClusterSpec.from_json('{"ps": 3}')
        with self.assertRaisesRegex(LookupError, "worker:7"):
            muster.ClusterSpec(CLUSTER).task_address("worker", 7)
        with self.assertRaises(TypeError):
            muster.ClusterSpec({"ps": "a:1"})  # type: ignore[dict-item]


class TaskConfigTest(unittest.TestCase):
    def setUp(self) -> None:
        patch = unittest.mock.patch.dict(os.environ)
        patch.start()
        self.addCleanup(patch.stop)
        for name in ROLES:
            os.environ.pop(name, None)

    def test_alone(self) -> None:
        task = muster.TaskConfig.from_environment()
        self.assertEqual(task, muster.TaskConfig())
        self.assertEqual((task.task, task.is_chief, task.distributed), ("worker:0", True, False))
        self.assertEqual((task.num_workers, task.num_ps), (1, 0))
        self.assertFalse(task.cluster)

    def test_from_tf_config(self) -> None:
        os.environ["TF_CONFIG"] = json.dumps({"cluster": CLUSTER, "task": {"type": "worker", "index": 1}})
        task = muster.TaskConfig.from_environment()
        self.assertEqual((task.job, task.index, task.chief, task.is_chief), ("worker", 1, "worker:0", False))
        self.assertEqual((task.num_ps, task.num_workers, task.ps_addresses, task.master), (1, 2, ["a:1"], "c:3"))
        self.assertEqual((task.worker_tasks, task.cluster), (["worker:0", "worker:1"], muster.ClusterSpec(CLUSTER)))
        self.assertIn("worker:1 at c:3", repr(task))
        self.assertIn("*", task.definition)

    def test_from_torchrun(self) -> None:
        os.environ.update(RANK="1", WORLD_SIZE="2", LOCAL_RANK="1", LOCAL_WORLD_SIZE="2", MASTER_PORT="29500")
        task = muster.TaskConfig.from_environment()
        self.assertEqual((task.num_workers, task.is_chief, task.distributed), (2, False, True))
        self.assertIn("torchrun", task.notice)

    def test_flags_win_and_the_programs_own_come_back(self) -> None:
        os.environ["TF_CONFIG"] = json.dumps({"cluster": CLUSTER, "task": {"type": "worker", "index": 1}})
        arguments = ["--task_index=0", "--mine", "3", "--job_name", "ps", "--linger=2.5"]
        task, rest = muster.TaskConfig.from_arguments(arguments)
        self.assertEqual((task.task, task.is_ps, task.linger, rest), ("ps:0", True, 2.5, ["--mine", "3"]))

    def test_mistakes(self) -> None:
        os.environ["TF_CONFIG"] = "{"
        with self.assertRaisesRegex(muster.Error, "TF_CONFIG") as raised:
            muster.TaskConfig.from_environment()
        self.assertEqual((raised.exception.code, raised.exception.exit_code), ("INVALID_ARGUMENT", 2))


if __name__ == "__main__":
    unittest.main()
