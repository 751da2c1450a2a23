use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rustix::fs::FlockOperation;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;

use crate::address;
use crate::cgroup::Cgroups;
use crate::counters::{self, Counters};
use crate::error::{Error, Result, Tried};
use crate::names::{Link, Prefix};
use crate::namespace::{self, ClockOffset, WHOLE_HOST};
use crate::network::{self, RelayNames};
use crate::spec::{BedSpec, Inventory};
use crate::state::{Holder, Lock, ROOT, State, directory};
use crate::system::{run, tool, wait_ready};
use crate::{inventory, mpi, relay, rights};

/// A cluster of emulated hosts. It stays up when this value is dropped; see [`ScopedBed`].
pub struct Bed {
    pub(crate) state: State,
    pub(crate) cgroups: Cgroups,
    /// Processes that this value started, to be waited for when they are killed.
    children: Vec<Child>,
}

/// A host as the `hosts` command shows it.
#[derive(Clone, Debug, Serialize)]
pub struct HostInfo {
    /// Its name, which is also its host name.
    pub name: String,
    /// Its address on the management network.
    pub management: Ipv4Addr,
    /// Its NICs' addresses, nic0 first.
    pub nics: Vec<Ipv4Addr>,
    /// How far its clocks are ahead of the machine's.
    pub clock: ClockOffset,
    /// Its inventory root, where it has one.
    pub inventory: Option<PathBuf>,
    /// The process that holds its namespaces.
    pub pid: i32,
}

/// What `down` removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Processes killed.
    pub processes: usize,
    /// Control groups deleted.
    pub cgroups: usize,
    /// Whether there were files.
    pub files: bool,
}

impl Bed {
    /// Builds a bed.
    ///
    /// # Errors
    /// When rights are missing, the prefix is taken, or the system refuses a part; then what was
    /// built is removed again.
    pub fn up(spec: &BedSpec) -> Result<Bed> {
        spec.check()?;
        rights::check(&spec.prefix)?;
        let cgroups = Cgroups::of(&spec.prefix)?;
        if cgroups.exist() {
            return Err(Error::Exists(spec.prefix.to_string()));
        }
        make_directory(&spec.prefix)?;
        let mut bed = Bed { state: State::new(spec.clone()), cgroups, children: Vec::new() };
        let locked = bed.lock()?;
        match bed.build() {
            Ok(()) => Ok(bed),
            Err(e) => {
                drop(locked);
                bed.down()?;
                Err(e)
            }
        }
    }

