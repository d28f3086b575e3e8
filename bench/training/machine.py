"""What a measurement has to be read with: the machine and the versions."""
import os
import platform


def first(path, label):
    """What a line of /proc says after its label and a colon."""
    try:
        with open(path, encoding="utf-8") as lines:
            return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(label)), "")
    except OSError:
        return ""


def time_of_cores():
    """(busy, taken) ticks of all cores since the system began: those they were wanted for, and of these those that a
    hypervisor gave to somebody else."""
    try:
        with open("/proc/stat", encoding="utf-8") as lines:
            ticks = [int(word) for word in lines.readline().split()[1:]]
    except OSError:
        ticks = []
    if len(ticks) < 8:
        return 0, 0
    user, nice, system, _, _, irq, softirq, taken = ticks[:8]
    return user + nice + system + irq + softirq + taken, taken


def taken_since(before):
    """What part of the time since then was taken; None: nothing is known."""
    busy, taken = (now - then for now, then in zip(time_of_cores(), before))
    return taken / busy if busy > 0 else None


def describe():
    memory = first("/proc/meminfo", "MemTotal").split()
    return {"cpu": first("/proc/cpuinfo", "model name") or platform.machine(),
            "cores": len(os.sched_getaffinity(0)),
            "memory_bytes": int(memory[0]) * 1024 if memory else None,
            "system": f"{platform.system()} {platform.release()}",
            "python": platform.python_version()}


def versions(lockstep, runs):
    """{system: version}; peers tell theirs in their lines."""
    told = {run["system"]: run["version"] for run in runs if "version" in run}
    return {"lockstep": lockstep.split()[-1], **dict(sorted(told.items()))}


def one_line(machine, known):
    return (f"{machine['cpu']}, {machine['cores']} cores; "
            + ", ".join(f"{name} {version}" for name, version in known.items()))
