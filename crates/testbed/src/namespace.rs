//! The namespaces of a host: a holder process that makes them and keeps them alive, and the way
//! into them for others. No namespace is mounted anywhere, so none outlives its processes.

use std::ffi::CString;
use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rand::Rng;
use rustix::fs::{Mode, OFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change,
};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::thread::{
    LinkNameSpaceType, ThreadNameSpaceType, UnshareFlags, move_into_link_name_space,
    move_into_thread_name_spaces, unshare_unsafe,
};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, Tried, write};

/// How far a host's clocks are ahead of the machine's. Both differ from host to host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// Of CLOCK_MONOTONIC and CLOCK_MONOTONIC_RAW, in nanoseconds.
    pub monotonic_ns: u64,
    /// Of CLOCK_BOOTTIME, in nanoseconds.
    pub boottime_ns: u64,
}

impl ClockOffset {
    /// Draws an offset as if the host had been up for between a minute and 28 hours longer, some
    /// of the time asleep: never zero, and with a part below the microsecond.
    pub(crate) fn draw(rng: &mut impl Rng) -> Self {
        let monotonic_ns = rng.random_range(60_000_000_000..100_000_000_000_000);
        ClockOffset {
            monotonic_ns,
            boottime_ns: monotonic_ns + rng.random_range(1..1_000_000_000_000),
        }
    }
}

/// What a holder process is told on its command line.
#[derive(Clone, Debug, clap::Args)]
pub struct HolderOptions {
    /// Host name
    #[arg(long)]
    name: String,
    /// Directory of the bed
    #[arg(long)]
    bed: PathBuf,
    /// Offset of the monotonic clock in nanoseconds
    #[arg(long)]
    monotonic_ns: u64,
    /// Offset of the boot-time clock in nanoseconds
    #[arg(long)]
    boottime_ns: u64,
}

/// Makes a host's namespaces, says `ready` on standard output, and holds them until it is killed.
///
/// # Errors
/// When the system refuses a namespace or a mount.
pub fn hold(options: &HolderOptions) -> Result<()> {
    let flags = UnshareFlags::NEWNET
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWNS
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWTIME;
    // SAFETY: the flags do not include FILES, which alone makes the call unsafe.
    unsafe { unshare_unsafe(flags) }.tried(|| "make namespaces".to_owned())?;
    rustix::system::sethostname(options.name.as_bytes())
        .tried(|| "set the host name".to_owned())?;
    set_clocks(options)?;
    mount_own_files(&options.bed)?;
    quiet_network()?;
    say_ready()?;
    loop {
        std::thread::park();
    }
}

/// The offsets can be written until a process enters the namespace, which this one then does: it
/// would otherwise be for children only.
fn set_clocks(options: &HolderOptions) -> Result<()> {
    let line = |clock: &str, ns: u64| {
        let offset = Duration::from_nanos(ns);
        format!("{clock} {} {}\n", offset.as_secs(), offset.subsec_nanos())
    };
    let offsets = line("monotonic", options.monotonic_ns) + &line("boottime", options.boottime_ns);
    write(Path::new("/proc/self/timens_offsets"), &offsets)?;
    let time = fs::File::open("/proc/self/ns/time_for_children")
        .tried(|| "open the time namespace".to_owned())?;
    move_into_link_name_space(time.as_fd(), Some(LinkNameSpaceType::Time))
        .tried(|| "enter the time namespace".to_owned())
}

/// Gives the host a `/sys` that shows its own NICs, a `/dev/shm` of its own, the bed's
/// `/etc/hosts`, and a directory for temporary files that goes when the host goes.
fn mount_own_files(bed: &Path) -> Result<()> {
    let none: Option<&std::ffi::CStr> = None;
    let tried = |what: &'static str| move || what.to_owned();
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
        .tried(tried("part with the machine's mounts"))?;
    let cgroups = rustix::fs::open("/sys/fs/cgroup", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .tried(tried("open /sys/fs/cgroup"))?;
    mount("sysfs", "/sys", "sysfs", MountFlags::empty(), none).tried(tried("mount /sys"))?;
    let cgroups = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&cgroups));
    mount_bind_recursive(cgroups, "/sys/fs/cgroup").tried(tried("mount /sys/fs/cgroup"))?;
    mount("tmpfs", "/dev/shm", "tmpfs", MountFlags::NOSUID, none).tried(tried("mount /dev/shm"))?;
    mount_bind(bed.join("hosts"), "/etc/hosts").tried(tried("mount /etc/hosts"))?;
    let own = own_directory(bed);
    mount("tmpfs", &own, "tmpfs", MountFlags::NOSUID, none)
        .tried(|| format!("mount {}", own.display()))?;
    let agent = own.join("agent");
    fs::copy(bed.join("agent"), &agent).tried(|| format!("write {}", agent.display()))?;
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755))
        .tried(|| format!("make {} executable", agent.display()))
}