    /// Finds a bed that is up.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn open(prefix: &Prefix) -> Result<Bed> {
        let state = State::load(prefix)?;
        Ok(Bed { state, cgroups: Cgroups::of(prefix)?, children: Vec::new() })
    }

    /// What the bed is made of.
    pub fn spec(&self) -> &BedSpec {
        &self.state.spec
    }

    /// The bed's directory.
    pub(crate) fn directory(&self) -> PathBuf {
        directory(&self.state.spec.prefix)
    }

    /// Keeps `down` and changes away until the guard is dropped, or the process runs another
    /// program.
    pub(crate) fn lock_shared(&self) -> Result<Lock> {
        self.take_lock(FlockOperation::LockShared)
    }

    pub(crate) fn lock(&self) -> Result<Lock> {
        self.take_lock(FlockOperation::LockExclusive)
    }

    fn take_lock(&self, operation: FlockOperation) -> Result<Lock> {
        let prefix = &self.state.spec.prefix;
        Lock::take(prefix, operation)?.ok_or_else(|| Error::NoBed(prefix.to_string()))
    }

    /// Locks the bed for a change and looks at what others have changed since.
    pub(crate) fn begin_change(&mut self) -> Result<Lock> {
        let lock = self.lock()?;
        self.state = State::load(&self.state.spec.prefix)?;
        Ok(lock)
    }

    fn build(&mut self) -> Result<()> {
        // What the bed shall be is on disk before the first part of it exists.
        self.state.save()?;
        self.write_files()?;
        let spec = self.state.spec.clone();
        let hosts: Vec<String> =
            (0..spec.hosts).map(network::host_name).chain(["head".to_owned()]).collect();
        self.cgroups.create(&hosts)?;
        self.start_holders(hosts)?;
        self.state.save()?;
        self.build_networks(&spec)?;
        for host in 0..spec.hosts {
            let name = network::host_name(host);
            let pid = self.holder(&name)?.pid;
            inventory::build(&spec, &self.directory(), &name, pid)?;
        }
        self.insert_relays(&spec.relayed_links())?;
        self.settle(&spec.relayed_links())
    }

    fn write_files(&self) -> Result<()> {
        let bed = self.directory();
        let own = namespace::own_directory(&bed);
        fs::create_dir(&own).tried(|| format!("make {}", own.display()))?;
        let mut files = vec![("hosts".to_owned(), network::hosts_file(&self.state.spec))];
        files.extend(mpi::files(&self.state.spec)?);
        for (name, text) in files {
            let path = bed.join(name);
            fs::write(&path, text).tried(|| format!("write {}", path.display()))?;
        }
        Ok(())
    }

    /// Starts the processes that hold the namespaces of the hosts, the head and the switch.
    fn start_holders(&mut self, hosts: Vec<String>) -> Result<()> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.state.spec.seed);
        let mut started = Vec::new();
        for name in hosts.into_iter().chain(["switch".to_owned()]) {
            let clock = ClockOffset::draw(&mut rng);
            let arguments = [
                "hold".to_owned(),
                format!("--name={name}"),
                format!("--bed={}", self.directory().display()),
                format!("--monotonic-ns={}", clock.monotonic_ns),
                format!("--boottime-ns={}", clock.boottime_ns),
            ];
            started.push((name, clock, self.spawn_tool(&arguments, None)?));
        }
        for (name, clock, mut child) in started {
            let ready = wait_ready(&mut child, &format!("host {name}"), &self.log());
            let pid = child.id() as i32;
            self.children.push(child);
            ready?;
            self.state.holders.insert(name, Holder { pid, clock });
        }
        Ok(())
    }

    fn build_networks(&self, spec: &BedSpec) -> Result<()> {
        let pid_of = |name: &str| self.state.holders.get(name).map_or(0, |holder| holder.pid);
        self.batch("switch", "ip", &network::switch_links(spec, pid_of))?;
        self.batch("switch", "bridge", &network::switch_addresses(spec))?;
        self.batch("switch", "tc", &network::switch_rates(spec))?;
        self.batch("head", "ip", &network::head_addresses(spec))?;
        for host in 0..spec.hosts {
            let name = network::host_name(host);
            self.batch(&name, "ip", &network::host_addresses(spec, host))?;
            self.batch(&name, "tc", &network::host_rates(spec))?;
        }
        Ok(())
    }

    /// Runs `ip`, `bridge` or `tc` in its batch mode inside a host.
    pub(crate) fn batch(&self, host: &str, program: &str, batch: &str) -> Result<()> {
        let mut command = Command::new(program);
        command.args(["-batch", "-"]);
        let inside = Some((self.holder(host)?.pid, WHOLE_HOST));
        namespace::enter(&mut command, &self.cgroups.join_files("tools"), inside)?;
        run(&mut command, batch).map(drop)
    }

    /// Puts relays between these links' cables and their rails.
    pub(crate) fn insert_relays(&mut self, links: &[Link]) -> Result<()> {
        let mut started = Vec::new();
        for link in links {
            let names = RelayNames::of(*link);
            let socket = relay::socket_path(&self.directory(), *link);
            let arguments = [
                "relay".to_owned(),
                format!("--host-tap={}", names.host_tap),
                format!("--rail-tap={}", names.rail_tap),
                format!("--socket={}", socket.display()),
            ];
            let network = rustix::thread::ThreadNameSpaceType::NETWORK;
            let inside = Some((self.holder("switch")?.pid, network));
            started.push((*link, self.spawn_tool(&arguments, inside)?));
        }
        let (mut ip, mut bridge) = (String::new(), String::new());
        for (link, mut child) in started {
            let ready = wait_ready(&mut child, &format!("the relay of {link}"), &self.log());
            self.state.relays.insert(link, child.id() as i32);
            self.children.push(child);
            ready?;
            let (plug, address) = network::insert_relay(&self.state.spec, link);
            ip += &plug;
            bridge += &address;
        }
        self.state.save()?;
        self.batch("switch", "ip", &ip)?;
        self.batch("switch", "bridge", &bridge)
    }

    /// Takes relays out again.
    pub(crate) fn remove_relays(&mut self, links: &[Link]) -> Result<()> {
        for link in links {
            let (unplug, address) = network::remove_relay(*link);
            self.batch("switch", "ip", &unplug)?;
            self.batch("switch", "bridge", &address)?;
            if let Some(pid) = self.state.relays.remove(link) {
                self.kill(pid);
            }
            let socket = relay::socket_path(&self.directory(), *link);
            fs::remove_file(&socket).tried(|| format!("remove {}", socket.display()))?;
        }
        self.state.save()
    }

    /// Kills a process of the bed with its children. A number that the system has given to a
    /// stranger since is left alone.
    pub(crate) fn kill(&mut self, pid: i32) {
        if self.cgroups.contains(pid)
            && let Some(group) = Pid::from_raw(pid)
        {
            // It may have died by itself in the meantime.
            let _ = kill_process_group(group, Signal::KILL);
        }
        if let Some(at) = self.children.iter().position(|child| child.id() as i32 == pid) {
            let _ = self.children.swap_remove(at).wait();
        }
    }

    /// Starts this program as a part of the bed that outlives us.
    pub(crate) fn spawn_tool(
        &self,
        arguments: &[String],
        inside: Option<(i32, rustix::thread::ThreadNameSpaceType)>,
    ) -> Result<Child> {
        let mut command = Command::new(tool()?);
        command.args(arguments);
        namespace::enter(&mut command, &self.cgroups.join_files("tools"), inside)?;
        namespace::detach(&mut command, &self.log())?;
        command.spawn().tried(|| format!("start `hpcbench-testbed {}`", arguments.join(" ")))
    }

    /// Keeps a child to be waited for when it is killed.
    pub(crate) fn adopt(&mut self, child: Child) {
        self.children.push(child);
    }

    /// Where the bed's own processes complain.
    pub(crate) fn log(&self) -> PathBuf {
        self.directory().join("log")
    }

    /// The holder of a host, of `head` or of `switch`.
    pub(crate) fn holder(&self, host: &str) -> Result<Holder> {
        let unknown = || {
            Error::Usage(format!(
                "bed `{}` has no host `{host}`: it has h0 to h{}, head and switch",
                self.state.spec.prefix,
                self.state.spec.hosts - 1
            ))
        };
        let holder = *self.state.holders.get(host).ok_or_else(unknown)?;
        if self.cgroups.contains(holder.pid) {
            return Ok(holder);
        }
        let prefix = &self.state.spec.prefix;
        Err(Error::Broken(format!(
            "host {host} of bed `{prefix}` is gone; remove the rest with `hpcbench-testbed down \
             --prefix {prefix}`"
        )))
    }

    /// A command that runs inside a host (`h0`, …), in the `head` or in the `switch`: in its
    /// namespaces and under its faults.
    ///
    /// # Errors
    /// When there is no such host.
    pub fn command(&self, host: &str, program: impl AsRef<OsStr>) -> Result<Command> {
        let holder = self.holder(host)?;
        let mut command = Command::new(program);
        let group = if host == "switch" { "tools" } else { host };
        let inside = Some((holder.pid, WHOLE_HOST));
        namespace::enter(&mut command, &self.cgroups.join_files(group), inside)?;
        Ok(command)
    }

    /// An MPI launcher (`mpirun`, `mpirun.mpich`, …) that starts its processes across the hosts:
    /// data on the NICs, control on the management network. It runs in the head.
    ///
    /// # Errors
    /// When the head is gone.
    pub fn mpirun(&self, program: impl AsRef<OsStr>) -> Result<Command> {
        let mut command = self.command("head", program)?;
        command.envs(mpi::environment(&self.state.spec, &self.directory()));
        Ok(command)
    }

    /// Runs `work` on a thread inside a host's network; the sockets it makes belong there.
    ///
    /// # Errors
    /// When there is no such host.
    pub fn in_network<T: Send>(&self, host: &str, work: impl FnOnce() -> T + Send) -> Result<T> {
        namespace::in_network(self.holder(host)?.pid, work)
    }

    /// The counters of every interface of a host, of `head` or of `switch`, by interface name.
    ///
    /// # Errors
    /// When there is no such host.
    pub fn counters(&self, host: &str) -> Result<std::collections::BTreeMap<String, Counters>> {
        counters::read(self.holder(host)?.pid)
    }

    /// The address of a link's NIC.
    pub fn address(&self, link: Link) -> Ipv4Addr {
        address::of_link(link)
    }

    /// The hosts.
    pub fn hosts(&self) -> Vec<HostInfo> {
        let spec = &self.state.spec;
        let info = |host| {
            let name = network::host_name(host);
            let holder = self.state.holders.get(&name)?;
            let nics = (0..spec.nics).map(|nic| address::of_link(Link { host, nic })).collect();
            let inventory = (spec.inventory != Inventory::None)
                .then(|| inventory::root(&self.directory(), &name));
            let management = address::of_management(host);
            Some(HostInfo {
                name,
                management,
                nics,
                clock: holder.clock,
                inventory,
                pid: holder.pid,
            })
        };
        (0..spec.hosts).filter_map(info).collect()
    }

    /// Removes the bed and waits for the processes that this value started.
    ///
    /// # Errors
    /// As [`down`].
    pub fn down(&mut self) -> Result<Removed> {
        let removed = down(&self.state.spec.prefix);
        if removed.is_ok() {
            for mut child in self.children.drain(..) {
                let _ = child.wait();
            }
        }
        removed
    }
}

