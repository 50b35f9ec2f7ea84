"""Rules and schedules: C++'s defaults, C++'s checks, torch's and TensorFlow's formulas."""

import dataclasses
import math
import unittest

import muster
from muster import _library

CLASSES = [muster.SGD, muster.Momentum, muster.Adam, muster.AdamW, muster.Adagrad, muster.RMSprop, muster.Adadelta,
           muster.Ftrl, muster.PlainAdd]


class RulesTest(unittest.TestCase):
    def test_each_rule_of_the_library_has_a_class_with_its_defaults(self) -> None:
        self.assertEqual({one.name: one().hyperparameters() for one in CLASSES}, _library.standard_rules())

    def test_what_is_given_reaches_the_library(self) -> None:
        self.assertEqual(muster.Adam(learning_rate=0.5, beta1=0.25).text(), "adam:learning_rate=0.5,beta1=0.25")
        self.assertEqual(muster.Momentum(nesterov=True).text(), "momentum:nesterov=1")
        self.assertNotEqual(muster.SGD().spec(), muster.SGD(clip=muster.ClipByNorm(1)).spec())
        self.assertNotEqual(muster.SGD(clip=muster.ClipByNorm(1)).spec(), muster.SGD(clip=muster.ClipByValue(1)).spec())
        self.assertNotEqual(muster.SGD().spec(), muster.SGD(schedule=muster.CosineSchedule(10)).spec())
        self.assertEqual(muster.SGD().spec(), muster.SGD().spec())

    def test_reprs_and_equality(self) -> None:
        rule = muster.Adam(learning_rate=0.5, schedule=muster.StepSchedule(10), clip=muster.ClipByGlobalNorm(2.0))
        self.assertIn("learning_rate=0.5", repr(rule))
        self.assertIn("StepSchedule(decay_steps=10", repr(rule))
        self.assertIn("ClipByGlobalNorm(limit=2.0)", repr(rule))
        self.assertEqual(rule, dataclasses.replace(rule))
        self.assertNotEqual(rule, dataclasses.replace(rule, beta1=0.5))

    def test_mistakes_are_said_where_they_are_made(self) -> None:
        for make, named in ((lambda: muster.Adam(beta1=1.5), "beta1"),
                            (lambda: muster.SGD(learning_rate=-1), "learning_rate"),
                            (lambda: muster.SGD(learning_rate=math.nan), "learning_rate"),
                            (lambda: muster.SGD(clip=muster.ClipByNorm(0)), "clip"),
                            (lambda: muster.StepSchedule(0), "decay_steps")):
            with self.assertRaisesRegex(ValueError, named) as raised:
                make()
            self.assertIsInstance(raised.exception, muster.errors.InvalidArgumentError)
            self.assertEqual(raised.exception.code, "INVALID_ARGUMENT")
        with self.assertRaises(TypeError):
            muster.Adam(lr=1)  # type: ignore[call-arg]

    def test_schedules(self) -> None:
        for schedule, wanted in ((muster.ConstantSchedule(), 8), (muster.ConstantSchedule(warmup_steps=40), 4),
                                 (muster.StepSchedule(8, 0.5), 8 * 0.5 ** 2),
                                 (muster.ExponentialSchedule(8, 0.5), 8 * 0.5 ** 2.5),
                                 (muster.PolynomialSchedule(40, end_learning_rate=0), 4),
                                 (muster.CosineSchedule(40), 8 * (1 + math.cos(math.pi / 2)) / 2)):
            self.assertAlmostEqual(schedule.learning_rate_at(8, 20), wanted, places=9, msg=repr(schedule))


if __name__ == "__main__":
    unittest.main()
