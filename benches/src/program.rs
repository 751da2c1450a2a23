//! Running a whole program once: its lines with their times, its elapsed time, and nothing of it
//! left behind.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

/// How often a wait looks at the interrupt flag. Ten wake-ups a second do not disturb what runs.
const POLL: Duration = Duration::from_millis(100);
/// How long a program may take to end after SIGTERM. Open MPI's mpirun takes two seconds for its
/// ranks.
const GRACE: Duration = Duration::from_secs(5);
/// How much of a failed program's standard error is worth showing.
const SHOWN_ERROR_BYTES: usize = 2_000;

/// A line of standard output, and when it arrived, counted from the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Time since the start.
    pub at: Duration,
    /// Text, without its end.
    pub text: String,
}

/// One run of a program that ended well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Standard output.
    pub lines: Vec<Line>,
    /// From just before the start to the end of the program.
    pub elapsed: Duration,
}

/// Why a program gave no output.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// There is no program.
    #[error("no program was given: write its name and arguments")]
    Empty,
    /// It could not be started.
    #[error("cannot start {program}: {source}")]
    Start {
        /// Its name.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// It ended badly.
    #[error("{program} ended with {status}\n{stderr}")]
    Failed {
        /// Its name.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of its standard error.
        stderr: String,
    },
    /// It ran too long.
    #[error("{program} had not ended after {} s and was stopped", limit.as_secs())]
    TimedOut {
        /// Its name.
        program: String,
        /// The limit.
        limit: Duration,
    },
    /// The user stopped us.
    #[error("interrupted")]
    Interrupted,
}

/// Runs programs one at a time.
#[derive(Clone, Debug)]
pub struct Runner {
    interrupted: Arc<AtomicBool>,
    limit: Duration,
}

impl Runner {
    /// A runner that gives a program at most `limit`, and stops it when the flag rises.
    pub fn new(interrupted: Arc<AtomicBool>, limit: Duration) -> Self {
        Runner { interrupted, limit }
    }

    /// A runner that stops its program on SIGINT and SIGTERM to this process.
    ///
    /// # Errors
    /// When the signals cannot be caught.
    pub fn stopped_by_signals(limit: Duration) -> std::io::Result<Self> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
        }
        Ok(Runner::new(interrupted, limit))
    }

    /// Runs a program, given word by word, in a directory, to its end.
    ///
    /// # Errors
    /// When it does not start, fails, or is stopped; then its process group is gone.
    pub fn run(&self, words: &[String], dir: &Path) -> Result<Output, ProgramError> {
        let (program, args) = words.split_first().ok_or(ProgramError::Empty)?;
        let mut command = Command::new(program);
        command.args(args).current_dir(dir);
        // A group of its own: the terminal's Ctrl-C reaches only us, and we stop all of it.
        command.process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = Instant::now();
        let mut child = command
            .spawn()
            .map_err(|source| ProgramError::Start { program: program.clone(), source })?;
        let group = Group(Pid::from_child(&child));
        let lines = read_lines(&mut child, started);
        let stderr = read_tail(&mut child);
        let ended = wait_for(child);

        let (status, end) = self.wait(program, &ended, &group, started)?;
        if !status.success() {
            group.kill();
            let stderr = stderr.recv_timeout(GRACE).unwrap_or_default();
            return Err(ProgramError::Failed { program: program.clone(), status, stderr });
        }
        // What outlives its program and keeps the pipe open would hold us for ever.
        let lines = lines.recv_timeout(GRACE).unwrap_or_default();
        Ok(Output { lines, elapsed: end - started })
    }

    fn wait(
        &self,
        program: &str,
        ended: &Receiver<(ExitStatus, Instant)>,
        group: &Group,
        started: Instant,
    ) -> Result<(ExitStatus, Instant), ProgramError> {
        loop {
            match ended.recv_timeout(POLL) {
                Ok(end) => return Ok(end),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    group.kill();
                    let source = std::io::Error::other("its end could not be waited for");
                    return Err(ProgramError::Start { program: program.to_owned(), source });
                }
            }
            let stop = if self.interrupted.load(Ordering::Relaxed) {
                ProgramError::Interrupted
            } else if started.elapsed() > self.limit {
                ProgramError::TimedOut { program: program.to_owned(), limit: self.limit }
            } else {
                continue;
            };
            group.end(ended);
            return Err(stop);
        }
    }
}

fn read_lines(child: &mut Child, started: Instant) -> Receiver<Vec<Line>> {
    let (sender, receiver) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        thread::spawn(move || {
            let lines = BufReader::new(stdout)
                .lines()
                .map_while(Result::ok)
                .map(|text| Line { at: started.elapsed(), text })
                .collect();
            // Nobody listens after an early stop; then the lines do not matter either.
            let _ = sender.send(lines);
        });
    }
    receiver
}

fn read_tail(child: &mut Child) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    if let Some(mut stderr) = child.stderr.take() {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            // What was read before an error is still worth showing.
            let _ = stderr.read_to_end(&mut bytes);
            let tail = &bytes[bytes.len().saturating_sub(SHOWN_ERROR_BYTES)..];
            let _ = sender.send(String::from_utf8_lossy(tail).trim().to_owned());
        });
    }
    receiver
}

