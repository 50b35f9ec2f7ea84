"""muster.CheckpointReader against a checkpoint that other programs have written."""

import pathlib
import tempfile
import threading
import unittest

import torch

import muster
import sample_checkpoint


class CheckpointsTest(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="muster_python_")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.values = sample_checkpoint.write(self.folder)

    def test_values_are_those_that_were_written(self) -> None:
        state = muster.CheckpointReader(self.folder).state_dict()
        self.assertEqual(list(state), list(self.values))
        for name, value in self.values.items():
            self.assertEqual(state[name].dtype, value.dtype)
            self.assertTrue(torch.equal(state[name], value), name)

    def test_what_a_reader_says(self) -> None:
        reader = muster.CheckpointReader(str(self.folder / "model.ckpt-7"))
        self.assertEqual((reader.global_step, reader.rule, reader.hyperparameters["momentum"]), (7, "momentum", 0.75))
        self.assertEqual((len(reader), "fc.bias" in reader, "bias" in reader), (3, True, False))
        self.assertEqual((reader.shape("fc.weight"), reader.kind("batches")), ([4, 3], "buffer"))
        self.assertEqual((reader.slots("fc.bias"), reader.slots("batches")), (["momentum"], []))
        self.assertTrue(torch.equal(reader.read_slot("fc.bias", "momentum"), torch.full((2,), 0.5)))
        self.assertIn("model.ckpt-7, 3 variables", repr(reader))

    def test_a_module_takes_it(self) -> None:
        module = torch.nn.Module()
        module.fc = torch.nn.Linear(3, 4)
        module.fc.bias = torch.nn.Parameter(torch.zeros(2, dtype=torch.bfloat16))
        module.register_buffer("batches", torch.tensor(0))
        module.load_state_dict(muster.CheckpointReader(self.folder).state_dict(), strict=True)
        self.assertTrue(torch.equal(module.fc.weight, self.values["fc.weight"]))

    def test_tensors_own_their_memory(self) -> None:
        tensor = muster.CheckpointReader(self.folder).read("fc.weight")
        tensor += 1
        self.assertTrue(torch.equal(tensor, self.values["fc.weight"] + 1))
        self.assertTrue(torch.equal(muster.CheckpointReader(self.folder).read("fc.weight"), self.values["fc.weight"]))

    def test_what_isnt_there(self) -> None:
        reader = muster.CheckpointReader(self.folder)
        for call in (lambda: reader.read("fc.wight"), lambda: reader.read_slot("fc.bias", "adam_m"),
                     lambda: reader.shape("x"), lambda: muster.CheckpointReader(self.folder / "none")):
            with self.assertRaises(LookupError) as raised:
                call()
            self.assertIsInstance(raised.exception, muster.errors.NotFoundError)
        with self.assertRaises(TypeError):
            reader.read(3)  # type: ignore[arg-type]

    def test_a_damaged_part_is_named(self) -> None:
        part = self.folder / "model.ckpt-7.ps-1-of-2.safetensors"
        data = bytearray(part.read_bytes())
        data[-1] ^= 1
        part.write_bytes(data)
        with self.assertRaisesRegex(muster.errors.DataLossError, "ps-1-of-2"):
            muster.CheckpointReader(self.folder)
        muster.CheckpointReader(self.folder, verify_checksums=False)

    def test_threads_may_share_a_reader(self) -> None:
        reader = muster.CheckpointReader(self.folder)
        wrong: list[str] = []

        def read() -> None:
            for _ in range(200):
                for name, value in self.values.items():
                    if not torch.equal(reader.read(name), value):
                        wrong.append(name)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
