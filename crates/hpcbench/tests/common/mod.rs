//! Starts programs under the launcher of the MPI they are built for, and leaves nothing behind.
#![allow(dead_code, reason = "each test program uses its own part")]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// What the README tells root, and who has fewer cores than ranks, to add by hand.
pub const ENVIRONMENT: [(&str, &str); 6] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("OMPI_MCA_hwloc_base_binding_policy", "none"),
    ("OMPI_MCA_mpi_yield_when_idle", "1"),
    ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
];

/// How long a job may take before it counts as hung: far more than any does, as CI machines are
/// slow and shared.
const DEADLINE: Duration = Duration::from_secs(120);
/// Variable by which the processes of a job are found; its value is the job's own directory.
const MARK: &str = "HPCBENCH_TEST_JOB";

/// The MPI libraries that differ in what the tests see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    OpenMpi,
    Mpich,
}

/// The launcher of the MPI this build is for, as `scripts/test` names it.
pub fn launcher() -> PathBuf {
    let name = std::env::var_os("HPCBENCH_TEST_MPIRUN").unwrap_or_else(|| "mpirun".into());
    on_path(&name).expect("the launcher is on PATH: run scripts/setup --tests")
}

/// A program's full path.
pub fn on_path(name: impl AsRef<Path>) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").expect("PATH is set");
    std::env::split_paths(&path).map(|dir| dir.join(&name)).find(|candidate| candidate.is_file())
}

/// Whose launcher it is.
pub fn family(launcher: &Path) -> Family {
    let version = Command::new(launcher).arg("--version").output().expect("the launcher runs");
    if String::from_utf8_lossy(&version.stdout).contains("HYDRA") {
        Family::Mpich
    } else {
        Family::OpenMpi
    }
}

/// The family of [`launcher`].
pub fn own_family() -> Family {
    static OWN: OnceLock<Family> = OnceLock::new();
    *OWN.get_or_init(|| family(&launcher()))
}

/// Whether so many ranks stand in each other's way: waiting, MPICH 4.0 never yields, so that with
/// more ranks than a small machine's cores every message costs milliseconds. Tests of many rows then
/// take a part of them.
pub fn crawls(ranks: usize) -> bool {
    ranks > 4 && own_family() == Family::Mpich
}

/// One job at a time: the ranks of two on the cores of one machine would only delay each other.
static TURN: Mutex<()> = Mutex::new(());

/// A job to start.
pub struct Job {
    command: Command,
    scratch: TempDir,
    deadline: Duration,
}

/// `program` on so many ranks.
pub fn mpirun(ranks: usize, program: impl AsRef<OsStr>) -> Job {
    mpirun_parts(&launcher(), &[(ranks, program.as_ref().to_owned(), Vec::new())])
}

/// Several programs as one job: ranks, program and arguments of each.
pub fn mpirun_parts(launcher: &Path, parts: &[(usize, OsString, Vec<OsString>)]) -> Job {
    let mut job = Job::of(launcher);
    for (index, (ranks, program, arguments)) in parts.iter().enumerate() {
        if index > 0 {
            job.command.arg(":");
        }
        job.command.args(["-n", &ranks.to_string()]).arg(program).args(arguments);
    }
    job
}

impl Job {
    /// A program without a launcher.
    pub fn of(program: impl AsRef<OsStr>) -> Job {
        // Memory, not a disk: rows are synced one by one, and Open MPI keeps its messages there.
        let parent = Path::new("/dev/shm");
        let parent = if parent.is_dir() { parent.to_owned() } else { std::env::temp_dir() };
        let scratch = tempfile::Builder::new().prefix("hpcbench-test-").tempdir_in(parent);
        let scratch = scratch.expect("a temporary directory");
        let mut command = Command::new(program.as_ref());
        command
            .envs(ENVIRONMENT)
            // Nothing of Open MPI's stays in shared places when it is killed.
            .env("TMPDIR", scratch.path())
            .env("OMPI_MCA_btl_vader_backing_directory", scratch.path())
            .env(MARK, scratch.path())
            .current_dir(scratch.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        Job { command, scratch, deadline: DEADLINE }
    }

    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Job {
        self.command.arg(argument);
        self
    }

    /// Arguments, separated by blanks.
    pub fn args(mut self, arguments: &str) -> Job {
        self.command.args(arguments.split_whitespace());
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Job {
        self.command.env(name, value);
        self
    }

    /// The job's own directory, which is its working directory and goes with it.
    pub fn dir(&self) -> &Path {
        self.scratch.path()
    }

    pub fn start(mut self) -> Running {
        let turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut child = self.command.spawn().expect("the launcher starts");
        let stdout = Reader::start(child.stdout.take().unwrap());
        let stderr = Reader::start(child.stderr.take().unwrap());
        Running {
            child,
            stdout,
            stderr,
            line: format!("{:?}", self.command),
            ends: Instant::now() + self.deadline,
            scratch: self.scratch,
            _turn: turn,
        }
    }

    pub fn finish(self) -> Finished {
        self.start().finish()
    }
}

/// Collects what a process prints, as it prints it.
struct Reader {
    text: Arc<Mutex<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    fn start(mut from: impl Read + Send + 'static) -> Reader {
        let text = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&text);
        let thread = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                into.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Reader { text, thread: Some(thread) }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().unwrap()).into_owned()
    }