/// A thread that does nothing but wait, so that the end is known to the microsecond.
fn wait_for(mut child: Child) -> Receiver<(ExitStatus, Instant)> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        if let Ok(status) = child.wait() {
            let _ = sender.send((status, Instant::now()));
        }
    });
    receiver
}

/// The process group a program leads.
struct Group(Pid);

impl Group {
    /// Asks the group to end, so that a launcher can stop its ranks; then ends what is left.
    fn end(&self, ended: &Receiver<(ExitStatus, Instant)>) {
        self.signal(Signal::TERM);
        let ended_by_itself = ended.recv_timeout(GRACE).is_ok();
        if !ended_by_itself {
            // A launcher puts each rank in a group of its own: find them while they have a parent.
            for group in descendants(self.0).into_iter().map(Group) {
                group.kill();
            }
        }
        self.kill();
        if !ended_by_itself && ended.recv_timeout(GRACE).is_err() {
            eprintln!("process {} does not end; look at it", self.0.as_raw_nonzero());
        }
    }

    fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        match rustix::process::kill_process_group(self.0, signal) {
            // No such group: it has ended by itself, or a descendant leads none.
            Ok(()) | Err(Errno::SRCH) => {}
            Err(error) => eprintln!(
                "process group {} could not be stopped ({error}); stop it by hand",
                self.0.as_raw_nonzero()
            ),
        }
    }
}

/// Every descendant of a process (proc(5), `/proc/pid/task/tid/children`).
fn descendants(of: Pid) -> Vec<Pid> {
    let pid = of.as_raw_nonzero();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children: Vec<Pid> = children
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|word| word.parse().ok().and_then(Pid::from_raw))
        .collect();
    children.iter().flat_map(|child| [vec![*child], descendants(*child)].concat()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHELL: &str = "/bin/sh";

    fn run(runner: &Runner, script: &str) -> Result<Output, ProgramError> {
        let dir = tempfile::tempdir().unwrap();
        runner.run(&[SHELL, "-c", script].map(str::to_owned), dir.path())
    }

    fn patient() -> Runner {
        Runner::new(Arc::default(), Duration::from_secs(60))
    }

    /// Whether a process ends soon: a killed one still runs for a moment. One that only waits for
    /// its parent to notice has ended.
    fn ends(pid: &str) -> bool {
        let deadline = Instant::now() + GRACE;
        while std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.rsplit(')').next().unwrap().trim_start().starts_with('Z'))
        {
            if Instant::now() > deadline {
                return false;
            }
            thread::sleep(Duration::from_millis(10));
        }
        true
    }

    #[test]
    fn lines_arrive_in_order_before_the_end() {
        let output = run(&patient(), "echo one; echo two").unwrap();
        let texts: Vec<&str> = output.lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["one", "two"]);
        assert!(output.lines[0].at <= output.lines[1].at);
    }

    #[test]
    fn a_failure_says_what_the_program_said() {
        let error = run(&patient(), "echo out of luck >&2; exit 7").unwrap_err().to_string();
        assert!(error.contains("exit status: 7") && error.contains("out of luck"), "{error}");
        let error = patient().run(&["/no/such/program".to_owned()], Path::new("/")).unwrap_err();
        assert!(error.to_string().contains("/no/such/program"), "{error}");
    }

    /// Starts a shell with a child, both of which ignore SIGTERM if `stubborn`, and stops it as soon
    /// as their numbers are on disk.
    fn stop_a_family(stubborn: bool, limit: Duration) -> (ProgramError, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        let trap = if stubborn { "trap '' TERM;" } else { "" };
        let script = format!("{trap} sleep 600 & echo $$ $! > half; mv half pids; wait; wait");
        let interrupted = Arc::new(AtomicBool::new(false));
        let runner = Runner::new(Arc::clone(&interrupted), limit);
        let result = thread::scope(|scope| {
            let run =
                scope.spawn(|| runner.run(&[SHELL, "-c", &script].map(str::to_owned), dir.path()));
            while !dir.path().join("pids").exists() && !run.is_finished() {
                thread::sleep(Duration::from_millis(10));
            }
            interrupted.store(limit > Duration::from_secs(10), Ordering::Relaxed);
            run.join().unwrap()
        });
        let pids = std::fs::read_to_string(dir.path().join("pids")).unwrap();
        (result.unwrap_err(), pids.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn an_interrupt_leaves_nobody() {
        for stubborn in [false, true] {
            let (error, pids) = stop_a_family(stubborn, Duration::from_secs(600));
            assert!(matches!(error, ProgramError::Interrupted), "{error}");
            assert_eq!(pids.len(), 2);
            assert!(pids.iter().all(|pid| ends(pid)), "{pids:?} stubborn: {stubborn}");
        }
    }

    #[test]
    fn the_limit_leaves_nobody() {
        let (error, pids) = stop_a_family(false, Duration::from_secs(3));
        assert!(matches!(error, ProgramError::TimedOut { .. }), "{error}");
        assert!(pids.iter().all(|pid| ends(pid)), "{pids:?}");
    }

    #[test]
    fn a_failure_leaves_nobody() {
        let error = run(&patient(), "sleep 600 & echo $! >&2; exit 1").unwrap_err();
        let ProgramError::Failed { stderr, .. } = error else { panic!("{error}") };
        assert!(!stderr.is_empty() && ends(&stderr), "{stderr}");
    }
}
