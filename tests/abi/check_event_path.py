#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the compiler made of the event path: no locked instruction, no fence, no system call, and calls only to what is
cold (a new thread, a full chunk, a new name, a record of its own, an operation that is chosen or not) or to itself. check_event_path.py LIBRARY"""
import re
import subprocess
import sys

HOT = re.compile(
    r"capture::nccl::(start_\w+|stop|record_state|Shim<\d>::(start\w*|stop_event|record_event_state))\("
    r"|capture::nccl::\(anonymous namespace\)::(store_state|mark|comm_of|publish_child)\b"
)
COLD = re.compile(
    r"capture::read_ticks\(|ThreadLog::(register_thread|log_for_late|next_chunk|find_shape|find_stream|append_\w+|histogram_cell|moved)\b"
    r"|nccl::(identify_comm|unknown_event|steered_\w+|record_new_p2p_thread|apply_pending_at_launch|\(anonymous namespace\)::steered_\w+|count_operation|count_duration|\(anonymous namespace\)::log_elsewhere)\b|<(clock_gettime|memset|memcpy)@plt>"
)
FORBIDDEN = re.compile(r"^(lock\b|mfence|syscall|sysenter|xchg\s.*\(|int\s)")
TLS_DESCRIPTOR = re.compile(r"^call\s+\*\(%rax\)$")


def main():
    text = subprocess.run(["objdump", "-d", "-C", "--no-show-raw-insn", sys.argv[1]], capture_output=True, text=True, check=True).stdout
    problems, checked, function = [], set(), ""
    for line in text.splitlines():
        head = re.match(r"^[0-9a-f]+ <(.*)>:$", line)
        if head:
            function = head.group(1)
            continue
        if not HOT.search(function) or "\t" not in line:
            continue
        checked.add(function)
        instruction = re.sub(r"\s*#.*", "", line.split("\t", 1)[1]).strip()
        called = re.match(r"^(call|j\w+)\s+[0-9a-f]+ <(.*)>$", instruction)
        if FORBIDDEN.search(instruction):
            problems.append(f"{function}: {instruction}")
        elif called and not called.group(2).startswith(function):
            target = called.group(2)
            if not HOT.search(target) and not COLD.search(f"<{target}>"):
                problems.append(f"{function}: calls {target}")
        elif instruction.startswith("call") and not called and not TLS_DESCRIPTOR.match(instruction):
            problems.append(f"{function}: {instruction}")
    if len(checked) < 20:
        problems.append(f"only {len(checked)} functions of the event path were found")
    for problem in problems:
        print(problem)
    print(f"event path: {len(checked)} functions, {len(problems)} problems")
    sys.exit(1 if problems else 0)


main()
