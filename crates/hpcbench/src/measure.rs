//! The measuring subcommands: from a command line on every rank to an exit code.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use hpcbench_collectives::mpi::Mpi;
use hpcbench_measure::{End, Observer, Session, Setup, Silent, check, sweep};
use hpcbench_model::{
    Clock as ClockFacts, ClockScope, Host, MpiLibrary, RUN_SCHEMA, Rank, Run, Tool, World as Ranks,
};
use hpcbench_store::{default_dir, new_id};
use hpcbench_world::{Clock, Failure, Launcher, World, exit_now};
use jiff::Timestamp;

use crate::cli::{Cli, Command, Measure};
use crate::screen::Screen;
use crate::settings::{Decided, decide};
use crate::watch::{self, say};

/// How long ranks with nothing to say wait for the one that has, where they cannot meet over MPI.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Runs a measuring subcommand, or says what is wrong with it, once for all ranks.
pub fn main(parsed: Result<Cli, clap::Error>) -> ExitCode {
    let launcher = Launcher::detect();
    if let Err(text) = &parsed
        && text.exit_code() == 0
    {
        // Help and version need no MPI, and are printed once.
        if launcher.rank == 0 {
            let _ = text.print();
        }
        return ExitCode::SUCCESS;
    }
    let clock = Clock::start();
    let world = match World::start() {
        Ok(world) => world,
        Err(failure) => return alone(&failure),
    };
    match run(&world, parsed, clock) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            if world.is_first() {
                say(&failure.message);
            }
            world.barrier();
            ExitCode::from(failure.code)
        }
    }
}

/// A failure before there was a world to agree in. Ranks without a message let the one that has it
/// speak first: a launcher ends all as soon as one fails.
fn alone(failure: &Failure) -> ExitCode {
    if failure.message.is_empty() {
        std::thread::sleep(LAST_WORDS);
    } else {
        say(&failure.message);
    }
    ExitCode::from(failure.code)
}

/// Everything up to the first iteration fails on all ranks alike; from then on a rank that fails
/// ends the process, as the others may wait for it for ever.
fn run(world: &World, parsed: Result<Cli, clap::Error>, clock: Clock) -> Result<u8, Failure> {
    let version = concat!(env!("CARGO_PKG_VERSION"), " (", env!("HPCBENCH_COMMIT"), ")");
    world.same_everywhere("version of hpcbench", version)?;
    world.same_everywhere("build of hpcbench", &build())?;
    let lossy = |word: OsString| word.to_string_lossy().into_owned();
    let words: Vec<String> = std::env::args_os().skip(1).map(lossy).collect();
    world.same_everywhere("options", &words.join(" "))?;
    let measure = world.agree(measuring(parsed))?;
    let decided = world.agree(decide(&measure))?;
    let started = Timestamp::now();
    let run = describe(world, &measure, &decided, &clock, started);
    let (_, options, _) = measure.parts();
    let dir = options.out.clone().unwrap_or_else(|| default_dir(&run.op, started, &run.id));
    let Decided { options: measured, limits, built_in, look, .. } = decided;
    let communicator = Rc::new(world.agree(Mpi::new(world))?);
    check(world, &*communicator, &measured)?;
    let json = options.nccl_json.as_deref();
    let opened = world.is_first().then(|| {
        Screen::new(&look, &dir, json, note(world, built_in)).map_err(|error| {
            let file = json.unwrap_or(Path::new("")).display();
            Failure::usage(format!("-J {file}: {error}: name a file that can be written"))
        })
    });
    let mut screen = world.agree(opened.transpose())?;
    let setup = Setup { options: measured, run, dir, clock };
    let mut session = Session::start(world, communicator, setup).inspect_err(|_| {
        if let Some(screen) = &mut screen {
            screen.discard();
        }
    })?;
    world.agree(watch::start(&session.shared(), limits, world))?;
    let mut silent = Silent;
    let observer: &mut dyn Observer = match &mut screen {
        Some(screen) => screen,
        None => &mut silent,
    };
    match sweep(&mut session, observer) {
        Ok(end) => Ok(code(world, &end, screen.as_ref())),
        Err(failure) => {
            let saved = session.shared().failed();
            // Where the same call failed on every rank, rank 0 alone speaks.
            if !world.is_first() {
                std::thread::sleep(LAST_WORDS);
            }
            let (rank, host) = (world.rank(), world.host());
            let saved = saved.map_or(String::new(), |saved| format!(". {saved}"));
            say(&format!("rank {rank} on {host}: {}{saved}", failure.message));
            exit_now(i32::from(failure.code));
        }
    }
}

