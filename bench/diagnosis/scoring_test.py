# SPDX-License-Identifier: Apache-2.0
import unittest

import cases
import scoring
import tables


def truth(classes=(), ranks=(), also=(), pattern="", hangs=False, known=True):
    fault = {"class": classes[0], "classes": list(classes), "ranks": list(ranks), "also": list(also), "any_of": False, "ranks_known": known, "op_index": -1,
             "hangs": hangs, "pattern": pattern} if classes else None
    return {"fault": fault, "other_fault": None, "ranks": 8, "ops": 100, "clock": {"hosts": []}}


def answer(kind=None, ranks=(), code=None, id=None):
    verdict = {"class": kind, "id": id or kind, "ranks": list(ranks), "statement": ""} if kind else None
    return scoring.Answer((1 if kind else 0) if code is None else code, {"verdict": verdict, "clock": []}, 0.1)


def scored(row, truth, answer, gone=(), scenario="none", other=()):
    return scoring.score(cases.Case(row, scenario, (), other), truth, answer, set(gone))


class Scored(unittest.TestCase):
    def assert_mistakes(self, score, *names):
        self.assertEqual(score.mistakes(), list(names))

    def test_a_healthy_job_has_no_verdict(self):
        self.assert_mistakes(scored("healthy", truth(), answer()))
        self.assert_mistakes(scored("healthy", truth(), answer("imbalance")), "named", "false_alarm")
        self.assert_mistakes(scored("healthy", truth(), answer("host-late", [1])), "named", "false_alarm", "wrong_culprit")

    def test_all_culprits_and_nobody_else_are_named(self):
        job = truth(["host-late"], [1, 2], also=[3])
        self.assert_mistakes(scored("faults", job, answer("host-late", [1, 2])))
        self.assert_mistakes(scored("faults", job, answer("host-late", [1, 2, 3])))
        self.assert_mistakes(scored("faults", job, answer("host-late", [1])), "ranks")
        self.assert_mistakes(scored("faults", job, answer("host-late", [1, 2, 4])), "ranks", "wrong_culprit")
        self.assert_mistakes(scored("faults", job, answer()), "named", "ranks")
        self.assert_mistakes(scored("faults", job, answer("gpu-late", [1, 2])), "named", "ranks")

    def test_the_pattern_is_the_end_of_the_id(self):
        job = truth(["host-late"], [1], pattern="periodic")
        self.assert_mistakes(scored("late", job, answer("host-late", [1], id="host-late.periodic")))
        self.assert_mistakes(scored("late", job, answer("host-late", [1])), "pattern")
        since = truth(["host-late"], [1], pattern="since")
        self.assert_mistakes(scored("late", since, answer("host-late", [1])))

    def test_what_was_broken_off_is_not_called_well(self):
        self.assert_mistakes(scored("broken off", truth(), answer("evidence-missing", [0, 1], code=3)))
        self.assert_mistakes(scored("broken off", truth(), answer()), "named")
        hanging = truth(["never-joined"], [1], hangs=True)
        self.assert_mistakes(scored("broken off", hanging, answer("never-joined", [1])))
        self.assert_mistakes(scored("broken off", hanging, answer("never-joined", [2])), "wrong_culprit")

    def test_who_died_first_is_not_asked_of_what_was_broken_off(self):
        dead = truth(["rank-dead"], [7], hangs=True)
        self.assert_mistakes(scored("broken off", dead, answer("never-joined", [7])))
        self.assert_mistakes(scored("broken off", dead, answer("never-joined", [6])), "wrong_culprit")
        self.assert_mistakes(scored("faults", dead, answer("never-joined", [7])), "named", "ranks")

    def test_two_jobs_are_said_to_be_two(self):
        self.assert_mistakes(scored("two jobs mixed", truth(), answer("evidence-missing", code=3), other=("x",)))
        self.assert_mistakes(scored("two jobs mixed", truth(), answer("host-late", [1]), other=("x",)), "named", "wrong_culprit")
        self.assert_mistakes(scored("two jobs mixed", truth(), answer(), other=("x",)), "named")

    def test_only_the_guilty_and_those_without_files_may_be_named(self):
        hanging = truth(["never-joined"], [1], hangs=True)
        self.assert_mistakes(scored("evidence removed", hanging, answer("rank-unreachable", [4]), gone=[4]))
        self.assert_mistakes(scored("evidence removed", hanging, answer("never-joined", [3]), gone=[4]), "wrong_culprit")
        self.assert_mistakes(scored("evidence removed", truth(), answer(), gone=[4]), "named")
        self.assert_mistakes(scored("evidence removed", truth(), answer("host-late", [3]), gone=[4]), "named", "wrong_culprit")

    def test_of_two_that_are_left_and_disagree_nothing_tells_which_is_wrong(self):
        differing = truth(["joined-other-op"], [1], hangs=True)
        differing["fault"]["comm"] = {"ranks": [0, 1, 2, 3]}
        both = answer("joined-other-op", [1, 3])
        self.assert_mistakes(scored("evidence removed", differing, both, gone=[0, 2]))
        self.assert_mistakes(scored("evidence removed", differing, both, gone=[2]), "wrong_culprit")
        self.assert_mistakes(scored("evidence removed", differing, answer("joined-other-op", [1, 5]), gone=[0, 2]), "wrong_culprit")

    def test_one_pair_may_be_all_that_is_left_of_a_slow_card(self):
        card = truth(["slow-nic"], [1])
        self.assert_mistakes(scored("evidence removed", card, answer("slow-link", [1, 9]), gone=[4]))
        self.assert_mistakes(scored("evidence removed", card, answer("slow-link", [2, 9]), gone=[4]), "named", "wrong_culprit")

    def test_a_ring_may_not_tell_and_names_nobody_innocent(self):
        hanging = truth(["joined-other-op"], [3], hangs=True)
        self.assert_mistakes(scored("in a ring", hanging, answer("joined-other-op", [3])))
        self.assert_mistakes(scored("in a ring", hanging, answer("evidence-missing", [])))
        self.assert_mistakes(scored("in a ring", hanging, answer("joined-other-op", [2])), "wrong_culprit")
        self.assert_mistakes(scored("in a ring", hanging, answer()), "named")
        self.assert_mistakes(scored("in a ring", truth(), answer()))
        self.assert_mistakes(scored("in a ring", truth(), answer("host-late", [3])), "named", "wrong_culprit")

    def test_where_the_files_cannot_tell_nobody_is_wrongly_named(self):
        self.assert_mistakes(scored("faults", truth(["slow-nic"], [1], known=False), answer("slow-nic", [5])))

    def test_a_program_that_failed_is_wrong(self):
        failed = scoring.Answer(2, {}, 0.1)
        for row in ("faults", "broken off", "two jobs mixed", "evidence removed", "in a ring"):
            self.assertIn("named", scored(row, truth(["host-late"], [1]), failed).mistakes())

    def test_tables_count_wrong_culprits_and_false_alarms(self):
        text = tables.report([scored("healthy", truth(), answer("host-late", [1])), scored("healthy", truth(), answer())])
        self.assertIn("| none | 2 | 1/2 | 1 | 1 |", text)
        self.assertIn("| Healthy jobs with a false alarm | 1/2 |", text)

    def test_a_base_gives_its_jobs_again_and_another_gives_others(self):
        first = cases.full(5_000_000)
        self.assertEqual([case.name for case in first], [case.name for case in cases.full(5_000_000)])
        self.assertGreaterEqual(len(first), 1000)
        self.assertFalse({case.name for case in first} & {case.name for case in cases.full(6_000_000)})


if __name__ == "__main__":
    unittest.main()