/// A directory that every host sees as its own, on memory and executable, whatever `/run` is.
pub(crate) fn own_directory(bed: &Path) -> PathBuf {
    bed.join("own")
}

/// Keeps the kernel from sending anything by itself, so that counters count only traffic.
fn quiet_network() -> Result<()> {
    for scope in ["all", "default"] {
        let file = format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6");
        if Path::new(&file).exists() {
            write(Path::new(&file), "1")?;
        }
    }
    // Where the kernel has bridge netfilter, frames between hosts would pass the machine's
    // firewall hooks.
    let hooks = Path::new("/proc/sys/net/bridge/bridge-nf-call-iptables");
    if hooks.exists() { write(hooks, "0") } else { Ok(()) }
}

/// Tells whoever started this process that it is set up, and lets go of its standard streams.
pub(crate) fn say_ready() -> Result<()> {
    let mut stdout = io::stdout();
    writeln!(stdout, "ready").and_then(|()| stdout.flush()).tried(|| "say ready".to_owned())?;
    let null = fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .tried(|| "open /dev/null".to_owned())?;
    rustix::stdio::dup2_stdout(&null).tried(|| "let go of standard output".to_owned())
}

/// Which namespaces to enter.
pub(crate) const WHOLE_HOST: ThreadNameSpaceType = ThreadNameSpaceType::NETWORK
    .union(ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME)
    .union(ThreadNameSpaceType::MOUNT)
    .union(ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION)
    .union(ThreadNameSpaceType::TIME);

/// Makes `command` start in the groups whose files are `join`, from before its first instruction,
/// so that nothing escapes `down`; and in namespaces of the holder process where one is given.
pub(crate) fn enter(
    command: &mut Command,
    join: &[PathBuf],
    inside: Option<(i32, ThreadNameSpaceType)>,
) -> Result<()> {
    let open = |path: &PathBuf| {
        fs::File::options().write(true).open(path).tried(|| format!("open {}", path.display()))
    };
    let join = join.iter().map(open).collect::<Result<Vec<_>>>()?;
    let inside = match inside {
        Some((pid, namespaces)) => Some((process(pid)?, namespaces)),
        None => None,
    };
    let here = std::env::current_dir().tried(|| "find the working directory".to_owned())?;
    let here = CString::new(here.as_os_str().as_bytes()).tried(|| "name it".to_owned())?;
    let enter = move || {
        for mut group in &join {
            group.write_all(b"0")?;
        }
        if let Some((holder, namespaces)) = &inside {
            move_into_thread_name_spaces(holder.as_fd(), *namespaces)?;
            if namespaces.contains(ThreadNameSpaceType::MOUNT) {
                // Entering a mount namespace moves to its root.
                rustix::process::chdir(&here)?;
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes system calls only: it writes to files that
    // are open already, and allocates nothing.
    unsafe { command.pre_exec(enter) };
    Ok(())
}

/// Runs `work` on a thread of its own inside the network of the holder's host, so that the sockets
/// it makes belong there. The calling thread stays where it is.
pub(crate) fn in_network<T: Send>(pid: i32, work: impl FnOnce() -> T + Send) -> Result<T> {
    let holder = process(pid)?;
    let thread = || {
        move_into_thread_name_spaces(holder.as_fd(), ThreadNameSpaceType::NETWORK)
            .tried(|| "enter a host's network".to_owned())?;
        Ok(work())
    };
    std::thread::scope(|scope| scope.spawn(thread).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn process(pid: i32) -> Result<OwnedFd> {
    let gone = || Error::Broken(format!("process {pid}, which held a host, is gone"));
    let pid = Pid::from_raw(pid).ok_or_else(gone)?;
    pidfd_open(pid, PidfdFlags::empty()).map_err(|_| gone())
}

/// Makes `command` outlive us: in a session of its own, with none of our standard streams but the
/// one it says `ready` on. What it complains about goes to `log`.
pub(crate) fn detach(command: &mut Command, log: &Path) -> Result<()> {
    let log = fs::File::options()
        .create(true)
        .append(true)
        .open(log)
        .tried(|| format!("open {}", log.display()))?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    // SAFETY: between fork and exec the closure makes one system call.
    unsafe { command.pre_exec(|| Ok(rustix::process::setsid().map(drop)?)) };
    Ok(())
}