    fn all(&mut self) -> String {
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
        self.so_far()
    }
}

/// A started job. Dropping it ends every one of its processes.
pub struct Running {
    child: Child,
    stdout: Reader,
    stderr: Reader,
    line: String,
    ends: Instant,
    scratch: TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Running {
    /// The launcher, or the program where there is none.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn dir(&self) -> &Path {
        self.scratch.path()
    }

    /// What it has printed so far.
    pub fn stdout(&self) -> String {
        self.stdout.so_far()
    }

    pub fn stderr(&self) -> String {
        self.stderr.so_far()
    }

    /// Waits until `there` gives something.
    pub fn until<T>(&mut self, what: &str, mut there: impl FnMut(&Running) -> Option<T>) -> T {
        loop {
            if let Some(found) = there(self) {
                return found;
            }
            let ended = self.child.try_wait().unwrap();
            if ended.is_some() || Instant::now() > self.ends {
                panic!(
                    "{}: never saw {what} ({ended:?})\n--- stdout\n{}--- stderr\n{}",
                    self.line,
                    self.stdout(),
                    self.stderr()
                );
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Whether the launcher has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end.
    pub fn finish(mut self) -> Finished {
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > self.ends {
                end(&self.processes());
                panic!(
                    "{} hangs\n--- stdout\n{}--- stderr\n{}",
                    self.line,
                    self.stdout(),
                    self.stderr()
                );
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        // What the launcher left, if it was killed, would keep the pipes open.
        end(&self.processes());
        Finished {
            status,
            stdout: self.stdout.all(),
            stderr: self.stderr.all(),
            line: std::mem::take(&mut self.line),
            scratch: std::mem::replace(&mut self.scratch, tempfile::tempdir().unwrap()),
        }
    }

    /// Every process of the job that is still there.
    pub fn processes(&self) -> Vec<Pid> {
        let mark = format!("{MARK}={}", self.scratch.path().display()).into_bytes();
        let marked = |environment: Vec<u8>| environment.split(|b| *b == 0).any(|v| *v == mark[..]);
        let processes = fs::read_dir("/proc").expect("/proc is mounted");
        processes
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
            .filter(|pid| fs::read(format!("/proc/{pid}/environ")).is_ok_and(marked))
            .filter_map(Pid::from_raw)
            .collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        end(&self.processes());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn end(processes: &[Pid]) {
    for pid in processes {
        let _ = kill_process(*pid, Signal::KILL);
    }
}

/// A job that has ended; its directory goes with it.
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    line: String,
    scratch: TempDir,
}

impl Finished {
    pub fn dir(&self) -> &Path {
        self.scratch.path()
    }

    /// The launcher's exit code, as a shell would say it.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    /// Everything there is to know, for the message of a failed assertion.
    pub fn words(&self) -> String {
        format!(
            "{}\n{}\n--- stdout\n{}--- stderr\n{}",
            self.line, self.status, self.stdout, self.stderr
        )
    }

    /// Insists that all went well.
    pub fn expect_success(self) -> Finished {
        assert_eq!(self.code(), 0, "{}", self.words());
        self
    }

    /// Lines that hpcbench said on standard error.
    pub fn messages(&self) -> Vec<&str> {
        self.stderr.lines().filter(|line| line.starts_with("hpcbench: ")).collect()
    }
}

/// Set in the processes that [`on_ranks`] starts.
const RANK: &str = "HPCBENCH_TEST_RANK";

/// Runs `body` on so many ranks: starts this test program again under the launcher, where the test
/// of that name comes back here. `body` is what each rank does; its panic ends the job.
pub fn on_ranks(ranks: usize, test: &str, body: impl FnOnce()) {
    if std::env::var_os(RANK).is_some() {
        std::panic::set_hook(Box::new(|panic| {
            eprintln!("{panic}");
            // Unwinding would wait in MPI_Finalize for ranks that wait for this one.
            hpcbench_world::exit_now(101);
        }));
        body();
        println!("{RANK} done");
        return;
    }
    let program = std::env::current_exe().expect("a test program knows its path");
    let job = mpirun(ranks, program).args("--nocapture --exact").arg(test).env(RANK, "1");
    let finished = job.finish().expect_success();
    let done = finished.stdout.matches(&format!("{RANK} done")).count();
    assert_eq!(done, ranks, "{}", finished.words());
}

/// Says why a test did nothing.
pub fn skip(reason: &str) {
    println!("skipped: {reason}");
}
