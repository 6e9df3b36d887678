# SPDX-License-Identifier: Apache-2.0
import unittest

import live_scoring
from live_scoring import Said


def said(time, kind=None, ranks=(), **more):
    verdict = {"class": kind, "ranks": list(ranks), "statement": f"{kind} {list(ranks)}"} if kind else None
    return Said(time, verdict, **more)


class Judged(unittest.TestCase):
    def judge(self, fault, onset, *answers):
        return live_scoring.judge(fault, 2, onset, answers)

    def test_the_first_right_answer_counts_from_the_onset_until_it_is_there(self):
        result = self.judge("pause", 100, said(99), said(101, "imbalance"), said(103, "host-late", [1], cost=0.25), said(104, "gpu-late", [0]))
        self.assertEqual((result["right"], result["seconds"], result["wrong_names"]), (True, 3.25, []))

    def test_a_name_before_the_onset_is_wrong_even_if_it_is_the_culprits(self):
        result = self.judge("pause", 100, said(99, "host-late", [1]), said(101, "host-late", [1]))
        self.assertEqual((result["right"], result["seconds"], len(result["wrong_names"])), (False, 1.0, 1))

    def test_an_innocent_is_a_wrong_name_and_both_of_two_are_not_the_one(self):
        for ranks in ([0], [0, 1]):
            result = self.judge("growing", 100, said(101, "host-late", ranks), said(102, "host-late", [1]))
            self.assertEqual((result["right"], len(result["wrong_names"])), (False, 1), ranks)

    def test_the_culprit_under_another_class_is_no_wrong_name_and_not_right(self):
        result = self.judge("uneven-eval", 100, said(101, "imbalance", [1]))
        self.assertEqual((result["right"], result["seconds"], result["wrong_names"]), (False, None, []))

    def test_what_cannot_tell_names_nobody(self):
        self.assertTrue(self.judge("healthy", None, said(1, "evidence-missing", [0]), said(2))["right"])

    def test_healthy_jobs_have_no_name_at_any_time(self):
        self.assertFalse(self.judge("sharded", None, said(1, "host-late", [1]), said(2))["right"])
        self.assertTrue(self.judge("sharded", None, said(1, "imbalance"), said(2))["right"])

    def test_an_answer_after_ten_seconds_is_too_late(self):
        self.assertFalse(self.judge("starved", 100, said(111, "host-late", [1]))["right"])

    def test_a_question_that_failed_is_not_right(self):
        self.assertFalse(self.judge("healthy", None, said(1, error="cannot be read"))["right"])

    def test_of_two_in_different_operations_both_are_named(self):
        self.assertTrue(self.judge("other-op", 100, said(102, "joined-other-op", [0, 1]))["right"])

    def test_the_table_counts_by_fault_and_mode(self):
        results = [{"fault": "pause", "mode": "default", "right": right, "seconds": seconds, "wrong_names": wrong, "asked": 7}
                   for right, seconds, wrong in ((True, 1.0, []), (True, 3.0, []), (False, None, [1]))]
        self.assertIn("| pause | default | 3 | 21 | 2 | 3.0 | 3.0 | 1 |", live_scoring.table(results))


if __name__ == "__main__":
    unittest.main()
