//! The command line of `hpcbench-testbed`.

mod fault;
mod show;

pub(crate) use show::print;

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::error::{Error, Result};
use crate::injection::OnSwap;
use crate::measure::{self, Measurement};
use crate::names::{Link, Prefix};
use crate::namespace::{HolderOptions, hold};
use crate::relay::RelayOptions;
use crate::spec::{BedSpec, Inventory, Relays};
use crate::units::{Rate, duration};
use crate::{bed, mpi, relay};

use fault::FaultCommand;

/// Emulated hosts on one Linux machine: real network stacks, clocks of their own, and faults.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub struct Arguments {
    /// Name of the bed; several live side by side
    #[arg(long, global = true, default_value = "bed")]
    prefix: Prefix,
    #[command(subcommand)]
    command: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make hosts h0, h1, …, with nic0, nic1, … on rails, and a management network
    Up(UpOptions),
    /// Run a command inside a host (h0, …), in the head or in the switch
    Exec {
        /// h0, h1, …, head or switch
        host: String,
        /// The command and its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<String>,
    },
    /// Run mpirun across the hosts: data on the NICs, control on the management network
    Mpirun {
        /// The launcher: Open MPI's or MPICH's
        #[arg(long, default_value = "mpirun")]
        program: String,
        /// mpirun's own arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        arguments: Vec<String>,
    },
    /// Put a fault in; prints its number
    #[command(subcommand)]
    Fault(FaultCommand),
    /// List the faults
    Faults(ShowOptions),
    /// Take faults out: those with these numbers, or all
    Clear {
        /// Numbers as `faults` shows them
        faults: Vec<u32>,
    },
    /// Exchange the cables of two links
    Swap {
        /// A link, such as h2/nic1
        a: Link,
        /// Another
        b: Link,
        /// Whether the faults of the two links sit in the cables
        #[arg(long = "fault", default_value = "moves")]
        faults: OnSwap,
    },
    /// List the hosts with their addresses and clock offsets
    Hosts(ShowOptions),
    /// List the relays with what they have seen and their own delay
    Relays(ShowOptions),
    /// Remove the bed, also what a crash has left of it
    Down,
    /// Measure the testbed itself, on beds made for it
    #[command(subcommand)]
    Measure(Measurement),
    /// Take ssh's place for mpirun
    #[command(hide = true)]
    Agent {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Hold the namespaces of a host
    #[command(hide = true)]
    Hold(HolderOptions),
    /// Pass frames between two TAP devices
    #[command(hide = true)]
    Relay(RelayOptions),
    /// Follow the schedule of a fault
    #[command(hide = true)]
    Drive {
        #[arg(long)]
        fault: u32,
    },
}

#[derive(Debug, Args)]
struct UpOptions {
    /// Number of hosts
    #[arg(long, default_value_t = 4)]
    hosts: usize,
    /// NICs of each host
    #[arg(long, default_value_t = 2)]
    nics: usize,
    /// Nominal rate of every NIC
    #[arg(long, default_value = "400mbit")]
    rate: Rate,
    /// One-way latency added to every path; puts a relay on every link
    #[arg(long, default_value = "0s", value_parser = duration)]
    latency: Duration,
    /// Largest IP packet of a NIC in bytes
    #[arg(long, default_value_t = 9000)]
    mtu: usize,
    /// MPI processes a host takes before mpirun goes on to the next [default: the number of NICs]
    #[arg(long)]
    slots: Option<usize>,
    /// Links with a relay before any fault: none, all or random:SEED
    #[arg(long, default_value = "none")]
    relays: Relays,
    /// Decides the hosts' clock offsets
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Give each host an inventory root, a copy of DIR (or of DIR/HOST) with live NICs
    #[arg(long, value_name = "DIR", num_args = 0..=1)]
    inventory: Option<Option<PathBuf>>,
}

#[derive(Debug, Args)]
struct ShowOptions {
    /// As JSON
    #[arg(long)]
    json: bool,
}