fn make_directory(prefix: &Prefix) -> Result<()> {
    fs::create_dir_all(ROOT).tried(|| format!("make {ROOT}"))?;
    match fs::create_dir(directory(prefix)) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Err(Error::Exists(prefix.to_string())),
        other => other.tried(|| format!("make {}", directory(prefix).display())),
    }
}

/// Removes everything that a bed of this name has made, also what a crash has left of it, and
/// nothing else. Doing it again does no harm.
///
/// # Errors
/// When a process does not die or a file cannot be removed; what is left can be tried again.
pub fn down(prefix: &Prefix) -> Result<Removed> {
    let cgroups = Cgroups::of(prefix)?;
    let lock = Lock::take(prefix, FlockOperation::LockExclusive)?;
    // Namespaces, interfaces, bridges, shapers and mounts go with the last process inside.
    let processes = cgroups.kill_all()?;
    let groups = cgroups.remove()?;
    if lock.is_some() {
        let directory = directory(prefix);
        fs::remove_dir_all(&directory).tried(|| format!("remove {}", directory.display()))?;
    }
    remove_if_empty(Path::new(ROOT))?;
    Ok(Removed { processes, cgroups: groups, files: lock.is_some() })
}

fn remove_if_empty(directory: &Path) -> Result<()> {
    match fs::remove_dir(directory) {
        Err(e) if matches!(e.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::NotFound) => Ok(()),
        other => other.tried(|| format!("remove {}", directory.display())),
    }
}

/// A bed that is removed when this value is dropped, also when a test fails.
pub struct ScopedBed(Bed);

impl ScopedBed {
    /// Builds a bed.
    ///
    /// # Errors
    /// As [`Bed::up`].
    pub fn up(spec: &BedSpec) -> Result<ScopedBed> {
        Bed::up(spec).map(ScopedBed)
    }
}

impl Deref for ScopedBed {
    type Target = Bed;

    fn deref(&self) -> &Bed {
        &self.0
    }
}

impl DerefMut for ScopedBed {
    fn deref_mut(&mut self) -> &mut Bed {
        &mut self.0
    }
}

impl Drop for ScopedBed {
    fn drop(&mut self) {
        if let Err(e) = self.0.down() {
            eprintln!("could not remove bed `{}`: {e}", self.0.spec().prefix);
        }
    }
}
