"""Processes that were killed for memory by the kernel, a container or a scheduler; or by signal 9, why ever."""

from __future__ import annotations

import re
from dataclasses import replace

from oomscope.messages.families.wording import Wording, with_figures
from oomscope.messages.figures import exact, parse_figure
from oomscope.messages.records import Reading
from oomscope.messages.unwrap import ALONE, KILLED

_CODE_ELSEWHERE = "返回码", "错误码", "退出码", "退出代码", "終了コード", "종료 코드"
"""The code with which a process ended, in other languages."""

ANCHORS = (
    b"oom-kill", b"oom_kill", b"oomkill", b"killed process", b"kill process", b"code 137",
    b"code: 137", b"code is 137", b"code=137", b"code:137", b"status 137", b"status: 137", b"status=137", b"exit 137",
    b"exit: 137", b"exited(137", b"exited (137", b"exit_code 137", b"exit_code: 137", b"exit_code=137", b"\": 137",
    b"exitcode: -9", b"exitcode  : -9", b"exitcode=-9", b"code -9", b"code: -9", b"code=-9", b"code:-9", b"status -9",
    b"\": -9", b"sigkill", b"\nkilled", b"]killed", b" killed  ", b": line ", b"signal: killed", b"signal:killed",
    b"signal 9", b"signal: 9", b"killed: 9", b"killed:9",
    b"oom killer", b"killed signal", b"killed (program", b"% memory budget", b"of exceeding", b"memory quota",
    b"due to memory usage", b"sigterm to process", b"memory limit", b"memlimit", b"killed: mem", b"out of memory",
    b"running low on memory", b"memory pressure", b"excessive memory usage", b"low on resource",
    b"using all available ram", b"memory than is available", b"[memorypressure]", b": killed", b">:killed", b"*killed",
    b"code (137)", b"out-of-memory handler", b"mem usage hard limit", b"mem usage soft limit", b"memory resource limit",
    b"docker container: 137", b"status (137", b"killed out of memory", b"oom-killer",
    b"get killed", b"gets killed", b"got killed", b"was killed", b"is killed", b"being killed", b"been killed",
    b"memory: usage", b"result of limit of", b"due to memory used", b"code = 137", b"code = -9",
    *(word.encode().lower() for word in (*KILLED, *_CODE_ELSEWHERE)),
)  # fmt: skip

_RESIDENT = re.compile(r"(?:anon|file|shmem)-rss:([\d,]+)kB")
_KIB = 1024

_IDENTIFIER = r"""(?! in | when | while | after | by | on | at | because | due | during | for | with | and | again
    | even | despite | until | since | once) [a-z_]"""
"""What goes on so is a name in a program, such as ``OOMKilledEvents``."""


def _resident(reading: Reading, match: re.Match[str]) -> Reading:
    """The process held its resident memory: anonymous, of files, shared; total-vm is address space only."""
    parts = list(_RESIDENT.finditer(match.string, match.end(), match.end() + 300))[:3]
    if not parts:
        return reading
    held = exact(sum(int(part[1].replace(",", "")[:15]) for part in parts) * _KIB)
    return with_figures(replace(reading, end=parts[-1].end()), {"process_in_use": held})


_CHOSEN = re.compile(r",task=(?P<name>[^,]{1,40}),pid=(?P<pid>\d{1,12}),uid=\d+")
_LONGEST_PATHS = 1_500
"""Characters of the groups' paths that the kernel names before the process."""


def _chosen(reading: Reading, match: re.Match[str]) -> Reading:
    """The process that the kernel chose stands behind the paths of its groups."""
    following = match.string.find("oom-kill:", match.end(), match.end() + _LONGEST_PATHS)
    chosen = _CHOSEN.search(match.string, match.end(), following if following >= 0 else match.end() + _LONGEST_PATHS)
    return with_figures(replace(reading, end=chosen.end()), {}, **chosen.groupdict()) if chosen else reading


def _kibibytes(reading: Reading, match: re.Match[str]) -> Reading:
    if not match["used"]:
        return reading
    return with_figures(
        reading, {"process_in_use": parse_figure(f"{match['used']}kB"), "allowed": parse_figure(f"{match['most']}kB")}
    )


_OF_GROUP = re.compile(r"mem_cgroup_out_of_memory|mem_cgroup_try_charge")
_STACK = 1_200
"""Characters of the kernel's own stack, which tells for what it looked for a process to kill."""


def _invoked(reading: Reading, match: re.Match[str]) -> Reading:
    """Without blanks nothing tells where the name of the process begins: the line is that of what it did."""
    stack = match.string[match.end() : match.end() + _STACK]
    group = {"group": "MEMCG"} if _OF_GROUP.search(stack) else {}
    return with_figures(replace(reading, start=match.start("did")), {}, **group)