/// A checksum of the program's file: builds of one version may still differ. Read piece by piece, as
/// the file is larger than all that is kept while measuring.
fn build() -> String {
    let mut checksum = crc32fast::Hasher::new();
    let mut piece = vec![0; 64 << 10];
    if let Ok(mut program) = File::open("/proc/self/exe") {
        while let Ok(length @ 1..) = program.read(&mut piece) {
            checksum.update(&piece[..length]);
        }
    }
    format!("{:08x}", checksum.finalize())
}

fn measuring(parsed: Result<Cli, clap::Error>) -> Result<Measure, Failure> {
    match parsed {
        Ok(Cli { command: Command::Measure(measure), .. }) => Ok(*measure),
        Ok(_) => Err(Failure::usage("this subcommand measures nothing")),
        Err(error) => {
            let text = error.to_string();
            Err(Failure::usage(text.strip_prefix("error: ").unwrap_or(&text).trim_end()))
        }
    }
}

/// Lines that go before the table.
fn note(world: &World, built_in: bool) -> Option<String> {
    let mut lines = Vec::new();
    if built_in {
        lines.push("# No size and no count given: a built-in sweep, about a second a line (sizes: -b -e -f, count: -n)".to_owned());
    }
    if world.launcher().name == "none" {
        lines.push(format!(
            "# Without a launcher: a world of one rank ({} hpcbench … starts four)",
            world.launcher().example()
        ));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// What is known of the run before it starts. Collective.
fn describe(
    world: &World,
    measure: &Measure,
    decided: &Decided,
    clock: &Clock,
    started: Timestamp,
) -> Run {
    let (op, ..) = measure.parts();
    let lossy = |word: OsString| word.to_string_lossy().into_owned();
    Run {
        schema: RUN_SCHEMA.to_owned(),
        id: world.broadcast_text(&new_id()),
        tool: Tool {
            name: "hpcbench".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: env!("HPCBENCH_COMMIT").to_owned(),
        },
        command: std::env::args_os().map(lossy).collect(),
        op: op.to_owned(),
        backend: "mpi".to_owned(),
        started: started.to_string(),
        ended: None,
        complete: false,
        interrupted: None,
        world: ranks(world),
        clock: clock_facts(world, clock),
        settings: decided.settings.clone(),
        raw_samples: Vec::new(),
        losses: Vec::new(),
        findings: Vec::new(),
        rows: Vec::new(),
    }
}

fn clock_facts(world: &World, clock: &Clock) -> ClockFacts {
    let worst = |value: f64| {
        let values = world.gather_f64(value).unwrap_or_default();
        values.into_iter().fold(value, f64::max)
    };
    ClockFacts {
        source: clock.source().name().to_owned(),
        resolution_ns: worst(clock.resolution_ns()),
        cost_ns: worst(clock.cost_ns()),
        scope: if world.one_host() { ClockScope::World } else { ClockScope::Host },
    }
}

fn ranks(world: &World) -> Ranks {
    let facts = world.facts();
    let own = format!("{} {} {}", facts.cores, facts.memory_bytes, facts.kernel);
    let texts = world.all_gather_text(&own);
    let mut hosts: Vec<Host> = Vec::new();
    for (member, text) in world.members().iter().zip(&texts) {
        if hosts.iter().all(|host| host.name != member.host) {
            let mut words = text.splitn(3, ' ');
            let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
            let (cores, memory_bytes) = (number() as u32, number());
            let kernel = words.next().unwrap_or("unknown").to_owned();
            hosts.push(Host { name: member.host.clone(), cores, kernel, memory_bytes });
        }
    }
    let rank = |(rank, member): (usize, &hpcbench_world::Member)| Rank {
        rank: rank as u32,
        local_rank: member.local_rank as u32,
        host: member.host.clone(),
        pid: member.pid,
    };
    Ranks {
        size: world.size() as u32,
        launcher: world.launcher().name.to_owned(),
        mpi: MpiLibrary { library: World::library(), standard: World::standard() },
        hosts,
        ranks: world.members().iter().enumerate().map(rank).collect(),
    }
}

/// The exit code, the same on every rank, with what rank 0 has to say about it.
fn code(world: &World, end: &End, screen: Option<&Screen>) -> u8 {
    let mut code = [0_u64];
    if let Some(screen) = screen {
        for loss in &end.losses {
            say(&format!(
                "{} records of {} of rank {} could not be kept: {}",
                loss.count, loss.what, loss.rank, loss.why
            ));
        }
        screen.failures.iter().for_each(|failure| say(failure));
        code[0] = match () {
            () if end.wrong > 0 => 3,
            () if !end.losses.is_empty() || !screen.failures.is_empty() => 1,
            () if screen.enough == Some(false) => 4,
            () => 0,
        };
    }
    world.broadcast_u64s(&mut code);
    code[0] as u8
}
