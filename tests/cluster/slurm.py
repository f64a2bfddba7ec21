"""A Slurm of one node on this machine, from Debian's packages slurm-wlm and munge, for as long as the tests run.

It needs root, no systemd, no control groups and no database: jobs are told apart by their process tree and memory is
read from /proc. Everything lies in one folder, but for links in /etc/slurm: the plugin's inner ``srun`` drops SLURM_CONF
from its environment and finds its configuration only there.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol")
SYSTEM = Path("/etc/slurm")
FILES = ("slurm.conf", "gres.conf", "cgroup.conf")
CPUS, MEMORY, GPUS = 4, 8000, 2

CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0
MinJobAge=3600
KillWait=2
SlurmdTimeout=10
InactiveLimit=0
GresTypes=gpu
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} Gres=gpu:{gpus} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE DefMemPerCPU=500 State=UP
"""


def obstacle() -> str | None:
    """Return why no Slurm can be started here, or None."""
    if os.geteuid() != 0:
        return "starting Slurm's daemons needs root"
    absent = [program for program in PROGRAMS if shutil.which(program, path=_path()) is None]
    if absent:
        return f"{absent[0]} is not installed (Debian's packages slurm-wlm and munge)"
    taken = [name for name in FILES if (SYSTEM / name).exists() and not (SYSTEM / name).is_symlink()]
    return f"{SYSTEM / taken[0]} is there: this machine has a Slurm of its own" if taken else None


def _path() -> str:
    return f"{os.environ['PATH']}:/usr/sbin:/sbin"


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as opened:
        sockets = [opened.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
    """Wait until ``condition`` holds, or fail with ``what``."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.2)


class Slurm:
    """The daemons; ``up`` starts them, ``down`` stops them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.host = folder, socket.gethostname().split(".")[0]
        self.links: list[Path] = []

    def up(self) -> None:
        """Write the configuration and start munged, the controller and the node; return when the node takes jobs."""
        for name in ("state", "spool", "devices"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)  # munged refuses a socket in a folder that others can write to
        self._configure()
        self._start_munged()
        self._start("slurmctld")
        self.start_node()

    def _configure(self) -> None:
        values = {"host": self.host, "folder": self.folder, "ports": _free_ports(2)}
        text = CONFIGURATION.format(**values, cpus=CPUS, memory=MEMORY, gpus=GPUS)
        devices = [self.folder / "devices" / f"gpu{i}" for i in range(GPUS)]
        for device in devices:  # gres wants device nodes: these are further names of /dev/null
            os.mknod(device, 0o666 | 0o020000, os.makedev(1, 3))
        gres = "".join(f"NodeName={self.host} Name=gpu File={device}\n" for device in devices)
        cgroup = "CgroupAutomount=no\nConstrainCores=no\nConstrainRAMSpace=no\n"
        SYSTEM.mkdir(exist_ok=True)
        for name, content in zip(FILES, (text, gres, cgroup), strict=True):
            (self.folder / name).write_text(content)
            link = SYSTEM / name
            link.unlink(missing_ok=True)
            link.symlink_to(self.folder / name)
            self.links.append(link)

    def _start_munged(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        names = {"key-file": key.name, "socket": "munge.socket", "pid-file": "munged.pid", "log-file": "munged.log"}
        options = [f"--{option}={self.folder / name}" for option, name in names.items()]
        self._start("munged", "--force", f"--seed-file={self.folder / 'munged.seed'}", *options)

    def _start(self, program: str, *options: str) -> None:
        done = self.run(program, *options)
        if done.returncode != 0:
            raise RuntimeError(f"{program} does not start: {done.stdout}{done.stderr}")

    def start_node(self) -> None:
        """Start slurmd and wait until the node takes jobs."""
        self._start("slurmd", "-N", self.host)
        wait_until(self.is_ready, f"the node is ready (see {self.folder})")

    def is_ready(self) -> bool:
        """Whether the node takes jobs."""
        state = self.node_state()
        if state.startswith(("down", "drain")):
            self.run("scontrol", "update", f"nodename={self.host}", "state=resume")
        return state.rstrip("*") in ("idle", "mixed", "allocated") and not state.endswith("*")

    def node_state(self) -> str:
        """What Slurm says of the node."""
        return self.run("sinfo", "-h", "-o", "%T").stdout.strip()

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run one of Slurm's programs."""
        return subprocess.run(
            command, capture_output=True, text=True, timeout=60, env={**os.environ, "PATH": _path()}, check=False
        )

    def jobs(self) -> dict[str, dict[str, str]]:
        """Every job that Slurm remembers, by number: its state, what it runs, and what it asked for."""
        keys = ("state", "comment", "memory", "time", "cpus", "gpus")
        fields = ("JobID", "State", "Comment", "MinMemory", "TimeLimit", "MinCpus", "tres-per-job")
        lines = self.run(
            "squeue", "-h", "--states=all", "-O", ",".join(f"{field}:|" for field in fields)
        ).stdout.splitlines()
        return {line.split("|")[0]: dict(zip(keys, line.split("|")[1:], strict=False)) for line in lines}

    def _process(self, program: str) -> int | None:
        file = self.folder / f"{program}.pid"
        return int(file.read_text()) if file.is_file() and file.read_text().strip() else None

    def kill_node(self, *processes: int) -> None:
        """End slurmd and ``processes`` as when the node loses power."""
        for process in (self._process("slurmd"), *processes):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process or 0, signal.SIGKILL)
        (self.folder / "slurmd.pid").unlink(missing_ok=True)

    def down(self) -> None:
        """Cancel all jobs, stop the daemons that were started here, and remove the links."""
        self.run("scancel", "--user=root", "--full")
        time.sleep(1)
        for program in ("slurmd", "slurmctld", "munged"):
            process = self._process(program)
            if process is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGTERM)
        for link in self.links:
            link.unlink(missing_ok=True)