WORDINGS = (
    Wording(
        "other",
        "other.guess",
        "oomkiller|memorylimit",
        r"""may have exceeded [^.]{0,30}? memory limits?
          | (?: common causes include | potential root causes) [.:]? \(1\) the process (?: is | was) killed by
            (?: SIGKILL by)? (?: the)? OOM killer (?: due to high memory usage)?""",
    ),
    Wording(
        "oom-killer",
        "killed.kernel",
        "outofmemory:kill",
        r"""(?P<group> Memory cgroup)? out of memory: Kill (?: ed)? process <pid:count> ,?
            \( (?P<name> .{1,40}? ) \)""",
        finish=_resident,
    ),
    Wording(
        "oom-killer",
        "killed.kernel",
        "killedprocess",
        r"Killed process <pid:count> ,? (?: UID \d+ ,)? \( (?P<name> .{1,40}? ) \) ,? (?: UID: \d+ ,)? (?= total-vm)",
        finish=_resident,
    ),
    Wording(
        "oom-killer",
        "killed.kernel",
        "oom-kill:",
        r"oom-kill: constraint= (?: CONSTRAINT_ (?: (?P<group>MEMCG) | (?P<whole>NONE)) | \w{1,40}) , nodemask=",
        finish=_chosen,
    ),
    Wording(
        "oom-killer",
        "killed.kernel",
        "oom-killer",
        r"(?P<by> [\w./:-]{1,40}?) (?P<did> invoked oom-killer)",
        finish=_invoked,
    ),
    Wording(
        "oom-killer",
        "killed.kernel",
        "asaresultoflimitof",
        r"killed (?P<group> as a result of limit) of /",
    ),
    Wording("oom-killer", "killed.kernel", "oom_reaper", r"oom_reaper: reaped process <pid:count> \( .{1,40}? \)"),
    Wording(
        "oom-killer",
        "killed.slurm",
        "memorylimit",
        r"exceeded (?: job | step | its)? memory limit (?: \( <used:count> > <most:count> \))?",
        finish=_kibibytes,
    ),
    Wording(
        "oom-killer",
        "killed.slurm",
        "exceededlimit",
        r"job killed: mem <process_in_use> exceeded limit <allowed>",
    ),
    Wording(
        "oom-killer",
        "killed.yarn",
        "byyarn",
        r"""Container killed by YARN for exceeding (?: physical | virtual)? memory limits \.
            (?: <process_in_use> of <allowed> physical memory used)?""",
    ),
    Wording(
        "oom-killer",
        "killed.slurm",
        "memorylimits|exceed",
        r"""exceeding memory limits \. (?: <process_in_use> of <allowed> physical memory used)?
          | kill (?: ed | ing | s)? [^.]{0,60}? exceed (?: ed | ing | s) [a-z]{0,30}? memory (?! limits \.)""",
    ),
    Wording("oom-killer", "killed.worker", "memorybudget", r"exceeded \d{1,3} % memory budget"),
    Wording(
        "oom-killer",
        "killed.slurm",
        "memorylimitof|memoryquota|duetomemoryusage",
        r"""Memory limit of <allowed> exceeded with <process_in_use> used | Memory quota (?: vastly)? exceeded
          | Container killed due to memory usage""",
    ),
    Wording(
        "oom-killer",
        "killed.early",
        "toprocess",
        r"""sending SIG (?: TERM | KILL) to process <pid:count> (?: uid \d+)? "? (?P<name> [^":]{1,40}) .{0,80}?
            VmRSS <process_in_use>""",
    ),
    Wording(
        "oom-killer",
        "killed.early",
        "duetomemory",
        r"Killed / [^:;]{1,240}? due to memory (?: pressure | used)",
    ),
    Wording(
        "oom-killer",
        "killed.kernel",
        "memory:usage",
        r"(?P<group> memory) : usage \d{1,18} kB, limit <allowed> , failcnt",
    ),
    Wording(
        "oom-killer",
        "killed.slurm",
        "cgroupoutofmemory",
        r"Memory cgroup out of memory: killed \d+ tasks? (?: .{0,120}? memory\.peak = <process_in_use:letter>)?",
    ),
    Wording("oom-killer", "killed.slurm", "term_memlimit", r"TERM_MEMLIMIT"),
    Wording(
        "oom-killer",
        "killed.slurm",
        "memusage|memoryresourcelimit|overmemorylimit|out-of-memoryhandler",
        r"""exceeded MEM usage (?: hard | soft) limit | exceeded a memory resource limit
          | (?: gone | went) over memory limit of <allowed:any>
          | killed by the cgroup out-of-memory handler""",
    ),
    Wording("oom-killer", "killed.slurm", "outofmemory", r"tasks? [\d,-]+ : Out Of Memory"),
    Wording("oom-killer", "killed.signal", ":killed", r"srun: error: [\w.-]{1,60} : tasks? [\d,-]+ : Killed"),
    Wording(
        "oom-killer",
        "killed.notebook",
        "usingallavailableram|memorythanisavailable",
        r"session crashed after using all available RAM | tried to allocate more memory than is available",
    ),
    Wording(
        "oom-killer",
        "killed.step",
        "oom-kill|oom_kill",
        r"""Detected \d+ oom [-_] kill (?: event \(s\))? .{0,60}?
            (?: StepId= (?: (?P<step> \d+ \. (?: batch | extern | interactive | \d+)) | [\w.+]+) | cgroup)
          | oom [-_] kill event in""",
    ),
    Wording(
        "oom-killer",
        "killed.container",
        "oomkill",
        rf"""Reason \W{{0,3}} OOM_?Kill (?: ed | ing)
          | OOM_?Kill (?: ed | ing)? (?! {_IDENTIFIER} | ['"]? [:=] \W? (?: false | null | 0) )""",
    ),
    Wording(
        "oom-killer",
        "killed.evicted",
        "lowonresource|[memorypressure]",
        r"""node had condition: \[ MemoryPressure \] | (?: node was)? low on resource: \[? memory
            (?: .{0,160}? was using <process_in_use:any> , (?: which exceeds its)? request (?: is | of) )?""",
    ),
    Wording(
        "oom-killer",
        "killed.ray",
        "runninglowonmemory",
        r"""due to the node running low on memory \.?
            (?: .{0,260}? (?: memory used= <process_in_use:letter> \) )? was running was (?P<node> [\d.]+ GB)
            / <total:letter>
            (?: .{0,30}? exceeds the memory usage threshold)? )?""",
    ),
    Wording(
        "oom-killer",
        "killed.ray",
        "memoryusagethreshold",
        r"""(?: memory used= <process_in_use:letter> \) \)? )? was running was (?P<node> [\d.]+ GB) / <total:letter>
            .{0,30}? exceeds the memory usage threshold""",
    ),
    Wording(
        "oom-killer",
        "killed.ray",
        "memorypressure",
        r"(?: Workers? | tasks?) .{0,40}? due to memory pressure (?: \(OOM\))?",
    ),
    Wording(
        "oom-killer",
        "killed.signal",
        "code137|code:137|code=137|codeis137|codewas137|status137|status:137|exit137|exit:137|d(137|e(137|s(137|\":137|e':137|container:137",
        r"""(?: exit (?: ed)? | returned | return | terminated)? (?: with)? (?: a)? (?: non-zero)? (?: exit)?
            (?: code | status | exit) (?: of | is | was)? ['"]? [:=]? ['"(]? 137 (?!\d)
          | exited \( 137 \) | executing in Docker Container: 137 (?!\d)""",
    ),
    Wording(
        "oom-killer",
        "killed.signal",
        "code-9|code:-9|code=-9|status-9|killed-9|sigkill|signal9|signal:9",
        r"""(?: exit)? (?: code | status) :? =? ['"]? -9 (?!\d) (?: \( pid: <pid:count> \))?
          | SIGKILL (?!_) (?: :9)? (?: \) received by PID (?P<pid2> \d{1,12}))?
          | killed -9 (?!\d) | (?: terminated | killed | shutdown | exited) (?: by | with | on) signal :? 9 (?!\d)
          | (?: terminated | killed) (?: by | with) signal :? SIGKILL""",
    ),
    Wording(
        "oom-killer",
        "killed.signal",
        "|".join(words.replace(" ", "") for words in _CODE_ELSEWHERE),
        rf"(?: {'|'.join(_CODE_ELSEWHERE)} ) (?: [:：=] | [为是は] )? (?: -9 | 137) (?! [\d.])",
    ),
    Wording(
        "oom-killer",
        "killed.by_name",
        "killedbyoom|killedbytheoom|outofmemory|out-of-memory",
        rf"""(?<! may be) (?<! can be) (?<! could be) (?<! might be) (?<! {ALONE}) killed
            (?: by (?: the)? OOM -? killer | out of memory (?! :)
              | (?: because of | due to) [^.;:]{{0,30}}? out -? of -? memory)
          | out -? of -? memory [^.;:]{{0,30}}? (?: causes? | caused | made | makes) (?: the)? kernel (?: to)? kill""",
    ),
    Wording(
        "oom-killer",
        "killed.said",
        "getkilled|getskilled|gotkilled|waskilled|iskilled|beingkilled|beenkilled",
        r"""(?: process | program | job | pod | container | training | script) (?: es | s)?
            (?: get | gets | got | was | is | being | has been | have been)+ killed
            (?! by (?: (?: the)? user | hand | signal (?! :? (?: 9 (?! \d) | (?: SIG)? KILL))))""",
    ),
    Wording("oom-killer", "killed.signal", "killed:9", r"(?<! [a-z]) Killed: 9 (?! \d)"),
    Wording(
        "oom-killer",
        "killed.signal",
        "killedsignal|killed(program",
        r"Killed signal terminated program \w{1,40} | compiler error: Killed \(program \w{1,40}",
    ),
    Wording("oom-killer", "killed.signal", "signal:killed", r"(?: killed by)? signal: Killed"),
    Wording(
        "oom-killer",
        "killed.signal",
        "|".join(("killed", *(word.lower() for word in KILLED))),
        rf"""(?: it/s | s/it) [^\]]{{0,80}}? \] Killed | {ALONE} \*{{0,2}} (?: Killed | {" | ".join(KILLED)} )
          | : line \d+ : \d+ Killed | (?: zsh | bash) : killed""",
    ),
    Wording(
        "oom-killer",
        "killed.signal",
        "excessivememoryusage",
        r"excessive memory usage causing the Operating System to kill",
    ),
)