impl UpOptions {
    fn spec(self, prefix: Prefix) -> BedSpec {
        BedSpec {
            rate: self.rate,
            latency: self.latency,
            mtu: self.mtu,
            slots: self.slots.unwrap_or(self.nics),
            relays: self.relays,
            seed: self.seed,
            inventory: match self.inventory {
                None => Inventory::None,
                Some(None) => Inventory::Live,
                Some(Some(tree)) => Inventory::Fixture(tree),
            },
            ..BedSpec::new(prefix, self.hosts, self.nics)
        }
    }
}

/// Does what the command line says. `exec`, `mpirun` and `agent` do not come back: they become
/// the program they run, whose exit code counts.
///
/// # Errors
/// As the action does; the text is for the person at the terminal.
pub fn run(arguments: Arguments) -> Result<()> {
    let prefix = arguments.prefix;
    let open = || bed::Bed::open(&prefix);
    match arguments.command {
        Action::Up(options) => up(options.spec(prefix)),
        Action::Exec { host, command } => become_program(&open()?, |bed| {
            let mut inside = bed.command(&host, &command[0])?;
            inside.args(&command[1..]);
            Ok(inside)
        }),
        Action::Mpirun { program, arguments } => become_program(&open()?, |bed| {
            let mut mpirun = bed.mpirun(&program)?;
            mpirun.args(&arguments);
            Ok(mpirun)
        }),
        Action::Fault(command) => {
            let id = open()?.add_fault(&command.spec()?)?;
            show::line(&id.to_string())
        }
        Action::Faults(options) => show::faults(&open()?.faults()?, options.json),
        Action::Clear { faults } => {
            let ids = (!faults.is_empty()).then_some(faults.as_slice());
            let cleared = open()?.clear(ids)?;
            show::line(&format!("{cleared} cleared"))
        }
        Action::Swap { a, b, faults } => open()?.swap(a, b, faults),
        Action::Hosts(options) => show::hosts(&open()?.hosts(), options.json),
        Action::Relays(options) => show::relays(&open()?.relays()?, options.json),
        Action::Down => show::removed(&prefix, bed::down(&prefix)?),
        Action::Measure(what) => measure::run(&prefix, &what),
        Action::Agent { arguments } => become_program(&open()?, |bed| agent(bed, &arguments)),
        Action::Hold(options) => hold(&options),
        Action::Relay(options) => relay::run(&options),
        Action::Drive { fault } => open()?.drive(fault),
    }
}

fn up(spec: BedSpec) -> Result<()> {
    let start = std::time::Instant::now();
    let bed = bed::Bed::up(&spec)?;
    let relays = bed.relays()?.len();
    show::line(&format!(
        "bed `{}`: {} hosts with {} NICs at {}, {relays} relays, in {:.2} s",
        spec.prefix,
        spec.hosts,
        spec.nics,
        spec.rate,
        start.elapsed().as_secs_f64()
    ))
}

/// What ssh would do: run the rest of the line in a shell on the host.
fn agent(bed: &bed::Bed, arguments: &[String]) -> Result<Command> {
    let (host, line) = mpi::split_ssh_arguments(arguments)
        .ok_or_else(|| Error::Usage("agent: give a host and a command, as to ssh".to_owned()))?;
    let mut shell = bed.command(host, "/bin/sh")?;
    shell.args(["-c", &line]);
    Ok(shell)
}

/// Turns this process into a command inside the bed. The lock keeps `down` waiting until the
/// command is in the bed's groups.
fn become_program(bed: &bed::Bed, inside: impl Fn(&bed::Bed) -> Result<Command>) -> Result<()> {
    let _lock = bed.lock_shared()?;
    let mut command = inside(bed)?;
    let program = command.get_program().to_string_lossy().into_owned();
    Err(Error::Io { what: format!("run `{program}`"), source: command.exec() })
}
